//! Statements that change definitions. DDL waits until no open transaction has changed its
//! table, and transactions that have not changed it yet leave it alone meanwhile.

use std::sync::Arc;

use highwater_oracle::{RedoPoint, RedoThread, SupplementalLogging, TableName};

use crate::column::{Column, ColumnType};
use crate::database::Database;
use crate::quirk::Quirk;
use crate::record::{Actor, Content, DdlText, Form};
use crate::schema;
use crate::table::{Kind, Layout, Table};
use crate::truth::{self, Definition};
use crate::value::{Row, Value};

/// Columns that a table gets beside its first ones, at most.
const ADDED_COLUMNS: usize = 3;
/// Actions between two dictionaries in the redo.
const DICTIONARY_INTERVAL: u64 = 400;
/// Tables that are created and dropped, in a container.
const FRESH_TABLES: u64 = 3;

impl Database {
    /// DDL of the quirks that are on, now and then.
    pub(crate) fn define_now_and_then(&mut self) {
        let has_definitions = self.has(Quirk::Ddl) || self.has(Quirk::Partitions);
        if has_definitions && self.actions % DICTIONARY_INTERVAL == 1 {
            self.build_dictionary();
        }
        match self.awaited {
            Some(table) if self.is_idle(table) => {
                self.awaited = None;
                self.redefine_somehow(table);
            }
            Some(_) => {}
            None => self.want_ddl(),
        }
    }

    /// Does a DDL that needs no table, or waits for a table.
    fn want_ddl(&mut self) {
        if self.is_time_for(Quirk::Ddl, 25) {
            match self.random.below(6) {
                0 => self.create_table(),
                1 => self.define_for_oracle(),
                _ => self.awaited = self.pick_any_table(|_| true),
            }
        }
        if self.awaited.is_none() && self.is_time_for(Quirk::Partitions, 15) {
            self.awaited = self.pick_any_table(Table::is_partitioned);
        }
    }

    fn redefine_somehow(&mut self, number: usize) {
        let Some(table) = self.tables.get(number) else { return };
        let is_fresh = table.layout.name.table.starts_with("FRESH_");
        if self.has(Quirk::Partitions) && table.is_partitioned() {
            return self.change_partitions(number);
        }
        match self.random.below(8) {
            0..=2 => self.add_column(number),
            3 | 4 => self.drop_column(number),
            5 | 6 if is_fresh => self.drop_table(number),
            5 => self.truncate(number),
            _ => self.grant(number),
        }
    }

    fn pick_any_table(&mut self, fits: impl Fn(&Table) -> bool) -> Option<usize> {
        let tables = self.tables.iter().enumerate();
        let fitting = tables.filter(|(_, table)| !table.is_dropped && fits(table));
        let numbers: Vec<_> = fitting.map(|(number, _)| number).collect();
        self.random.pick(&numbers).copied()
    }

    /// Whether no open transaction has changed the table.
    fn is_idle(&self, table: usize) -> bool {
        let mut open = self.clients.iter().filter_map(|client| client.transaction.as_ref());
        open.all(|open| !open.touched.contains(&table))
    }

    /// Gives a table another definition, and other images of its rows.
    fn redefine(
        &mut self,
        number: usize,
        columns: Vec<Column>,
        text: &str,
        image: impl Fn(&[Value]) -> Row,
    ) {
        let Some(table) = self.tables.get_mut(number) else { return };
        let version = table.layout.version + 1;
        table.layout = Arc::new(Layout { columns, version, ..(*table.layout).clone() });
        for row in table.rows.values_mut() {
            row.image = image(&row.image);
        }
        self.alter(number, text, Vec::new());
    }

    fn add_column(&mut self, number: usize) {
        let Some(table) = self.tables.get(number) else { return };
        let mut columns = table.layout.columns.clone();
        let added = columns.iter().filter(|column| column.name.starts_with("ADDED_")).count();
        if added >= ADDED_COLUMNS {
            return;
        }
        let name = format!("ADDED_{}", table.layout.version);
        columns.push(Column::new(&name, ColumnType::Varchar2(30)));
        let text = format!("ALTER TABLE {} ADD ({name} VARCHAR2(30))", table.sql_name());
        self.redefine(number, columns, &text, |row| row.iter().cloned().chain([None]).collect());
    }

    fn drop_column(&mut self, number: usize) {
        let Some(table) = self.tables.get(number) else { return };
        let mut columns = table.layout.columns.clone();
        let Some(place) = columns.iter().position(|column| column.name.starts_with("ADDED_"))
        else {
            return;
        };
        let dropped = columns.remove(place);
        let text = format!("ALTER TABLE {} DROP COLUMN {}", table.sql_name(), dropped.name);
        self.redefine(number, columns, &text, |row| {
            let kept = row.iter().enumerate().filter(|(other, _)| *other != place);
            kept.map(|(_, value)| value.clone()).collect()
        });
    }

