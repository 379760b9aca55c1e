//! A model of the redo of an instance and of an engine that reads it, to prove the position with: the
//! engine keeps open transactions, journals some, stops anywhere, and delivers through [`Progress`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use highwater_connector::SourceOffset;
use proptest::prelude::*;

use super::*;
use crate::{RedoAddress, RedoPoint, Scn, TransactionKey, Xid};

/// What a row says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The change of this number in its transaction.
    Change(u64),
    Commit,
    Rollback,
}

#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) at: RedoPoint,
    pub(super) key: TransactionKey,
    pub(super) kind: Kind,
}

/// On one line, so that a failing history can be read.
impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at: RedoPoint { thread, scn, address }, key, kind } = self;
        let address = address.map(|address| address.to_string()).unwrap_or_default();
        write!(f, "[thread {thread} scn {scn} {address}: {key} {kind:?}]")
    }
}

/// A delivered change: its transaction, and its number there.
pub(super) type Delivered = BTreeMap<RedoThread, Vec<(TransactionKey, u64)>>;

/// The redo of each thread in redo order.
#[derive(Clone, Debug)]
pub(super) struct History(pub(super) BTreeMap<RedoThread, Vec<Row>>);

/// Draws for what a life does, from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Draws(pub(super) u64);

impl Draws {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((word ^ (word >> 31)) % bound.max(1) as u64).unwrap()
    }

    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Where a test starts: the SCN of nothing.
pub(super) const START: ResumePoint = ResumePoint { scn: Scn(1), address: None };

/// One step of a script: thread, slot, what happens, how the clock moves, how late the redo is.
type Step = (u32, u32, u8, u64, u64);

/// Histories of one to three threads.
pub(super) fn histories() -> impl Strategy<Value = History> {
    let late = prop_oneof![3 => Just(0_u64), 1 => 1..15_u64];
    (1..=3_u32).prop_flat_map(move |threads| {
        let step = (1..=threads, 0..4_u32, 0..20_u8, 0..3_u64, late.clone());
        prop::collection::vec(step, 1..60).prop_map(move |steps| history(threads, &steps))
    })
}

fn history(threads: u32, steps: &[Step]) -> History {
    let mut rows: BTreeMap<RedoThread, Vec<Row>> =
        (1..=threads).map(|thread| (RedoThread(thread), Vec::new())).collect();
    let mut open: BTreeMap<(u32, u32), (TransactionKey, u64, Scn)> = BTreeMap::new();
    let (mut clock, mut greatest, mut bare) = (Scn(100), Scn(100), Scn(0));
    for (number, &(thread, slot, action, tick, late)) in (1..).zip(steps) {
        clock.0 += tick;
        let new = Xid { usn: thread, slot, sequence: number };
        let entry = open.entry((thread, slot));
        let (key, changes, last) =
            entry.or_insert((TransactionKey { container: 3, xid: new }, 0, Scn(0)));
        let ends = *changes > 0 && action >= 12;
        let mut scn = Scn(clock.0 - late);
        let kind = match action {
            19 if ends => Kind::Rollback,
            _ if ends => Kind::Commit,
            _ => Kind::Change(*changes),
        };
        if ends {
            scn = scn.max(*last);
        }
        // Only its SCN says where a row without address stands, so none comes late around it.
        let has_address = action != 18 || !ends;
        scn = scn.max(bare.next());
        if !has_address {
            scn = greatest.max(clock).next();
            (clock, bare) = (scn.next(), scn);
        }
        greatest = greatest.max(scn);
        let of_thread = rows.get_mut(&RedoThread(thread)).unwrap();
        let address = has_address.then(|| place(thread, of_thread.len() as u64));
        of_thread.push(Row {
            at: RedoPoint { thread: RedoThread(thread), scn, address },
            key: *key,
            kind,
        });
        (*changes, *last) = (*changes + 1, scn.max(*last));
        if ends {
            open.remove(&(thread, slot));
        }
    }
    History(rows)
}

/// Sequences of the threads overlap.
fn place(thread: u32, row: u64) -> RedoAddress {
    let sequence = [50, 7, 51][thread as usize - 1] + row / 6;
    RedoAddress { sequence, block: row % 6 / 2, byte: 16, ssn: row % 2 }
}

impl History {
    pub(super) fn threads(&self) -> BTreeSet<RedoThread> {
        self.0.keys().copied().collect()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.values().flatten()
    }

    /// The commits of a thread in redo order, each with its changes.
    pub(super) fn commits(&self, thread: RedoThread) -> Vec<(&Row, Vec<&Row>)> {
        let rows = &self.0[&thread];
        let of = |key| {
            let is_its = move |row: &&Row| row.key == key && matches!(row.kind, Kind::Change(_));
            rows.iter().filter(is_its).collect()
        };
        let commits = rows.iter().filter(|row| row.kind == Kind::Commit);
        commits.map(|commit| (commit, of(commit.key))).collect()
    }

