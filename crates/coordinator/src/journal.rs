//! The one writer of a state topic: what it is given is written in that order, takes effect in that order,
//! and takes effect only once it is safe on disk. What comes while an fsync is under way shares the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use highwater_log::{EndMarker, LogError};
use highwater_protocol::ErrorCode;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_blocking;

use crate::state_topic::{StateRecord, StateTopic, Transaction, Written};
use crate::{Clock, CoordinatorError, Now};

/// Bytes of records that go into one batch, unless one entry alone has more. It fits the default
/// `max.message.bytes` of a consumer.
const BATCH_BYTES: usize = 512 << 10;
/// Bytes that may wait to be written. Who would add more is told to come again.
const WAITING_BYTES: usize = 64 << 20;
/// Bytes that an entry takes besides its records, roughly.
const ENTRY_BYTES: usize = 256;

/// What is to be written.
pub(crate) enum Write {
    /// Records, all or none.
    Records(Vec<StateRecord>),
    /// Records that are made once everything before them has taken effect.
    Late(Box<dyn FnOnce() -> Vec<StateRecord> + Send>),
    /// Records of a transaction, if it is open still.
    InTransaction {
        transaction: Transaction,
        records: Vec<StateRecord>,
        still_open: Box<dyn Fn() -> Result<(), ErrorCode> + Send>,
    },
    /// The end of a transaction.
    Marker(EndMarker),
}

/// Something to write, and what is to happen then: with the offset of its first record, or with why it is
/// not in the topic.
pub(crate) struct Entry {
    pub(crate) write: Write,
    pub(crate) done: Done,
}

pub(crate) type Done = Box<dyn FnOnce(Result<i64, NotWritten>) + Send>;

/// Why an entry is not in the topic.
#[derive(Clone, Debug)]
pub(crate) enum NotWritten {
    /// The transaction it belongs to takes it no more.
    Refused(ErrorCode),
    /// The log did not take it.
    Failed(CoordinatorError),
}

/// Where entries are handed in.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: UnboundedSender<(Entry, usize)>,
    waiting: Arc<AtomicUsize>,
}

/// The other end, to be run.
pub(crate) struct Writer {
    topic: StateTopic,
    clock: Clock,
    entries: UnboundedReceiver<(Entry, usize)>,
    waiting: Arc<AtomicUsize>,
}

/// A batch in the making.
struct Batch {
    content: Content,
    /// Each with the place of its first record in the batch.
    done: Vec<(i64, Done)>,
}

enum Content {
    Records { records: Vec<StateRecord>, transaction: Option<Transaction>, bytes: usize },
    Marker(EndMarker),
}

impl NotWritten {
    pub(crate) fn kafka_code(&self) -> ErrorCode {
        match self {
            Self::Refused(code) => *code,
            Self::Failed(error) => error.kafka_code(),
        }
    }
}

impl From<CoordinatorError> for NotWritten {
    fn from(error: CoordinatorError) -> Self {
        Self::Failed(error)
    }
}

/// A journal of a topic.
pub(crate) fn journal(topic: StateTopic, clock: Clock) -> (Journal, Writer) {
    let (sender, entries) = unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let journal = Journal { entries: sender, waiting: Arc::clone(&waiting) };
    (journal, Writer { topic, clock, entries, waiting })
}

impl Journal {
    /// Whether so much waits to be written that no more may come.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > WAITING_BYTES
    }

    /// Hands an entry in. Those that wait take effect in the order in which this was called.
    pub(crate) fn submit(&self, write: Write, done: Done) {
        let bytes = ENTRY_BYTES + write.bytes();
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        // Without a writer the server has stopped, and nobody waits.
        let _ = self.entries.send((Entry { write, done }, bytes));
    }
}

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Self::Records(records) | Self::InTransaction { records, .. } => size(records),
            Self::Late(_) | Self::Marker(_) => 0,
        }
    }
}

impl Writer {
    /// Writes until nobody can hand in any more.
    pub(crate) async fn run(mut self) {
        while let Some(first) = self.entries.recv().await {
            let mut next = Some(first);
            while let Some((entry, bytes)) = next.take() {
                self.waiting.fetch_sub(bytes, Ordering::Relaxed);
                let (batches, left) = self.gather(entry);
                self.write(batches).await;
                next = left;
            }
        }
    }

