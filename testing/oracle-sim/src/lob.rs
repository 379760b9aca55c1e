//! Rows of large objects: PL/SQL blocks that select a locator and then write, cut or blank a part.

use std::sync::Arc;

use highwater_oracle::Operation;

use crate::column::{ColumnType, quoted};
use crate::statement::{Names, Writer};
use crate::table::Layout;
use crate::value::Row;

/// What a row does to a large object. Amounts and offsets count characters, or bytes of a BLOB; offsets
/// begin with 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LobCall {
    /// Its locator is selected; the row has no text.
    Locator,
    Write {
        offset: usize,
        data: Arc<str>,
    },
    Trim {
        length: usize,
    },
    Erase {
        offset: usize,
        amount: usize,
    },
}

/// A row of a large object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LobRow {
    pub(crate) table: usize,
    pub(crate) layout: Arc<Layout>,
    pub(crate) object: u64,
    /// Place of its column.
    pub(crate) column: usize,
    /// The row that it belongs to.
    pub(crate) row: Row,
    pub(crate) row_id: Arc<str>,
    pub(crate) call: LobCall,
}

/// The declarations at the head of every block.
const DECLARATIONS: &str = "DECLARE \n loc_c CLOB; \n buf_c VARCHAR2(6162); \n loc_b BLOB; \n buf_b \
                            RAW(6162); \n loc_nc NCLOB; \n buf_nc NVARCHAR2(6162); \n e_len NUMBER; \n";

impl LobRow {
    pub(crate) const fn operation(&self) -> Operation {
        match self.call {
            LobCall::Locator => Operation::LobLocator,
            LobCall::Write { .. } => Operation::LobWrite,
            LobCall::Trim { .. } => Operation::LobTrim,
            LobCall::Erase { .. } => Operation::LobErase,
        }
    }

    /// Bytes in the log, about.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.call {
            LobCall::Write { data, .. } => 100 + data.len() as u64,
            _ => 100,
        }
    }

    fn kind(&self) -> ColumnType {
        self.layout.columns.get(self.column).map_or(ColumnType::Clob, |column| column.kind)
    }

    /// The block; a row that selects a locator has none.
    pub(crate) fn block(&self, names: Names) -> Option<String> {
        let variable = match self.kind() {
            ColumnType::Blob => "b",
            ColumnType::NClob => "nc",
            _ => "c",
        };
        let call = self.call_text(variable)?;
        let writer = Writer { layout: &self.layout, object: self.object, names };
        let is_lob =
            |place: usize| self.layout.columns.get(place).is_some_and(|it| it.kind.is_lob());
        let row = writer.condition(&self.row, |place| !is_lob(place));
        let (column, table) = (writer.column(self.column), writer.table());
        Some(format!(
            "{DECLARATIONS}BEGIN\n select {column} into loc_{variable} from {table} where {row} for \
             update;\n\n{call}END;\n\n"
        ))
    }

    fn call_text(&self, variable: &str) -> Option<String> {
        match &self.call {
            LobCall::Locator => None,
            LobCall::Write { offset, data } => {
                let (amount, data) = match self.kind() {
                    ColumnType::Blob => (data.len() / 2, format!("HEXTORAW('{data}')")),
                    _ => (data.chars().count(), quoted(data)),
                };
                Some(format!(
                    " buf_{variable} := {data}; \n  dbms_lob.write(loc_{variable}, {amount}, {offset}, \
                     buf_{variable});\n"
                ))
            }
            LobCall::Trim { length } => {
                Some(format!("  dbms_lob.trim(loc_{variable}, {length});\n"))
            }
            LobCall::Erase { offset, amount } => Some(format!(
                " e_len := {amount}; \n  dbms_lob.erase(loc_{variable}, e_len, {offset});\n"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use highwater_oracle::{SupplementalLogging, TableName};

    use super::*;
    use crate::column::Column;
    use crate::table::Kind;

    fn row(column: usize, call: LobCall) -> LobRow {
        let layout = Layout {
            name: TableName { pdb: None, owner: "SHOP".into(), table: "BOOK".into() },
            version: 1,
            columns: vec![
                Column::required("ID", ColumnType::Number),
                Column::new("TITLE", ColumnType::Varchar2(9)),
                Column::new("STORY", ColumnType::Clob),
                Column::new("COVER", ColumnType::Blob),
            ],
            key: vec![0],
            logging: SupplementalLogging::All,
            kind: Kind::Heap,
        };
        LobRow {
            table: 0,
            layout: Arc::new(layout),
            object: 9,
            column,
            row: [Some("7".into()), None, Some("x".into()), None].into(),
            row_id: "AAA".into(),
            call,
        }
    }

    #[test]
    fn a_block_selects_its_locator_and_writes() {
        let write = LobCall::Write { offset: 5, data: "O'\u{1f6a2}".into() };
        let block = row(2, write).block(Names::Known).unwrap();
        assert!(block.starts_with("DECLARE \n loc_c CLOB; \n"));
        assert!(block.ends_with(
            "BEGIN\n select \"STORY\" into loc_c from \"SHOP\".\"BOOK\" where \"ID\" = '7' and \
             \"TITLE\" IS NULL for update;\n\n buf_c := 'O''\u{1f6a2}'; \n  dbms_lob.write(loc_c, 3, 5, \
             buf_c);\nEND;\n\n"
        ));
    }

    #[test]
    fn bytes_are_counted_as_bytes() {
        let write = LobCall::Write { offset: 1, data: "00ff10".into() };
        let block = row(3, write).block(Names::Known).unwrap();
        assert!(
            block.contains(" buf_b := HEXTORAW('00ff10'); \n  dbms_lob.write(loc_b, 3, 1, buf_b);")
        );
        let erase = LobCall::Erase { offset: 33, amount: 16 };
        let block = row(3, erase).block(Names::Known).unwrap();
        assert!(block.contains(" e_len := 16; \n  dbms_lob.erase(loc_b, e_len, 33);"));
        assert_eq!(row(3, LobCall::Locator).block(Names::Known), None);
    }
}
