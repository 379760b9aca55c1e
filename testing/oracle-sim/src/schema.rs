//! The tables that there are at the beginning.

use highwater_oracle::{SupplementalLogging, TableName};

use crate::column::{Column, ColumnType};
use crate::partition::FIRST_PARTITIONS;
use crate::quirk::Quirk;
use crate::settings::SimulationSettings;
use crate::table::{Kind, Layout, Table};

/// The owner whose tables are captured; every table of another owner is not.
pub const CAPTURED_OWNER: &str = "SHOP";
/// The owner of tables that are not.
pub(crate) const OTHER_OWNER: &str = "LEDGER";

/// The first `OBJECT_ID` of a container: the same in each, as each allocates its own.
const FIRST_OBJECT: u64 = 70_000;
/// The first container that is no root and no seed.
const FIRST_PDB: u32 = 3;

/// The containers, with the names of their databases.
pub(crate) fn containers(settings: &SimulationSettings) -> Vec<(u32, Option<String>)> {
    match settings.pdb_count() {
        0 => vec![(0, None)],
        pdbs => (0..pdbs).map(|pdb| (FIRST_PDB + pdb, Some(format!("PDB{}", pdb + 1)))).collect(),
    }
}

/// The tables of every container. The order of creation differs between containers, so that one number
/// is a captured table here and another one there.
pub(crate) fn tables(settings: &SimulationSettings) -> Vec<Table> {
    let mut tables = Vec::new();
    for (container, pdb) in containers(settings) {
        let mut designs = designs(settings);
        let length = designs.len();
        designs.rotate_left(container as usize % length);
        let mut object = FIRST_OBJECT;
        for design in designs {
            tables.push(design.create(container, pdb.clone(), &mut object));
        }
    }
    tables
}

/// What a table is to be.
struct Design {
    owner: &'static str,
    name: &'static str,
    kind: Kind,
    columns: Vec<Column>,
    key: Vec<usize>,
    logging: SupplementalLogging,
}

impl Design {
    fn create(self, container: u32, pdb: Option<String>, object: &mut u64) -> Table {
        let name = TableName { pdb, owner: self.owner.to_owned(), table: self.name.to_owned() };
        let layout = Layout {
            name,
            version: 1,
            columns: self.columns,
            key: self.key,
            logging: self.logging,
            kind: self.kind,
        };
        let own = *object + 1;
        let objects = match self.kind {
            Kind::Partitioned => (1..=FIRST_PARTITIONS as u64).map(|part| own + part).collect(),
            // The number of the top index.
            Kind::IndexOrganised => vec![own + 1],
            Kind::Heap | Kind::Unsupported => vec![own],
        };
        *object = objects.iter().copied().fold(own, u64::max);
        Table::new(container, layout, own, objects)
    }
}

fn designs(settings: &SimulationSettings) -> Vec<Design> {
    let mut designs = vec![orders(), journal(), items()];
    let by_quirk: [(Quirk, fn() -> Design); 5] = [
        (Quirk::SplitStatements, wide),
        (Quirk::Unsupported, exotic),
        (Quirk::Partitions, sales),
        (Quirk::IndexOrganised, prices),
        (Quirk::LobPieces, docs),
    ];
    let wanted = by_quirk.into_iter().filter(|(quirk, _)| settings.has(*quirk));
    designs.extend(wanted.map(|(_, design)| design()));
    designs
}

/// A table in partitions.
fn sales() -> Design {
    Design {
        owner: CAPTURED_OWNER,
        name: "SALES",
        kind: Kind::Partitioned,
        columns: vec![
            Column::required("ID", ColumnType::NumberOf(10, 0)),
            Column::new("REGION", ColumnType::Varchar2(20)),
            Column::new("AMOUNT", ColumnType::NumberOf(12, 2)),
        ],
        key: vec![0],
        logging: SupplementalLogging::All,
    }
}

/// A table with large objects.
fn docs() -> Design {
    Design {
        owner: CAPTURED_OWNER,
        name: "DOCS",
        kind: Kind::Heap,
        columns: vec![
            Column::required("ID", ColumnType::NumberOf(10, 0)),
            Column::new("BODY", ColumnType::Clob),
            Column::new("TITLE", ColumnType::Varchar2(60)),
            Column::new("NOTE", ColumnType::NClob),
            Column::new("SCAN", ColumnType::Blob),
            Column::new("WRITTEN", ColumnType::Date),
        ],
        key: vec![0],
        logging: SupplementalLogging::All,
    }
}

