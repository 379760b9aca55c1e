//! A table, its layouts and its changes, for tests.

use std::sync::Arc;

use crate::schema::{Key, KeyRules, KeySource, LayoutVersion, Layouts};
use crate::{
    Change, ColumnLayout, Image, LobColumn, RedoAddress, RedoPoint, RedoThread, Scn,
    SupplementalLogging, TableName, TransactionKey, Verb, Xid,
};

/// Columns that a layout may have: name, type, precision and scale.
const COLUMNS: [(&str, &str, Option<u32>, Option<i32>); 16] = [
    ("ID", "NUMBER", Some(10), Some(0)),
    ("PART", "NUMBER", Some(5), Some(0)),
    ("NAME", "VARCHAR2", None, None),
    ("NICK", "NVARCHAR2", None, None),
    ("GRADE", "CHAR", None, None),
    ("PAY", "NUMBER", Some(10), Some(2)),
    ("RATE", "BINARY_DOUBLE", None, None),
    ("HIRED", "DATE", None, None),
    ("SEEN", "TIMESTAMP(6)", None, Some(6)),
    ("SEENTZ", "TIMESTAMP(6) WITH TIME ZONE", None, Some(6)),
    ("TOKEN", "RAW", None, None),
    ("BODY", "CLOB", None, None),
    ("SCAN", "BLOB", None, None),
    ("DOC", "XMLTYPE", None, None),
    ("SECRET", "VARCHAR2", None, None),
    ("PLACE", "SDO_GEOMETRY", None, None),
];

/// `HR.EMP`.
pub(crate) fn table() -> Arc<TableName> {
    let (owner, table) = ("HR".to_owned(), "EMP".to_owned());
    Arc::new(TableName { pdb: None, owner, table })
}

/// Version 1 of it with these columns, of which the first is the key.
pub(crate) fn version(columns: &[&str]) -> LayoutVersion {
    let column = |name: &&str| {
        let (name, type_name, precision, scale) =
            *COLUMNS.iter().find(|(known, ..)| known == name).unwrap();
        ColumnLayout {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            length: None,
            precision,
            scale,
            is_nullable: name != columns[0],
        }
    };
    LayoutVersion {
        table: (*table()).clone(),
        number: 1,
        from: Scn(0),
        ddl: None,
        is_exact: true,
        columns: columns.iter().map(column).collect(),
        key: key(KeySource::PrimaryKey, &columns[..1]),
        logging: SupplementalLogging::All,
    }
}

pub(crate) fn key(source: KeySource, columns: &[&str]) -> Key {
    Key { source, columns: columns.iter().map(|name| (*name).to_owned()).collect() }
}

/// Layouts with these versions, whose column SECRET is left out.
pub(crate) fn layouts(versions: Vec<LayoutVersion>) -> Layouts {
    let is_excluded = |_: &TableName, column: &str| column == "SECRET";
    let mut layouts = Layouts::new(KeyRules::default(), Arc::new(is_excluded));
    for version in versions {
        layouts.tables.entry(version.table.clone()).or_default().push(version);
    }
    layouts
}

/// The row that every change of [`change`] is of.
pub(crate) const ROW_ID: &str = "AAAR9zAAHAAAACrAAB";

/// A change of the table at this byte of block 8 of log 7, read under its first version.
pub(crate) fn change(verb: Verb, byte: u32, sql: &str, lobs: Vec<LobColumn>) -> Change {
    Change {
        at: at(byte),
        verb,
        table: table(),
        table_version: 1,
        row_id: ROW_ID.into(),
        image: Image::Statement,
        sql: sql.into(),
        lobs,
    }
}

pub(crate) fn at(byte: u32) -> RedoPoint {
    let address = RedoAddress { sequence: 7, block: 8, byte, ssn: 0 };
    RedoPoint { thread: RedoThread(1), scn: Scn(4000), address: Some(address) }
}

pub(crate) const KEY: TransactionKey =
    TransactionKey { container: 0, xid: Xid { usn: 5, slot: 12, sequence: 614 } };
