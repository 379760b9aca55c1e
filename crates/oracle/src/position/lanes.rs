//! How far each redo thread is.

use std::collections::BTreeSet;

use super::ResumePoint;
use crate::{Code, OracleError, RedoPoint, RedoThread, TransactionKey};

/// A COMMIT row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitPoint {
    /// Its transaction.
    pub key: TransactionKey,
    /// Where it stands.
    pub at: RedoPoint,
}

/// How many changes of a commit were acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acknowledged {
    /// All, however many there are.
    All,
    /// The first `changes`.
    First {
        /// How many.
        changes: u64,
        /// Of how many; `None` in an offset that does not say it.
        of: Option<u64>,
    },
}

impl Acknowledged {
    /// How many changes to skip; more than there are means all.
    pub const fn changes(self) -> u64 {
        match self {
            // The greatest number that an offset takes.
            Self::All => i64::MAX as u64,
            Self::First { changes, .. } => changes,
        }
    }

    /// Whether all changes were acknowledged, as far as that is known.
    pub const fn is_all(self) -> bool {
        match self {
            Self::All => true,
            Self::First { changes, of: Some(of) } => changes >= of,
            Self::First { of: None, .. } => false,
        }
    }

    /// Counts none where only a part was acknowledged; answers whether that was so.
    pub(super) const fn rewind(&mut self) -> bool {
        match *self {
            Self::First { changes, of } if changes > 0 && !self.is_all() => {
                *self = Self::First { changes: 0, of };
                true
            }
            _ => false,
        }
    }
}

/// The last commit of a thread of which something was acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitMark {
    /// The commit. Where its row had no address, its address is that of the row before it.
    pub commit: CommitPoint,
    /// See [`Acknowledged`]. Only a part, in another lane than the last one, is what a restart leaves
    /// when the other thread's commits come first.
    pub acknowledged: Acknowledged,
}

/// How far a redo thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lane {
    /// The thread; [`Lanes::UNNAMED`] in a position of one thread that does not say which.
    pub thread: RedoThread,
    /// From where its redo is read again, inclusive.
    pub resume: ResumePoint,
    /// See [`CommitMark`]; `None` before the first.
    pub mark: Option<CommitMark>,
}

/// How far all redo threads are: at least one lane, by thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    last: Option<RedoThread>,
}

impl Lanes {
    /// Stands for a thread that is not named. Oracle counts from 1.
    pub const UNNAMED: RedoThread = RedoThread(0);

    /// Of one thread.
    pub fn one(lane: Lane) -> Self {
        Self { lanes: vec![lane], last: lane.mark.map(|_| lane.thread) }
    }

    /// All threads at `resume`, without a commit.
    pub fn starting(resume: ResumePoint, threads: &BTreeSet<RedoThread>) -> Self {
        let lane = |thread| Lane { thread, resume, mark: None };
        let mut lanes: Vec<Lane> = threads.iter().copied().map(lane).collect();
        if lanes.is_empty() {
            lanes.push(lane(Self::UNNAMED));
        }
        Self { lanes, last: None }
    }

    /// From lanes by thread; `None` without any.
    pub(super) fn of(mut lanes: Vec<Lane>) -> Option<Self> {
        lanes.sort_by_key(|lane| lane.thread);
        lanes.dedup_by_key(|lane| lane.thread);
        (!lanes.is_empty()).then_some(Self { lanes, last: None })
    }

    /// The lanes for these captured threads. A lane of a thread that is not captured any more stays:
    /// redo of it may still be unread. A new thread begins where the lowest one resumes, since a row
    /// of a thread that was not captured stops the task before anything of its step is applied.
    ///
    /// # Errors
    /// CDC-5001 when the position is of one thread and others are captured: it does not say how far
    /// those are.
    pub(super) fn captured(mut self, threads: &BTreeSet<RedoThread>) -> Result<Self, OracleError> {
        let [lane] = &mut self.lanes[..] else {
            self.add(threads);
            return Ok(self);
        };
        let mut captured = threads.iter().copied();
        match (captured.next(), captured.next()) {
            (Some(thread), None) if [thread, Self::UNNAMED].contains(&lane.thread) => {
                lane.thread = thread;
                lane.mark.iter_mut().for_each(|mark| mark.commit.at.thread = thread);
                self.last = lane.mark.map(|_| thread);
                Ok(self)
            }
            _ => Err(other_threads(lane.thread, threads)),
        }
    }

    fn add(&mut self, threads: &BTreeSet<RedoThread>) {
        let resume = self.unlisted();
        let new = threads.iter().filter(|thread| self.get(**thread).is_none());
        let new: Vec<Lane> = new.map(|&thread| Lane { thread, resume, mark: None }).collect();
        self.lanes.extend(new);
        self.lanes.sort_by_key(|lane| lane.thread);
    }

    /// Whether there are several, each of which is then stored.
    pub fn are_several(&self) -> bool {
        self.lanes.len() > 1
    }

    /// All lanes, by thread.
    pub fn iter(&self) -> std::slice::Iter<'_, Lane> {
        self.lanes.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Lane> {
        self.lanes.iter_mut()
    }

    /// The lane of a thread.
    pub fn get(&self, thread: RedoThread) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.thread == thread)
    }

    pub(super) fn get_mut(&mut self, thread: RedoThread) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.thread == thread)
    }

    /// The commit that was acknowledged last, over all threads.
    pub fn last(&self) -> Option<&CommitMark> {
        self.get(self.last?)?.mark.as_ref()
    }

    pub(super) const fn set_last(&mut self, thread: Option<RedoThread>) {
        self.last = thread;
    }

    /// Where all threads resume, in the flat fields: the least SCN. The address is, of several
    /// threads, that of the lowest which has one. Nothing is read by it then: it is there to be
    /// removed by whoever moves the SCN.
    pub fn lowest(&self) -> ResumePoint {
        let addressed = self.lanes.iter().filter(|lane| lane.resume.address.is_some());
        let address = lowest_of(addressed).and_then(|resume| resume.address);
        ResumePoint { address, ..lowest_of(self.lanes.iter()).unwrap_or_default() }
    }

    /// Where redo of a thread is read from that has no lane of its own.
    pub(super) fn unlisted(&self) -> ResumePoint {
        match &self.lanes[..] {
            [lane] => lane.resume,
            _ => ResumePoint { address: None, ..self.lowest() },
        }
    }
}

fn lowest_of<'a>(lanes: impl Iterator<Item = &'a Lane>) -> Option<ResumePoint> {
    lanes.map(|lane| lane.resume).min_by_key(|resume| resume.scn)
}

fn other_threads(stored: RedoThread, threads: &BTreeSet<RedoThread>) -> OracleError {
    let captured: Vec<String> = threads.iter().map(RedoThread::to_string).collect();
    let of = match stored {
        Lanes::UNNAMED => "one redo thread".to_owned(),
        thread => format!("redo thread {thread} alone"),
    };
    OracleError::new(
        Code::Topology,
        format!(
            "the stored position is of {of} and says nothing about others; enabled are redo threads \
             {}",
            captured.join(", ")
        ),
        "delete the offset and begin again with a snapshot, or disable the redo threads that are not \
         in use",
    )
}
