//! Which topic a record goes to: the trail, or the topic of its table, named by a template; and the topics
//! of the engine's own records.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{Keeps, SideTopic, schema_topic};

use super::template::Template;
use crate::{Code, OracleError, TableName};

/// Longest name that Kafka takes for a topic.
const LONGEST: usize = 249;

/// Where the records of tables go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableTopics {
    /// All into this trail (rule R2).
    Trail(Arc<str>),
    /// Those of a table into a topic of its own, named by this template.
    PerTable(Template),
}

/// Topics of the engine's own records, each of one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnTopics {
    /// What happened to the connector (`cdc.ops.topic`).
    pub ops: Arc<str>,
    /// Positions of a quiet database (`cdc.heartbeat.topic`).
    pub heartbeat: Arc<str>,
    /// Rows that could not be delivered (`cdc.dlq.topic`).
    pub dead_letters: Arc<str>,
    /// Open transactions (`cdc.txjournal.topic`).
    pub journal: Arc<str>,
    /// Table descriptions (rule R4).
    pub schema: Arc<str>,
}

impl OwnTopics {
    /// The topics of a connector with this topic prefix, where no setting names another.
    pub fn of(prefix: &str) -> Self {
        let own = |name: &str| Arc::from(format!("{prefix}.cdc.{name}"));
        Self {
            ops: own("ops"),
            heartbeat: own("heartbeat"),
            dead_letters: own("dlq"),
            journal: own("txjournal"),
            schema: Arc::from(schema_topic(prefix)),
        }
    }

    /// Those that the connector keeps beside its records, with what each keeps.
    pub fn side(&self) -> Vec<SideTopic> {
        let days = |days: u64| Keeps::For(Duration::from_secs(days * 86_400));
        let topic = |name: &Arc<str>, keeps| SideTopic { name: name.to_string(), keeps };
        vec![
            topic(&self.ops, days(7)),
            topic(&self.heartbeat, days(1)),
            topic(&self.dead_letters, days(7)),
            topic(&self.journal, Keeps::Newest),
        ]
    }

    fn all(&self) -> [&Arc<str>; 5] {
        let Self { ops, heartbeat, dead_letters, journal, schema } = self;
        [ops, heartbeat, dead_letters, journal, schema]
    }
}

/// A table that has a topic.
#[derive(Clone, Debug)]
struct Owner {
    table: Arc<TableName>,
    /// What the template gave, before characters were replaced.
    written: String,
}

/// Names the topics of one connector.
#[derive(Clone, Debug)]
pub struct TopicNames {
    tables: TableTopics,
    own: OwnTopics,
    /// Whose topic each is.
    owners: HashMap<Arc<str>, Vec<Owner>>,
}

impl TopicNames {
    /// Names of a connector with these topics.
    pub fn new(tables: TableTopics, own: OwnTopics) -> Self {
        Self { tables, own, owners: HashMap::new() }
    }

    /// Topics of the engine's own records.
    pub const fn own(&self) -> &OwnTopics {
        &self.own
    }

    /// Whether each table has a topic of its own.
    pub const fn are_per_table(&self) -> bool {
        matches!(self.tables, TableTopics::PerTable(_))
    }

    /// The topic of a table's records.
    ///
    /// # Errors
    /// CDC-6004 when Kafka takes no such name, when it is a topic of the engine, or when it is another
    /// table's only because characters were replaced; a template that gives two tables one topic means it.
    pub fn topic(&mut self, table: &Arc<TableName>) -> Result<Arc<str>, OracleError> {
        let template = match &self.tables {
            TableTopics::Trail(trail) => return Ok(Arc::clone(trail)),
            TableTopics::PerTable(template) => template,
        };
        let written = template.fill(table);
        let topic: Arc<str> = Arc::from(sanitized(&written));
        if topic.is_empty() || topic.len() > LONGEST || [".", ".."].contains(&&*topic) {
            return Err(refused(format!(
                "the topic of {table} would be {topic:?}, and Kafka takes names of 1 to {LONGEST} bytes"
            )));
        }
        if self.own.all().contains(&&topic) {
            let what =
                format!("the topic of {table} would be {topic}, which is a topic of the engine");
            return Err(refused(what));
        }
        match self.owners.entry(Arc::clone(&topic)) {
            Entry::Vacant(free) => {
                free.insert(vec![Owner { table: Arc::clone(table), written }]);
            }
            Entry::Occupied(mut taken) => own(taken.get_mut(), table, written)?,
        }
        Ok(topic)
    }

