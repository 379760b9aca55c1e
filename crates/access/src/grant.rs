//! A permission: one operation, on one resource or on all whose names begin alike.
//!
//! As text `read topic shop.orders`, `write topic shop.*`, `all group billing-*`, `create cluster`.

use std::fmt;
use std::str::FromStr;

use crate::error::AccessError;
use crate::operation::Operation;
use crate::resource::{Kind, Resource};

/// A permission of a user. There are no denials: what no grant and no role gives is refused.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Grant {
    /// None for every operation.
    operation: Option<Operation>,
    kind: Kind,
    pattern: Pattern,
}

/// Which names of a kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Pattern {
    Literal(String),
    Prefix(String),
}

impl Pattern {
    fn of(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.to_owned()),
            None => Self::Literal(text.to_owned()),
        }
    }

    fn covers(&self, name: &str) -> bool {
        match self {
            Self::Literal(literal) => literal == name,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}

impl Grant {
    /// Whether it allows this.
    pub fn covers(&self, operation: Operation, resource: Resource<'_>) -> bool {
        self.gives(operation) && self.reaches(resource)
    }

    /// Whether it allows this on some resource of the kind.
    pub(crate) fn covers_some(&self, operation: Operation, kind: Kind) -> bool {
        self.gives(operation) && self.kind == kind
    }

    fn gives(&self, operation: Operation) -> bool {
        self.operation.is_none_or(|own| own.implies(operation))
    }

    fn reaches(&self, resource: Resource<'_>) -> bool {
        let (kind, name) = (resource.kind(), resource.name());
        // Who may have a table may have its columns.
        let table = || name.rsplit_once('.').map_or("", |(table, _)| table);
        match (self.kind, kind) {
            (Kind::Cluster, Kind::Cluster) => true,
            (Kind::Table, Kind::Column) => self.pattern.covers(table()),
            (own, kind) => own == kind && self.pattern.covers(name),
        }
    }
}

impl FromStr for Grant {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let wrong = |why: &str| AccessError::Grant { grant: text.to_owned(), why: why.to_owned() };
        let mut words = text.split_whitespace();
        let operation = match words.next().ok_or_else(|| wrong("is empty"))? {
            "all" => None,
            word => Some(Operation::named(word).ok_or_else(|| {
                wrong("must begin with all, read, write, create, delete, alter, describe, alter-configs or describe-configs")
            })?),
        };
        let kind = words.next().and_then(Kind::named).ok_or_else(|| {
            wrong("must name a topic, group, transactional-id, connector, stream, table, column, or the cluster")
        })?;
        let name = words.next();
        if words.next().is_some() {
            return Err(wrong("has words behind the name"));
        }
        let pattern = match (kind, name) {
            (Kind::Cluster, None) => Pattern::Prefix(String::new()),
            (Kind::Cluster, Some(_)) => return Err(wrong("names a cluster: there is one")),
            (_, Some(name)) => Pattern::of(name),
            (_, None) => return Err(wrong("needs a name; * stands for every one")),
        };
        Ok(Self { operation, kind, pattern })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(operation) => write!(f, "{operation} {}", self.kind.name())?,
            None => write!(f, "all {}", self.kind.name())?,
        }
        match (&self.pattern, self.kind) {
            (_, Kind::Cluster) => Ok(()),
            (Pattern::Literal(name), _) => write!(f, " {name}"),
            (Pattern::Prefix(prefix), _) => write!(f, " {prefix}*"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn grant(text: &str) -> Grant {
        text.parse().unwrap()
    }

    #[test]
    fn a_grant_is_its_text() {
        for text in [
            "read topic shop.orders",
            "all topic *",
            "write topic shop.*",
            "create cluster",
            "read group a",
            "write transactional-id app-*",
            "read column public.orders.price",
        ] {
            assert_eq!(grant(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_none_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "empty"),
            ("eat topic a", "must begin"),
            ("read", "must name"),
            ("read tpoic a", "must name"),
            ("read topic", "needs a name"),
            ("read topic a b", "behind the name"),
            ("create cluster a", "there is one"),
        ] {
            let error = text.parse::<Grant>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_prefix_covers_what_begins_alike_and_a_name_itself_alone() {
        let (prefix, name) = (grant("read topic shop.*"), grant("read topic shop"));
        let covers = |grant: &Grant, topic| grant.covers(Operation::Read, Resource::Topic(topic));
        assert!(covers(&prefix, "shop.a") && !covers(&prefix, "shop"));
        assert!(covers(&name, "shop") && !covers(&name, "shop.a"));
        assert!(!name.covers(Operation::Read, Resource::Group("shop")));
    }

    #[test]
    fn a_table_has_its_columns() {
        let table = grant("read table public.orders");
        assert!(table.covers(Operation::Read, Resource::Column("public.orders.price")));
        assert!(!table.covers(Operation::Read, Resource::Column("public.customers.name")));
        let column = grant("read column public.orders.price");
        assert!(!column.covers(Operation::Read, Resource::Table("public.orders")));
    }

    #[test]
    fn who_may_read_or_write_may_describe() {
        let topic = Resource::Topic("a");
        for text in ["read topic a", "write topic a", "delete topic a", "alter topic a"] {
            assert!(grant(text).covers(Operation::Describe, topic), "{text}");
        }
        assert!(!grant("create topic a").covers(Operation::Describe, topic));
        assert!(grant("alter-configs topic a").covers(Operation::DescribeConfigs, topic));
        assert!(!grant("read topic a").covers(Operation::Write, topic));
    }
}