    fn truncate(&mut self, number: usize) {
        let Some(table) = self.tables.get_mut(number) else { return };
        let removed = table.remove_rows(|_| true);
        let text = format!("TRUNCATE TABLE {}", table.sql_name());
        self.alter(number, &text, removed);
    }

    /// Changes `LAST_DDL_TIME` and nothing else.
    fn grant(&mut self, number: usize) {
        let Some(table) = self.tables.get(number) else { return };
        let text = format!("GRANT SELECT ON {} TO CLERK", table.sql_name());
        self.alter(number, &text, Vec::new());
    }

    /// Creates one of a few tables; a dropped one comes again under its name, with another number.
    fn create_table(&mut self) {
        let containers = schema::containers(&self.settings);
        let Some((container, pdb)) = self.random.pick(&containers).cloned() else { return };
        let table = format!("FRESH_{}", self.random.below(FRESH_TABLES));
        let name = TableName { pdb, owner: schema::CAPTURED_OWNER.to_owned(), table };
        if self.tables.iter().any(|table| !table.is_dropped && table.layout.name == name) {
            return;
        }
        let layout = Layout {
            name,
            version: 1,
            columns: vec![
                Column::required("ID", ColumnType::NumberOf(10, 0)),
                Column::new("TEXT", ColumnType::Varchar2(60)),
            ],
            key: vec![0],
            logging: SupplementalLogging::All,
            kind: Kind::Heap,
        };
        let object = self.new_object(container);
        let table = Table::new(container, layout, object, vec![object]);
        let text = format!(
            "CREATE TABLE {} (ID NUMBER(10) PRIMARY KEY, TEXT VARCHAR2(60))",
            table.sql_name()
        );
        self.tables.push(table);
        self.alter(self.tables.len() - 1, &text, Vec::new());
    }

    /// An object number that its container has not given yet.
    pub(crate) fn new_object(&self, container: u32) -> u64 {
        let here = self.tables.iter().filter(|table| table.container == container);
        here.map(|table| table.highest_object).max().map_or(1, |last| last + 1)
    }

    fn drop_table(&mut self, number: usize) {
        let Some(table) = self.tables.get_mut(number) else { return };
        let removed = table.remove_rows(|_| true);
        let text = format!("DROP TABLE {} PURGE", table.sql_name());
        self.alter(number, &text, removed);
        if let Some(table) = self.tables.get_mut(number) {
            table.is_dropped = true;
        }
    }

    /// DDL of an owner whose tables come with the database.
    fn define_for_oracle(&mut self) {
        let Some((container, pdb)) = schema::containers(&self.settings).into_iter().next() else {
            return;
        };
        let ddl = DdlText {
            owner: Some("SYS".to_owned()),
            table: Some("WRH$_SEG_STAT".to_owned()),
            object: 9000,
            version: 1,
            sql: "alter table WRH$_SEG_STAT add partition WRH$_SEG_ST_1700 values less than (1700)"
                .to_owned(),
        };
        self.write_ddl(container, pdb, ddl);
    }

    /// Writes the redo of a DDL on a table, and notes it in the books.
    pub(crate) fn alter(&mut self, number: usize, text: &str, removed: Vec<truth::RowImage>) {
        let Some(table) = self.tables.get(number) else { return };
        let layout = Arc::clone(&table.layout);
        let ddl = DdlText {
            owner: Some(layout.name.owner.clone()),
            table: Some(layout.name.table.clone()),
            object: table.own,
            version: layout.version,
            sql: text.to_owned(),
        };
        let (container, is_captured) = (table.container, table.is_captured);
        let at = self.write_ddl(container, layout.name.pdb.clone(), ddl);
        let time_us = self.clock.time_us();
        if let Some(table) = self.tables.get_mut(number) {
            table.last_ddl_us = time_us;
        }
        if is_captured {
            let table = layout.name.clone();
            self.definitions.push(Definition {
                at,
                time_us,
                table,
                text: text.to_owned(),
                removed,
            });
        }
    }

    /// A DDL is a transaction of its own; what comes after it has a higher SCN.
    fn write_ddl(&mut self, container: u32, pdb: Option<String>, ddl: DdlText) -> RedoPoint {
        let thread = self.any_thread();
        let key = self.undo.open(container, thread, &self.settings, &mut self.random);
        let user = Some(schema::CAPTURED_OWNER.to_owned());
        let actor = Arc::new(Actor { key, user, pdb, ..Actor::default() });
        self.clock.advance();
        let contents = [Content::Start, Content::Ddl(Arc::new(ddl)), Content::Commit];
        let [_, at, _] = contents.map(|content| {
            let record = self.stamp(&actor, vec![content], Form::default());
            self.write(thread, record)
        });
        self.clock.advance();
        self.undo.close(&key);
        at
    }

    pub(crate) fn any_thread(&mut self) -> RedoThread {
        let thread = self.random.index(self.threads.len());
        self.threads.get(thread).map_or(RedoThread(1), |redo| redo.thread)
    }
}
