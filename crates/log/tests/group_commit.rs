//! Writers share a sync, and go on while it runs.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use highwater_log::*;
use parking_lot::{Condvar, Mutex};
use support::{NOW, batch, settings};

/// The real file system, whose syncs of data wait at a gate while it is shut.
#[derive(Debug, Default)]
struct Gated {
    real: RealFileSystem,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    shut: Mutex<bool>,
    moved: Condvar,
    waiting: AtomicU64,
    syncs: AtomicU64,
}

impl Gate {
    fn pass(&self) {
        let mut shut = self.shut.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.moved.notify_all();
        while *shut {
            self.moved.wait(&mut shut);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.syncs.fetch_add(1, Ordering::SeqCst);
    }

    fn set(&self, shut: bool) {
        *self.shut.lock() = shut;
        self.moved.notify_all();
    }

    /// Waits until a sync stands at the gate.
    fn await_sync(&self) {
        let mut shut = self.shut.lock();
        while self.waiting.load(Ordering::SeqCst) == 0 {
            self.moved.wait(&mut shut);
        }
    }
}

impl FileSystem for Gated {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.real.open(path, mode)?;
        Ok(Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) }))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.real.create_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.real.sync_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.real.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.real.remove_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.real.list(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.real.lock(path)
    }
    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.real.is_locked(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.real.exists(path)
    }
}

#[derive(Debug)]
struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl File for GatedFile {
    fn write_at(&self, data: &[u8], position: u64) -> io::Result<()> {
        self.file.write_at(data, position)
    }
    fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize> {
        self.file.read_at(into, position)
    }
    fn allocate(&self, position: u64, len: u64) -> io::Result<()> {
        self.file.allocate(position, len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync_data()
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}

struct Shared {
    log: Log,
    gate: Arc<Gate>,
    _dir: tempfile::TempDir,
}

impl Drop for Shared {
    /// A test that failed must not leave the pool at the gate.
    fn drop(&mut self) {
        self.gate.set(false);
    }
}

fn shared(threads: usize) -> Shared {
    let dir = tempfile::tempdir().unwrap();
    let fs = Gated::default();
    let gate = Arc::clone(&fs.gate);
    let config = LogConfig { flush_threads: threads, housekeeping: None, ..LogConfig::default() };
    let log = Log::open(Arc::new(fs), dir.path(), config).unwrap();
    Shared { log, gate, _dir: dir }
}

fn append(partition: &Partition) -> Appended {
    partition.append(batch(&[1]), AppendOptions::client(NOW)).unwrap()
}

#[tokio::test]
async fn appends_go_on_during_a_sync_and_share_the_next() {
    let shared = shared(2);
    shared.log.create_topic("t", 1, settings(&[])).unwrap();
    let partition = shared.log.partition("t", 0).unwrap();
    let before = shared.gate.syncs.load(Ordering::SeqCst);

    shared.gate.set(true);
    let first = append(&partition);
    shared.gate.await_sync();
    let more: Vec<Appended> = (0..100).map(|_| append(&partition)).collect();
    assert_eq!(partition.watermarks_now().log_end, 101);
    assert_eq!(partition.watermarks_now().high_watermark, 0, "nothing is shown before its sync");
    let shown = partition.read(0, 1000, true, Visible::HighWatermark).unwrap();
    assert!(shown.is_empty());
    shared.gate.set(false);

    partition.durable(&first).await.unwrap();
    for appended in &more {
        partition.durable(appended).await.unwrap();
    }
    assert_eq!(partition.watermarks_now().high_watermark, 101);
    assert_eq!(
        shared.gate.syncs.load(Ordering::SeqCst) - before,
        2,
        "one for the first, one for all others"
    );
}

#[tokio::test]
async fn partitions_are_synced_side_by_side() {
    let shared = shared(2);
    shared.log.create_topic("t", 2, settings(&[])).unwrap();
    shared.gate.set(true);
    let partitions: Vec<_> =
        (0..2).map(|index| shared.log.partition("t", index).unwrap()).collect();
    let appended: Vec<_> = partitions.iter().map(|partition| append(partition)).collect();
    {
        let mut shut = shared.gate.shut.lock();
        while shared.gate.waiting.load(Ordering::SeqCst) < 2 {
            shared.gate.moved.wait(&mut shut);
        }
    }
    shared.gate.set(false);
    for (partition, appended) in partitions.iter().zip(&appended) {
        partition.durable(appended).await.unwrap();
    }
}

#[tokio::test]
async fn other_policies_show_at_once() {
    let shared = shared(1);
    for flush in ["interval", "os"] {
        shared.log.create_topic(flush, 1, settings(&[("highwater.flush", flush)])).unwrap();
        let partition = shared.log.partition(flush, 0).unwrap();
        let appended = append(&partition);
        partition.durable(&appended).await.unwrap();
        assert_eq!(partition.watermarks_now().high_watermark, 1);
    }
}

#[test]
fn many_threads_write_one_partition() {
    let shared = shared(2);
    shared.log.create_topic("t", 1, settings(&[("segment.bytes", "20000")])).unwrap();
    let partition = shared.log.partition("t", 0).unwrap();
    let given = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for _ in 0..50 {
                    let appended = append(&partition);
                    runtime.block_on(partition.durable(&appended)).unwrap();
                    assert!(partition.watermarks_now().high_watermark > appended.last_offset);
                    given.lock().push(appended.base_offset);
                }
            });
        }
    });
    let mut given = given.into_inner();
    given.sort_unstable();
    assert_eq!(given, (0..400).collect::<Vec<i64>>());
}

#[tokio::test]
async fn a_deleted_topic_answers_those_who_wait() {
    let shared = shared(1);
    shared.log.create_topic("t", 1, settings(&[])).unwrap();
    let partition = shared.log.partition("t", 0).unwrap();
    shared.gate.set(true);
    let appended = append(&partition);
    let waiting = tokio::spawn({
        let partition = Arc::clone(&partition);
        async move { partition.durable(&appended).await }
    });
    // The removal syncs the catalogue first, so the gate opens for it; whichever comes first, the
    // answer comes.
    shared.gate.set(false);
    shared.log.delete_topic("t").unwrap();
    let answer = waiting.await.unwrap();
    assert!(matches!(answer, Ok(()) | Err(LogError::UnknownPartition { .. })), "{answer:?}");
}