    /// The entry with those that wait behind it, up to one that wants to see the effect of all before.
    fn gather(&mut self, first: Entry) -> (Vec<Batch>, Option<(Entry, usize)>) {
        let mut batches = Vec::new();
        let mut bytes = add(&mut batches, first);
        while bytes < BATCH_BYTES {
            match self.entries.try_recv() {
                Ok((entry, size)) if matches!(entry.write, Write::Late(_)) => {
                    return (batches, Some((entry, size)));
                }
                Ok((entry, size)) => {
                    self.waiting.fetch_sub(size, Ordering::Relaxed);
                    bytes += ENTRY_BYTES + add(&mut batches, entry);
                }
                Err(_) => break,
            }
        }
        (batches, None)
    }

    async fn write(&self, batches: Vec<Batch>) {
        let now = self.clock.now();
        let (mut contents, mut done) = (Vec::new(), Vec::new());
        for batch in batches {
            contents.push(batch.content);
            done.push(batch.done);
        }
        let topic = self.topic.clone();
        let append = move || contents.iter().map(|content| content.append(&topic, now)).collect();
        let written: Vec<_> = match spawn_blocking(append).await {
            Ok(written) => written,
            // The runtime ends, or a fault that was told already.
            Err(_) => done.iter().map(|_| Err(LogError::Closed.into())).collect(),
        };
        for (written, done) in written.into_iter().zip(done) {
            settle(self.topic.name(), written, done).await;
        }
    }
}

/// Adds an entry to the last batch or to a new one; answers how many bytes it brought.
fn add(batches: &mut Vec<Batch>, entry: Entry) -> usize {
    let Entry { write, done } = entry;
    match write {
        Write::Records(records) => add_records(batches, records, done),
        Write::Late(make) => add_records(batches, make(), done),
        Write::InTransaction { transaction, records, still_open } => {
            let bytes = size(&records);
            match still_open() {
                Ok(()) => {
                    let transaction = Some(transaction);
                    let content = Content::Records { records, transaction, bytes };
                    batches.push(Batch { content, done: vec![(0, done)] });
                }
                Err(code) => done(Err(NotWritten::Refused(code))),
            }
            bytes
        }
        Write::Marker(marker) => {
            batches.push(Batch { content: Content::Marker(marker), done: vec![(0, done)] });
            0
        }
    }
}

fn add_records(batches: &mut Vec<Batch>, records: Vec<StateRecord>, done: Done) -> usize {
    let more = size(&records);
    if let Some(Batch {
        content: Content::Records { records: together, transaction: None, bytes },
        done: others,
    }) = batches.last_mut()
        && *bytes + more <= BATCH_BYTES
    {
        others.push((i64::try_from(together.len()).unwrap_or(i64::MAX), done));
        together.extend(records);
        *bytes += more;
        return more;
    }
    let content = Content::Records { records, transaction: None, bytes: more };
    batches.push(Batch { content, done: vec![(0, done)] });
    more
}

fn size(records: &[StateRecord]) -> usize {
    let one = |record: &StateRecord| {
        record.key.len() + record.value.as_ref().map_or(0, bytes::Bytes::len) + 32
    };
    records.iter().map(one).sum()
}

impl Content {
    /// None where there is nothing to write. Blocks on the disk.
    fn append(&self, topic: &StateTopic, now: Now) -> Result<Option<Written>, CoordinatorError> {
        match self {
            Self::Records { records, .. } if records.is_empty() => Ok(None),
            Self::Records { records, transaction, .. } => {
                topic.append(records, *transaction, now.wall_ms).map(Some)
            }
            Self::Marker(marker) => topic.append_marker(*marker, now.wall_ms).map(Some),
        }
    }
}

/// Waits until a batch is safe, then lets it take effect.
async fn settle(
    topic: &str,
    written: Result<Option<Written>, CoordinatorError>,
    done: Vec<(i64, Done)>,
) {
    let safe = match written {
        Ok(None) => Ok(-1),
        Ok(Some(written)) => written.durable().await.map(|()| written.first_offset()),
        Err(error) => Err(error),
    };
    if let Err(error) = &safe {
        tracing::warn!(topic, code = error.code(), %error, "state was not written; its clients try again");
    }
    for (place, done) in done {
        done(safe.clone().map(|first| first.saturating_add(place)).map_err(NotWritten::from));
    }
}