    /// Changes of the commits of each thread that are wanted, in order.
    pub(super) fn changes(&self, mut is_wanted: impl FnMut(&Row, &Row) -> bool) -> Delivered {
        let mut of = |thread| {
            let mut wanted = Vec::new();
            for (commit, changes) in self.commits(thread) {
                for change in changes {
                    let Kind::Change(number) = change.kind else { continue };
                    wanted.extend(is_wanted(commit, change).then_some((change.key, number)));
                }
            }
            wanted
        };
        self.0.keys().map(|&thread| (thread, of(thread))).collect()
    }
}

/// Rows that a cursor selects, as the query does: by address from its mark on, else by SCN.
pub(super) fn is_selected(row: &Row, cursor: &Cursor) -> bool {
    let mark = match &cursor.marks {
        Marks::None => None,
        Marks::AnyThread(address) => Some(*address),
        Marks::Threads(threads) => threads.get(&row.at.thread).copied(),
    };
    match (row.at.address, mark) {
        (Some(address), Some(mark)) => address >= mark,
        _ => row.at.scn >= cursor.scn,
    }
}

/// A record of the engine, with its position.
#[derive(Debug)]
pub(super) struct Emission {
    pub(super) what: What,
    pub(super) position: Arc<dyn highwater_connector::Position>,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Change(RedoThread, TransactionKey, u64),
    Chunk(Chunk),
    /// The chunks of the transaction are void.
    Tombstone(TransactionKey),
    /// This chunk is void.
    Stale(u64),
    Heartbeat,
}

/// A part of an open transaction in the journal.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    id: u64,
    key: TransactionKey,
    generation: u64,
    first: RedoPoint,
    frames: Vec<Row>,
}

/// An open transaction.
#[derive(Clone, Debug)]
struct Open {
    first: RedoPoint,
    rows: Vec<Row>,
    journaled: usize,
}

impl Open {
    fn bound(&self) -> RedoPoint {
        self.journaled.checked_sub(1).map_or(self.first, |last| self.rows[last].at)
    }
}

/// An engine from its start to its end.
struct Life<'a> {
    history: &'a History,
    draws: &'a mut Draws,
    progress: Progress,
    cursor: Cursor,
    open: BTreeMap<TransactionKey, Open>,
    emissions: Vec<Emission>,
}

/// Runs an engine from a stored offset to the end of the redo.
pub(super) fn run(
    history: &History,
    offset: &SourceOffset,
    journal: Option<&[Chunk]>,
    draws: &mut Draws,
) -> Result<Vec<Emission>, OracleError> {
    let position = Position::read(offset)?;
    let (cursor, loaded) = (position.cursor(), Arc::new(position.clone()));
    let progress = Progress::start(position, &history.threads())?;
    let mut life =
        Life { history, draws, progress, cursor, open: BTreeMap::new(), emissions: Vec::new() };
    for chunk in journal.unwrap_or_default() {
        life.load(chunk, &loaded);
    }
    let start = Arc::new(life.progress.position().clone());
    life.emissions.push(Emission { what: What::Heartbeat, position: start });
    life.read(journal.is_some())?;
    Ok(life.emissions)
}

