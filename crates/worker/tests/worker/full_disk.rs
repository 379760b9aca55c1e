//! The disk of the log fills while a connector runs: it waits, loses nothing, and goes on by itself.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use highwater_log::{Entry, File, FileSystem, Lock, OpenMode, RealFileSystem};

use crate::bench::{Bench, PATIENCE, config};
use crate::crashes::check;
use crate::source::{Server, events_before};
use crate::trail;

/// A real disk that is full whenever the test says so.
#[derive(Clone, Default, Debug)]
struct Disk(Arc<AtomicBool>);

impl Disk {
    fn take_space(&self) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl FileSystem for Disk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if mode == OpenMode::Create {
            self.take_space()?;
        }
        let file = RealFileSystem.open(path, mode)?;
        Ok(Arc::new(DiskFile { file, disk: self.clone() }))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.take_space()?;
        RealFileSystem.create_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealFileSystem.sync_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealFileSystem.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealFileSystem.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealFileSystem.remove_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        RealFileSystem.list(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        RealFileSystem.lock(path)
    }
    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        RealFileSystem.is_locked(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealFileSystem.exists(path)
    }
}

#[derive(Debug)]
struct DiskFile {
    file: Arc<dyn File>,
    disk: Disk,
}

impl File for DiskFile {
    fn write_at(&self, data: &[u8], position: u64) -> io::Result<()> {
        if let Err(full) = self.disk.take_space() {
            // What a full disk does: part of it fits.
            self.file.write_at(&data[..data.len() / 2], position)?;
            return Err(full);
        }
        self.file.write_at(data, position)
    }
    fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize> {
        self.file.read_at(into, position)
    }
    fn allocate(&self, position: u64, len: u64) -> io::Result<()> {
        self.disk.take_space()?;
        self.file.allocate(position, len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fills_while_a_connector_runs_costs_nothing_but_time() {
    let disk = Disk::default();
    let bench = Bench::start_on(Arc::new(disk.clone()), Server::new(10, 7)).await;
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    for round in 1..=3 {
        tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
        let before = trail::rows(&bench.reader, "shop").await.len();
        disk.0.store(true, Ordering::SeqCst);
        bench.server.state().committed += 20;
        // A record, or an offset record: whichever comes first is refused, and nothing is told.
        let told = bench.server.state().told.len();
        let waited =
            tokio::time::timeout(Duration::from_millis(700), bench.server.all_told()).await;
        assert!(waited.is_err(), "round {round}: the source was told of what no disk holds");
        assert_eq!(bench.server.state().told.len(), told, "round {round}");
        assert_eq!(trail::rows(&bench.reader, "shop").await.len(), before, "reads go on");
        if round == 3 {
            let waits = "the log has taken nothing since";
            life.api.until_task_says("a", waits).await;
        }
        disk.0.store(false, Ordering::SeqCst);
    }
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;

    let rows = trail::rows(&bench.reader, "shop").await;
    check(&rows, &bench.server);
    assert_eq!(rows.len(), events_before(bench.server.end()).len(), "something came twice");
    assert_eq!(bench.server.state().starts.len(), 1, "it went on by itself");
}
