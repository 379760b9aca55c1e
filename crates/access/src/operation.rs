//! What can be done, in Kafka's words and numbers (`AclOperation`).

use std::fmt;

/// Something that is done to a resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Read its records, or take part in a group.
    Read = 3,
    /// Write records to it.
    Write = 4,
    /// Make it.
    Create = 5,
    /// Delete it, or its records.
    Delete = 6,
    /// Change its shape, such as its number of partitions.
    Alter = 7,
    /// See that it is there, and how it stands.
    Describe = 8,
    /// What brokers ask of each other.
    ClusterAction = 9,
    /// See its settings.
    DescribeConfigs = 10,
    /// Change its settings.
    AlterConfigs = 11,
    /// Get a producer id without a transactional id.
    IdempotentWrite = 12,
}

impl Operation {
    /// All of them, with the names that grants use.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Read, "read"),
        (Self::Write, "write"),
        (Self::Create, "create"),
        (Self::Delete, "delete"),
        (Self::Alter, "alter"),
        (Self::Describe, "describe"),
        (Self::ClusterAction, "cluster-action"),
        (Self::DescribeConfigs, "describe-configs"),
        (Self::AlterConfigs, "alter-configs"),
        (Self::IdempotentWrite, "idempotent-write"),
    ];

    /// Kafka's number, which is a bit in the answers of KIP-430.
    pub const fn number(self) -> u32 {
        self as u32
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(operation, _)| operation)
    }

    /// Whether who may do this may do `other`, too: Kafka's implications.
    pub(crate) const fn implies(self, other: Self) -> bool {
        match other {
            Self::Describe => {
                matches!(
                    self,
                    Self::Describe | Self::Read | Self::Write | Self::Delete | Self::Alter
                )
            }
            Self::DescribeConfigs => matches!(self, Self::DescribeConfigs | Self::AlterConfigs),
            other => self as u32 == other as u32,
        }
    }

    /// Whether it only looks, and not at records.
    pub(crate) const fn only_describes(self) -> bool {
        matches!(self, Self::Describe | Self::DescribeConfigs)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.into_iter().find(|(operation, _)| operation == self);
        f.write_str(found.map_or("", |(_, name)| name))
    }
}
