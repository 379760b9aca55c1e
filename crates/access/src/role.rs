//! What somebody may see and steer, whatever it is. Whose records one may read and write, grants say.

use serde::{Deserialize, Serialize};

use crate::operation::Operation;
use crate::resource::{Kind, Resource};

/// A role; each has what the one before it has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees that things are there, how they stand, and their settings. Reads no record.
    View,
    /// Makes, changes and deletes topics, groups, connectors and streams.
    Operate,
    /// Everything, the server's own topics included.
    Admin,
}

impl Role {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::View, "view"), (Self::Operate, "operate"), (Self::Admin, "admin")];

    /// The role of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(role, _)| role)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(role, _)| *role == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn gives(self, operation: Operation, resource: Resource<'_>) -> bool {
        match self {
            Self::Admin => true,
            _ if operation.only_describes() => true,
            Self::View => false,
            Self::Operate => steers(operation, resource),
        }
    }
}

fn steers(operation: Operation, resource: Resource<'_>) -> bool {
    use Operation::{Alter, AlterConfigs, Create, Delete};
    match resource.kind() {
        Kind::Cluster => operation == Create,
        Kind::Topic => {
            !resource.is_internal() && matches!(operation, Create | Delete | Alter | AlterConfigs)
        }
        Kind::Group => operation == Delete,
        // Its configuration says what is read, with whose password: that is for administrators.
        Kind::Connector => operation == Alter,
        Kind::Stream => matches!(operation, Create | Delete | Alter | AlterConfigs),
        Kind::TransactionalId | Kind::Table | Kind::Column => false,
    }
}