impl Life<'_> {
    /// Frames that are read again are left out. A chunk without any other, or of a later generation, is
    /// void; that is said under the loaded position, so that its generation is stored afterwards.
    fn load(&mut self, chunk: &Chunk, loaded: &Arc<Position>) {
        let resume = self.progress.position().lanes.get(chunk.first.thread).unwrap().resume;
        let frames = chunk.frames.iter().filter(|frame| resume.is_after(&frame.at));
        let kept: Vec<Row> = frames.copied().collect();
        if chunk.generation > loaded.base.journal_generation || kept.is_empty() {
            let what = What::Stale(chunk.id);
            self.emissions.push(Emission { what, position: Arc::clone(loaded) as _ });
            return;
        }
        let open = Open { first: chunk.first, rows: Vec::new(), journaled: 0 };
        let open = self.open.entry(chunk.key).or_insert(open);
        // The same frame may stand in chunks of two starts.
        let known: Vec<Kind> = open.rows.iter().map(|row| row.kind).collect();
        open.rows.extend(kept.into_iter().filter(|frame| !known.contains(&frame.kind)));
        open.journaled = open.rows.len();
    }

    fn bounds(&self) -> OpenBounds {
        self.open.values().map(Open::bound).collect()
    }

    /// Reads in steps, the threads interleaved anyhow.
    fn read(&mut self, is_journaling: bool) -> Result<(), OracleError> {
        let selected = |rows: &[Row], cursor: &Cursor| -> Vec<Row> {
            rows.iter().rev().filter(|row| is_selected(row, cursor)).copied().collect()
        };
        let all = self.history.0.iter();
        let mut unread: BTreeMap<RedoThread, Vec<Row>> =
            all.map(|(thread, rows)| (*thread, selected(rows, &self.cursor))).collect();
        while unread.values().any(|rows| !rows.is_empty()) {
            // A commit without address takes the place of the cursor.
            let is_floored = self.progress.position().floor().is_some();
            let is_exact = self.draws.once_in(2) || is_floored;
            let mut step = self.cursor.clone();
            for _ in 0..=self.draws.below(12) {
                let with_rows: Vec<RedoThread> =
                    unread.iter().filter(|(_, rows)| !rows.is_empty()).map(|(t, _)| *t).collect();
                let Some(thread) = with_rows.get(self.draws.below(with_rows.len())) else { break };
                let row = unread.get_mut(thread).unwrap().pop().unwrap();
                step.scn = step.scn.max(row.at.scn.next());
                self.apply(&row)?;
                raise(&mut step, &row);
                if is_exact {
                    raise(&mut self.cursor, &row);
                }
            }
            self.cursor = ended(step, &unread);
            self.between_steps(is_journaling);
        }
        Ok(())
    }

    fn apply(&mut self, row: &Row) -> Result<(), OracleError> {
        if matches!(row.kind, Kind::Change(_)) {
            let new = || Open { first: row.at, rows: Vec::new(), journaled: 0 };
            self.open.entry(row.key).or_insert_with(new).rows.push(*row);
            return Ok(());
        }
        let Some(ended) = self.open.remove(&row.key) else { return Ok(()) };
        if row.kind == Kind::Commit {
            self.commit(row, &ended)?;
        }
        if ended.journaled > 0 {
            self.safe(What::Tombstone(row.key));
        }
        Ok(())
    }

    fn commit(&mut self, row: &Row, ended: &Open) -> Result<(), OracleError> {
        let commit = CommitPoint { key: row.key, at: row.at };
        let size = ended.rows.len() as u64;
        let skipped = match self.progress.skip(&commit, size)? {
            Skip::Whole => return Ok(()),
            Skip::First(changes) => changes,
            Skip::Nothing => 0,
        };
        let positions =
            self.progress.emit(commit, ended.first, size, &self.bounds(), &self.cursor)?;
        for (index, change) in (0..).zip(&ended.rows).filter(|(index, _)| *index >= skipped) {
            let Kind::Change(number) = change.kind else { continue };
            let what = What::Change(row.at.thread, row.key, number);
            self.emissions.push(Emission { what, position: positions.at(index + 1) });
        }
        Ok(())
    }

    fn safe(&mut self, what: What) {
        let position = self.progress.safe(&self.bounds(), &self.cursor);
        self.emissions.push(Emission { what, position });
    }

    fn between_steps(&mut self, is_journaling: bool) {
        if self.draws.once_in(2) {
            self.safe(What::Heartbeat);
        }
        let due: Vec<TransactionKey> = self.open.keys().copied().collect();
        for key in due {
            if !is_journaling || !self.draws.once_in(3) {
                continue;
            }
            let open = &self.open[&key];
            let frames = open.rows[open.journaled..].to_vec();
            let (generation, first) = (self.progress.generation(), open.first);
            let id = self.draws.below(usize::MAX) as u64;
            self.safe(What::Chunk(Chunk { id, key, generation, first, frames }));
            let open = self.open.get_mut(&key).unwrap();
            open.journaled = open.rows.len();
        }
    }
}

fn raise(cursor: &mut Cursor, row: &Row) {
    let Some(address) = row.at.address else { return };
    let mut threads = match std::mem::replace(&mut cursor.marks, Marks::None) {
        Marks::Threads(threads) => threads,
        Marks::AnyThread(address) => [(row.at.thread, address)].into(),
        Marks::None => BTreeMap::new(),
    };
    threads.insert(row.at.thread, address);
    cursor.marks = Marks::Threads(threads);
}

/// The cursor behind a step. A thread without rows is marked by its newest log, and the step ended
/// before each row without an address that is still to come.
fn ended(mut step: Cursor, unread: &BTreeMap<RedoThread, Vec<Row>>) -> Cursor {
    let bare = unread.values().flatten().filter(|row| row.at.address.is_none());
    step.scn = bare.map(|row| row.at.scn).min().map_or(step.scn, |scn| scn.min(step.scn));
    for (thread, rows) in unread {
        let next = rows.iter().rev().find_map(|row| row.at.address);
        let (Some(next), Marks::Threads(threads)) = (next, &mut step.marks) else { continue };
        threads.entry(*thread).or_insert_with(|| RedoAddress::start_of_log(next.sequence));
    }
    step
}

/// What the log holds once the first `count` records are acknowledged: changes, and the journal, of
/// which some chunks behind may have been written, too.
pub(super) fn acknowledge(
    emissions: &[Emission],
    count: usize,
    delivered: &mut Delivered,
    journal: &mut Vec<Chunk>,
    draws: &mut Draws,
) {
    for (index, emission) in emissions.iter().enumerate() {
        match &emission.what {
            What::Change(thread, key, number) if index < count => {
                delivered.entry(*thread).or_default().push((*key, *number));
            }
            What::Chunk(chunk) if index < count || draws.once_in(2) => journal.push(chunk.clone()),
            What::Stale(id) if index < count => journal.retain(|chunk| chunk.id != *id),
            What::Tombstone(key) if index < count => journal.retain(|chunk| chunk.key != *key),
            _ => {}
        }
    }
}

/// Through the text that is stored.
pub(super) fn stored(offset: &SourceOffset) -> SourceOffset {
    serde_json::from_str(&offset.to_string()).unwrap()
}