/// A table in the index of its key.
fn prices() -> Design {
    Design {
        owner: CAPTURED_OWNER,
        name: "PRICES",
        kind: Kind::IndexOrganised,
        columns: vec![
            Column::required("ID", ColumnType::NumberOf(10, 0)),
            Column::new("PRICE", ColumnType::Number),
            Column::new("VALID", ColumnType::Date),
        ],
        key: vec![0],
        logging: SupplementalLogging::All,
    }
}

/// A table whose statements have about twice as many characters as a row of LogMiner holds.
fn wide() -> Design {
    let mut columns = vec![Column::required("ID", ColumnType::NumberOf(10, 0))];
    columns.extend(
        (1..=12).map(|place| Column::new(&format!("TEXT_{place}"), ColumnType::Varchar2(900))),
    );
    Design {
        owner: CAPTURED_OWNER,
        name: "WIDE",
        kind: Kind::Heap,
        columns,
        key: vec![0],
        logging: SupplementalLogging::All,
    }
}

/// A table with a type that LogMiner does not know.
fn exotic() -> Design {
    Design {
        owner: CAPTURED_OWNER,
        name: "EXOTIC",
        kind: Kind::Unsupported,
        columns: vec![
            Column::required("ID", ColumnType::NumberOf(10, 0)),
            Column::new("PLACE", ColumnType::Varchar2(40)),
        ],
        key: vec![0],
        logging: SupplementalLogging::All,
    }
}

/// A table with all columns logged.
fn orders() -> Design {
    Design {
        owner: CAPTURED_OWNER,
        name: "ORDERS",
        kind: Kind::Heap,
        columns: vec![
            Column::required("ID", ColumnType::NumberOf(10, 0)),
            Column::required("CUSTOMER", ColumnType::Varchar2(60)),
            Column::new("AMOUNT", ColumnType::NumberOf(12, 2)),
            Column::new("NOTE", ColumnType::Varchar2(200)),
            Column::new("PLACED", ColumnType::Date),
            Column::new("SEEN", ColumnType::Timestamp(6)),
            Column::new("STATE", ColumnType::Char(8)),
        ],
        key: vec![0],
        logging: SupplementalLogging::All,
    }
}

/// A table with a key of two columns, which alone are logged, and the rarer types.
fn items() -> Design {
    Design {
        owner: CAPTURED_OWNER,
        name: "ITEMS",
        kind: Kind::Heap,
        columns: vec![
            Column::new("SKU", ColumnType::NVarchar2(60)),
            Column::required("ORDER_ID", ColumnType::NumberOf(10, 0)),
            Column::required("LINE", ColumnType::NumberOf(4, 0)),
            Column::new("Unit price", ColumnType::Number),
            Column::new("RATE", ColumnType::BinaryFloat),
            Column::new("WEIGHT", ColumnType::BinaryDouble),
            Column::new("TOKEN", ColumnType::Raw(16)),
            Column::new("PACKED", ColumnType::TimestampTz),
            Column::new("SENT", ColumnType::TimestampLtz),
            Column::new("SPAN", ColumnType::DayToSecond),
            Column::new("TERM", ColumnType::YearToMonth),
        ],
        key: vec![1, 2],
        logging: SupplementalLogging::PrimaryKey,
    }
}

/// A table that is not captured.
fn journal() -> Design {
    Design {
        owner: OTHER_OWNER,
        name: "JOURNAL",
        kind: Kind::Heap,
        columns: vec![
            Column::required("ID", ColumnType::NumberOf(10, 0)),
            Column::new("TEXT", ColumnType::Varchar2(100)),
        ],
        key: vec![0],
        logging: SupplementalLogging::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_another_table_in_another_container() {
        let settings = SimulationSettings { pdbs: 2, ..SimulationSettings::default() };
        let tables = tables(&settings);
        let captured = |table: &&Table| table.is_captured;
        let twins = tables.iter().filter(captured).any(|table| {
            tables.iter().any(|other| {
                other.container != table.container
                    && other.objects == table.objects
                    && !other.is_captured
            })
        });
        assert!(twins);
    }
}