    /// Gives up the topic of a table that is captured no more.
    pub fn release(&mut self, table: &TableName) {
        self.owners.retain(|_, owners| {
            owners.retain(|owner| *owner.table != *table);
            !owners.is_empty()
        });
    }
}

fn own(
    owners: &mut Vec<Owner>,
    table: &Arc<TableName>,
    written: String,
) -> Result<(), OracleError> {
    if let Some(other) = owners.iter().find(|owner| owner.written != written) {
        return Err(refused(format!(
            "the topics of {table} ({written}) and of {} ({}) come to one name, as Kafka does not take \
             all of their characters",
            other.table, other.written
        )));
    }
    if !owners.iter().any(|owner| owner.table == *table) {
        owners.push(Owner { table: Arc::clone(table), written });
    }
    Ok(())
}

/// What Kafka does not take becomes `_`.
fn sanitized(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

fn refused(what: String) -> OracleError {
    OracleError::new(
        Code::NameCollision,
        what,
        "set another cdc.topic.template, leave the table out with cdc.tables.exclude, or rename it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(owner: &str, table: &str) -> Arc<TableName> {
        let (owner, table) = (owner.to_owned(), table.to_owned());
        Arc::new(TableName { pdb: None, owner, table })
    }

    fn names(template: Option<&str>) -> TopicNames {
        let template = Template::new(template, "shop", "ORCL", false).unwrap();
        TopicNames::new(TableTopics::PerTable(template), OwnTopics::of("shop"))
    }

    #[test]
    fn a_table_has_the_topic_of_its_name() {
        let mut names = names(None);
        assert!(names.are_per_table());
        for (owner, name, topic) in [
            ("HR", "EMP", "shop.HR.EMP"),
            ("HR", "X$Y#Z", "shop.HR.X_Y_Z"),
            ("S", "a b-c", "shop.S.a_b-c"),
        ] {
            assert_eq!(names.topic(&table(owner, name)).unwrap().as_ref(), topic);
        }
    }

    #[test]
    fn two_tables_share_a_topic_only_where_the_template_says_so() {
        let mut plain = names(None);
        plain.topic(&table("HR", "A$B")).unwrap();
        plain.topic(&table("HR", "A$B")).unwrap();
        let error = plain.topic(&table("HR", "A#B")).unwrap_err();
        assert_eq!(error.code, Code::NameCollision);
        assert!(error.what.contains("HR.A#B") && error.what.contains("HR.A$B"), "{error}");
        plain.release(&table("HR", "A$B"));
        plain.topic(&table("HR", "A#B")).unwrap();

        let mut merged = names(Some("${prefix}.${table}"));
        let topic = merged.topic(&table("HR", "A")).unwrap();
        assert_eq!(merged.topic(&table("OE", "A")).unwrap(), topic);
        merged.release(&table("HR", "A"));
        assert!(merged.topic(&table("HR", "A")).is_ok());
    }

    #[test]
    fn a_name_that_nobody_can_have_is_refused() {
        let mut names = names(Some("${table}"));
        for name in ["shop.cdc.ops", "shop.cdc.heartbeat", "shop.schema", "..", &"T".repeat(250)] {
            let error = names.topic(&table("HR", name)).unwrap_err();
            assert_eq!(error.code, Code::NameCollision, "{name}");
        }
        assert_eq!(names.topic(&table("HR", &"T".repeat(249))).unwrap().len(), 249);
    }

    #[test]
    fn only_the_journal_is_kept_for_ever() {
        let kept = |topic: SideTopic| (topic.name, topic.keeps == Keeps::Newest);
        let side: Vec<_> = OwnTopics::of("shop").side().into_iter().map(kept).collect();
        let expected = [
            ("shop.cdc.ops", false),
            ("shop.cdc.heartbeat", false),
            ("shop.cdc.dlq", false),
            ("shop.cdc.txjournal", true),
        ]
        .map(|(name, is_newest)| (name.to_owned(), is_newest));
        assert_eq!(side, expected);
    }

    #[test]
    fn a_trail_takes_all() {
        let mut names = TopicNames::new(TableTopics::Trail("shop".into()), OwnTopics::of("shop"));
        assert_eq!(names.topic(&table("HR", "A$B")).unwrap().as_ref(), "shop");
        assert_eq!(names.topic(&table("HR", "A#B")).unwrap().as_ref(), "shop");
        assert!(!names.are_per_table());
    }
}
