//! Whatever is torn by a restart, the same changes come out. Tests of the journal.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;

use super::journal_record::JournalRecord;
use super::journal_world::{Action, Broken, Position, Record, Row, Task, redo};
use crate::RedoThread;

/// What happens while a task runs.
#[derive(Clone, Debug)]
enum Event {
    Mine(usize),
    Flush(usize),
    Heartbeat,
    /// A position is stored, of those that were given out.
    Stored(Index),
}

/// A task that is killed: which of its records were appended, and which position was stored.
#[derive(Clone, Debug)]
struct Run {
    events: Vec<Event>,
    appended: Index,
    stored: Index,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (0..3_u8).prop_map(|row| Action::Insert { row }),
        8 => (0..2_u8).prop_map(|row| Action::Lob { row }),
        3 => (0..3_u8, any::<bool>())
            .prop_map(|(row, is_insert)| Action::Undo { row, is_insert }),
        1 => Just(Action::Commit),
        1 => Just(Action::Rollback),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..16_usize).prop_map(Event::Mine),
        4 => (0..4_usize).prop_map(Event::Flush),
        1 => Just(Event::Heartbeat),
        2 => any::<Index>().prop_map(Event::Stored),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    let events = prop::collection::vec(event(), 1..12);
    (events, any::<Index>(), any::<Index>()).prop_map(|(events, appended, stored)| Run {
        events,
        appended,
        stored,
    })
}

/// Changes by thread: two threads are in no order.
type Published = BTreeMap<RedoThread, Vec<String>>;

/// What is outside of tasks, and survives them.
struct Cluster {
    directory: tempfile::TempDir,
    redo: Vec<Row>,
    broken: Broken,
    position: Position,
    topic: Vec<JournalRecord>,
    /// The start that wrote each record of the topic.
    starts: Vec<usize>,
    /// Starts of which a position was stored.
    acknowledged: BTreeSet<usize>,
    published: Published,
}

impl Cluster {
    fn new(redo: &[Row], broken: Broken) -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            redo: redo.to_vec(),
            broken,
            position: Position::first(),
            topic: Vec::new(),
            starts: Vec::new(),
            acknowledged: BTreeSet::new(),
            published: Published::new(),
        }
    }

    fn start(&self) -> Task {
        let directory = self.directory.path();
        let task = Task::start(&self.redo, &self.position, &self.topic, directory, self.broken);
        for place in &task.restored {
            let start = self.starts[*place as usize];
            assert!(self.acknowledged.contains(&start), "a chunk of a start that never counted");
        }
        task
    }

    /// Keeps what was appended and stored of a task that ends.
    fn keep(&mut self, number: usize, task: &Task, appended: usize, stored: usize) {
        for (given, place) in task.given[..appended].iter().zip(0..) {
            match &given.record {
                Record::Journal(record) => {
                    self.topic.push(record.clone());
                    self.starts.push(number);
                }
                Record::Change(thread, change) if place < stored => {
                    self.published.entry(*thread).or_default().push(change.clone());
                }
                Record::Change(..) | Record::Heartbeat => {}
            }
        }
        if let Some(last) = stored.checked_sub(1) {
            self.position = task.given[last].position.clone();
            self.acknowledged.insert(number);
        }
    }

    fn run(&mut self, number: usize, run: &Run) {
        let mut task = self.start();
        for event in &run.events {
            match event {
                Event::Mine(count) => drop(task.mine(*count)),
                Event::Flush(transaction) => task.flush(*transaction),
                Event::Heartbeat => task.heartbeat(),
                Event::Stored(given) => task.stored(given.index(task.given.len())),
            }
        }
        let between = |index: &Index, from: usize, to: usize| from + index.index(to - from + 1);
        let appended = between(&run.appended, task.stored, task.given.len());
        let stored = between(&run.stored, task.stored, appended);
        self.keep(number, &task, appended, stored);
    }

    /// Runs to the end, and says how many transactions are open then.
    fn finish(&mut self, number: usize) -> usize {
        let mut task = self.start();
        task.finish();
        let all = task.given.len();
        self.keep(number, &task, all, all);
        task.open()
    }
}

fn check(actions: &[(u8, Action)], runs: &[Run], broken: Broken) {
    let redo = redo(actions);
    let mut cluster = Cluster::new(&redo, broken);
    for (run, number) in runs.iter().zip(0..) {
        cluster.run(number, run);
    }
    let open = cluster.finish(runs.len());
    // A task that is never killed, without a journal.
    let mut undisturbed = Cluster::new(&redo, Broken::default());
    assert_eq!(open, undisturbed.finish(0), "a transaction that ended came back");
    assert_eq!(cluster.published, undisturbed.published);
    assert!(cluster.start().open() <= open, "a transaction that ended has chunks");
}

/// `HW_CASES` scales proofs.
fn cases() -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn restarts_change_nothing(
        actions in prop::collection::vec((0..4_u8, action()), 1..80),
        runs in prop::collection::vec(run(), 1..6),
    ) {
        check(&actions, &runs, Broken::default());
    }
}
