//! Layouts, versions and points of tests.

use std::sync::Arc;

use super::key::{Key, KeyRules, KeySource};
use super::versions::{LayoutVersion, Layouts};
use crate::{
    ColumnLayout, Cursor, Marks, RedoAddress, RedoPoint, RedoThread, Scn, SupplementalLogging,
    TableLayout, TableName, UniqueIndex,
};

pub(crate) fn table() -> TableName {
    TableName { pdb: None, owner: "HR".to_owned(), table: "T".to_owned() }
}

pub(crate) fn column(name: &str) -> ColumnLayout {
    ColumnLayout {
        name: name.to_owned(),
        type_name: "NUMBER".to_owned(),
        length: Some(22),
        precision: Some(10),
        scale: Some(0),
        is_nullable: true,
    }
}

/// HR.T with these columns; the first is the primary key. Its last DDL was at time 0.
pub(crate) fn layout(columns: &[&str]) -> TableLayout {
    TableLayout {
        name: table(),
        columns: columns.iter().map(|name| column(name)).collect(),
        primary_key: columns.iter().take(1).map(|name| (*name).to_owned()).collect(),
        unique_indexes: Vec::new(),
        logging: SupplementalLogging::All,
        last_ddl_us: 0,
    }
}

pub(crate) fn index(name: &str, columns: &[&str]) -> UniqueIndex {
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    UniqueIndex { name: name.to_owned(), columns }
}

/// A version of HR.T with the column ID that was read at a start.
pub(crate) fn version(number: u32, from: u64) -> LayoutVersion {
    LayoutVersion {
        table: table(),
        number,
        from: Scn(from),
        ddl: None,
        is_exact: true,
        columns: vec![column("ID")],
        key: Key { source: KeySource::PrimaryKey, columns: vec!["ID".to_owned()] },
        logging: SupplementalLogging::All,
    }
}

pub(crate) fn layouts() -> Layouts {
    Layouts::new(KeyRules::default(), Arc::new(|_, _| false))
}

pub(crate) fn point(thread: u32, scn: u64, block: u64) -> RedoPoint {
    RedoPoint { thread: RedoThread(thread), scn: Scn(scn), address: Some(address(block)) }
}

fn address(block: u64) -> RedoAddress {
    RedoAddress { block, ..RedoAddress::start_of_log(7) }
}

/// A place without thread: an SCN, and the block of an address.
pub(crate) fn cursor(scn: u64, block: Option<u64>) -> Cursor {
    let marks = block.map_or(Marks::None, |block| Marks::AnyThread(address(block)));
    Cursor { scn: Scn(scn), marks }
}

/// A place with a block in each of these threads.
pub(crate) fn threads(scn: u64, marks: &[(u32, u64)]) -> Cursor {
    let marks = marks.iter().map(|(thread, block)| (RedoThread(*thread), address(*block)));
    Cursor { scn: Scn(scn), marks: Marks::Threads(marks.collect()) }
}
