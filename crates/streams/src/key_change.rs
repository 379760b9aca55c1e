//! A changed key on a topic of a table is a delete, a tombstone and a create, the parts of one event;
//! a stream that reads all of them shows one update (rule R3).
//!
//! The delete is held until its create comes, and waits for it only where the new key chooses the
//! partition that is read. Its writer puts nothing of another event in between, so another record
//! that is new says that the create went elsewhere: the number of partitions was another one then.
//! A position is given out for the create alone; whoever resumes before it reads the delete again.

use highwater_connector::Hw;
use highwater_kafka::ReadRecord;

use crate::batch::Sent;
use crate::change::{Change, Operation};

/// The delete of a key change whose create is still to come.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) record: ReadRecord,
    pub(crate) hw: Hw,
    /// Its position, given out only if it has to stand alone.
    pub(crate) sent: Sent,
}

/// What a record is to the delete that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The same delete, delivered again: its source was stopped before the create was safe.
    Again,
    Tombstone,
    Create,
    /// None of this event.
    Other,
}

impl Held {
    pub(crate) fn part(&self, change: &Change<'_>) -> Part {
        let (mine, other) = (&self.hw, &change.hw);
        let same = (mine.generation, &mine.lane, &mine.position, mine.index)
            == (other.generation, &other.lane, &other.position, other.index);
        match change.operation {
            _ if !same => Part::Other,
            Operation::Delete => Part::Again,
            Operation::Tombstone => Part::Tombstone,
            Operation::Insert => Part::Create,
            _ => Part::Other,
        }
    }
}
