//! What a session may do, as every request asks it.

use std::sync::Arc;

use highwater_access::{Kind, Operation, Principal, Resource};

use crate::node::Node;
use crate::session::{Origin, Session};

/// Stands between a session and the node.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) node: Arc<Node>,
    pub(crate) session: Arc<Session>,
}

impl Gate {
    /// Whether who logged in has been removed since.
    pub(crate) fn is_gone(&self) -> bool {
        let Session { origin, principal, .. } = &*self.session;
        *origin == Origin::Login && self.node.config.access.is_gone(principal)
    }

    pub(crate) fn may(&self, operation: Operation, resource: Resource<'_>) -> bool {
        self.node.config.access.allow(&self.session.principal, operation, resource)
    }

    /// Whether it may do it to some resource of the kind.
    pub(crate) fn may_somewhere(&self, operation: Operation, kind: Kind) -> bool {
        self.node.config.access.allow_somewhere(&self.session.principal, operation, kind)
    }

    pub(crate) fn may_topic(&self, operation: Operation, topic: &str) -> bool {
        self.may(operation, self.topic(topic))
    }

    pub(crate) fn may_group(&self, operation: Operation, group: &str) -> bool {
        self.may(operation, Resource::Group(group))
    }

    pub(crate) fn may_transact(&self, operation: Operation, transactional_id: &str) -> bool {
        self.may(operation, Resource::TransactionalId(transactional_id))
    }

    /// Making a topic takes the right to make any, or one of this name.
    pub(crate) fn may_create(&self, topic: &str) -> bool {
        // The cluster's right does not reach what is the server's own.
        let any =
            !highwater_access::is_internal(topic) && self.may(Operation::Create, Resource::Cluster);
        any || self.may_topic(Operation::Create, topic)
    }

    /// Whether it may say who alone writes a topic, or unsay it.
    pub(crate) fn may_own(&self, topic: &str) -> bool {
        self.may(Operation::Write, Resource::OwnedTopic(topic))
    }

    fn topic<'a>(&self, name: &'a str) -> Resource<'a> {
        // Asked for each Produce: the server's own parts, which write most, need no look.
        let looks = self.session.principal != Principal::Server;
        let found = looks.then(|| self.node.log.topic(name)).flatten();
        match found.is_some_and(|topic| topic.config.owner().is_some()) {
            true => Resource::OwnedTopic(name),
            false => Resource::Topic(name),
        }
    }

    /// What it may do to a topic, a bit an operation (KIP-430).
    pub(crate) fn topic_operations(&self, topic: &str) -> i32 {
        use Operation::{
            Alter, AlterConfigs, Create, Delete, Describe, DescribeConfigs, Read, Write,
        };
        let all = [Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs];
        bits(all.into_iter().filter(|operation| self.may_topic(*operation, topic)))
    }

    /// What it may do to the cluster.
    pub(crate) fn cluster_operations(&self) -> i32 {
        use Operation::{
            Alter, AlterConfigs, ClusterAction, Create, Describe, DescribeConfigs, IdempotentWrite,
        };
        let all = [
            Create,
            Alter,
            Describe,
            ClusterAction,
            DescribeConfigs,
            AlterConfigs,
            IdempotentWrite,
        ];
        bits(all.into_iter().filter(|operation| self.may(*operation, Resource::Cluster)))
    }

    /// What it may do to a group.
    pub(crate) fn group_operations(&self, group: &str) -> i32 {
        use Operation::{AlterConfigs, Delete, Describe, DescribeConfigs, Read};
        let all = [Read, Delete, Describe, DescribeConfigs, AlterConfigs];
        bits(all.into_iter().filter(|operation| self.may_group(*operation, group)))
    }
}

fn bits(operations: impl Iterator<Item = Operation>) -> i32 {
    operations.fold(0, |bits, operation| bits | 1 << operation.number())
}
