//! Which topic a record goes to: the trail, or the topic of its table, named as Debezium does.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use highwater_connector::{ConnectorError, ErrorKind, Routing};

use crate::error::code;
use crate::name::TableName;

/// Longest name that Kafka takes for a topic.
const LONGEST: usize = 249;

/// Names the topics of one connector.
#[derive(Clone, Debug)]
pub(crate) struct TopicNames {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Trail(Arc<str>),
    Tables {
        prefix: String,
        /// Whose topic each is: two tables must not share one.
        owners: HashMap<Arc<str>, TableName>,
    },
}

impl TopicNames {
    /// Names of a connector with this routing.
    pub(crate) fn new(routing: &Routing) -> Self {
        let kind = match routing {
            Routing::Trail(topic) | Routing::Topic(topic) => Kind::Trail(Arc::from(topic.as_str())),
            Routing::Tables(prefix) => {
                Kind::Tables { prefix: prefix.clone(), owners: HashMap::new() }
            }
        };
        Self { kind }
    }

    /// Whether each table has a topic of its own.
    pub(crate) const fn per_table(&self) -> bool {
        matches!(self.kind, Kind::Tables { .. })
    }

    /// The topic of a table's records.
    ///
    /// # Errors
    /// When another table has the same one, or Kafka takes no such name.
    pub(crate) fn topic(&mut self, table: &TableName) -> Result<Arc<str>, ConnectorError> {
        let (prefix, owners) = match &mut self.kind {
            Kind::Trail(trail) => return Ok(Arc::clone(trail)),
            Kind::Tables { prefix, owners } => (prefix, owners),
        };
        let topic = sanitized(&format!("{prefix}.{}.{}", table.schema, table.table));
        if topic.len() > LONGEST {
            return Err(refused(format!(
                "the topic of {table} would be {topic}, and Kafka takes no name above {LONGEST} bytes"
            )));
        }
        match owners.entry(Arc::from(topic)) {
            Entry::Vacant(free) => {
                let topic = Arc::clone(free.key());
                free.insert(table.clone());
                Ok(topic)
            }
            Entry::Occupied(taken) if taken.get() == table => Ok(Arc::clone(taken.key())),
            Entry::Occupied(taken) => Err(refused(format!(
                "the topic of {table} would be {}, which is the topic of {}",
                taken.key(),
                taken.get()
            ))),
        }
    }
}

/// Debezium's rule (`TopicNamingStrategy`): what Kafka does not take becomes `_`, once for each
/// UTF-16 unit.
fn sanitized(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars()
        .flat_map(|c| {
            let (shown, times) = if fits(c) { (c, 1) } else { ('_', c.len_utf16()) };
            std::iter::repeat_n(shown, times)
        })
        .collect()
}

fn refused(what: String) -> ConnectorError {
    ConnectorError::stop(
        code::TOPIC_NAME,
        ErrorKind::Configuration,
        what,
        "leave the table out of the captured ones, rename it, or set topic.routing=trail",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> TopicNames {
        TopicNames::new(&Routing::Tables("shop".to_owned()))
    }

    #[test]
    fn a_table_has_the_topic_that_debezium_gives_it() {
        for (schema, table, topic) in [
            ("public", "orders", "shop.public.orders"),
            ("public", "k Odd.ä", "shop.public.k_Odd._"),
            ("s", "a\u{1F600}b", "shop.s.a__b"),
        ] {
            let name = TableName::new(schema, table);
            assert_eq!(names().topic(&name).unwrap().as_ref(), topic);
        }
    }

    #[test]
    fn two_tables_never_share_a_topic() {
        let mut names = names();
        let (first, second) = (TableName::new("public", "a b"), TableName::new("public", "a_b"));
        let topic = names.topic(&first).unwrap();
        assert_eq!(names.topic(&first).unwrap(), topic);
        let error = names.topic(&second).unwrap_err();
        assert_eq!(error.code, code::TOPIC_NAME);
        assert!(error.what.contains("public.a b") && error.what.contains("public.a_b"), "{error}");
    }

    #[test]
    fn a_name_that_kafka_does_not_take_is_refused() {
        let long = TableName::new("s".repeat(130), "t".repeat(130));
        assert_eq!(names().topic(&long).unwrap_err().code, code::TOPIC_NAME);
    }

    #[test]
    fn a_trail_takes_all() {
        let mut names = TopicNames::new(&Routing::Trail("shop".to_owned()));
        assert_eq!(names.topic(&TableName::new("a", "b")).unwrap().as_ref(), "shop");
        assert!(!names.per_table());
    }
}
