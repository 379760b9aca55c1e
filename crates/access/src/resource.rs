//! What something is done to.

/// A kind of resource, as grants name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The server as a whole.
    Cluster,
    /// A topic.
    Topic,
    /// A consumer group.
    Group,
    /// A transactional id.
    TransactionalId,
    /// A connector.
    Connector,
    /// A data stream.
    Stream,
    /// A table in the records of a topic or stream, as `schema.table`.
    Table,
    /// A column of such a table, as `schema.table.column`.
    Column,
}

impl Kind {
    /// All of them, with their names in grants.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Cluster, "cluster"),
        (Self::Topic, "topic"),
        (Self::Group, "group"),
        (Self::TransactionalId, "transactional-id"),
        (Self::Connector, "connector"),
        (Self::Stream, "stream"),
        (Self::Table, "table"),
        (Self::Column, "column"),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(kind, _)| kind)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// Something that can be asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource<'a> {
    /// The server as a whole.
    Cluster,
    /// A topic.
    Topic(&'a str),
    /// A topic that one connector writes (rule R2).
    OwnedTopic(&'a str),
    /// A consumer group.
    Group(&'a str),
    /// A transactional id.
    TransactionalId(&'a str),
    /// A connector.
    Connector(&'a str),
    /// A data stream.
    Stream(&'a str),
    /// A table.
    Table(&'a str),
    /// A column, with its table in front.
    Column(&'a str),
}

/// Topics that Kafka and this server keep their own state in (rule A4).
const INTERNAL: [&str; 2] = ["__consumer_offsets", "__transaction_state"];
const INTERNAL_PREFIX: &str = "highwater.";
/// Configurations of connectors lie in it, with their passwords.
const SECRETS: &str = "highwater.configs";

/// Whether a topic is the server's own.
pub fn is_internal(topic: &str) -> bool {
    topic.starts_with(INTERNAL_PREFIX) || INTERNAL.contains(&topic)
}

impl<'a> Resource<'a> {
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Cluster => Kind::Cluster,
            Self::Topic(_) | Self::OwnedTopic(_) => Kind::Topic,
            Self::Group(_) => Kind::Group,
            Self::TransactionalId(_) => Kind::TransactionalId,
            Self::Connector(_) => Kind::Connector,
            Self::Stream(_) => Kind::Stream,
            Self::Table(_) => Kind::Table,
            Self::Column(_) => Kind::Column,
        }
    }

    pub(crate) const fn name(self) -> &'a str {
        match self {
            Self::Cluster => "",
            Self::Topic(name)
            | Self::OwnedTopic(name)
            | Self::Group(name)
            | Self::TransactionalId(name)
            | Self::Connector(name)
            | Self::Stream(name)
            | Self::Table(name)
            | Self::Column(name) => name,
        }
    }

    pub(crate) fn is_internal(self) -> bool {
        self.kind() == Kind::Topic && is_internal(self.name())
    }

    pub(crate) const fn is_owned(self) -> bool {
        matches!(self, Self::OwnedTopic(_))
    }

    pub(crate) fn holds_secrets(self) -> bool {
        self.kind() == Kind::Topic && self.name() == SECRETS
    }
}
