//! What the log asks of a file system, and the real one.
//!
//! The log goes through [`FileSystem`] for everything, so that a test can put a model in its place
//! which forgets whatever was not synced (rule L4).

use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// An existing file, to be read only.
    Read,
    /// An existing file, to be read and written.
    Write,
    /// A new file; what stood under the name is emptied.
    Create,
}

/// A name in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The name, without the folder.
    pub name: String,
    /// True for a folder.
    pub is_dir: bool,
}

/// The volume on which a folder lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Volume {
    /// Bytes in all.
    pub total: u64,
    /// Bytes that are free for us.
    pub free: u64,
}

/// Held while the data directory is ours; dropping it gives the directory free.
pub trait Lock: Send + Sync + Debug {}

/// An open file. Positions and lengths are in bytes.
pub trait File: Send + Sync + Debug {
    /// Writes all of `data` at `position`, extending the file where needed.
    fn write_at(&self, data: &[u8], position: u64) -> io::Result<()>;
    /// Reads at `position`; fewer bytes than asked for only at the end of the file.
    fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize>;
    /// Sets space aside for `len` bytes at `position` without changing the file's length, so that a
    /// full disk is met here and not in the middle of a write.
    fn allocate(&self, position: u64, len: u64) -> io::Result<()>;
    /// Returns once content and length are on stable storage.
    fn sync_data(&self) -> io::Result<()>;
    /// The length.
    fn len(&self) -> io::Result<u64>;
    /// Cuts the file to `len`, and gives back space that was set aside behind it.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// The open file of the operating system, where there is one: what is sent need not be read then.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// True for a file without content.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A file system. A name made, renamed or removed is safe once its folder was synced.
pub trait FileSystem: Send + Sync + Debug {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Makes a folder; its parent must be there.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// As [`FileSystem::create_dir`], for its owner's eyes alone where the system knows owners.
    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        self.create_dir(path)
    }
    /// Returns once the names in the folder are on stable storage.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Renames a file, replacing what stood there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a folder, in any order.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;
    /// Takes a lock that ends with the process, whose number the file tells;
    /// [`io::ErrorKind::WouldBlock`] if another holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
    /// Whether somebody holds the lock. It is asked without taking it for oneself and without
    /// writing, so that who may only read can ask.
    fn is_locked(&self, path: &Path) -> io::Result<bool>;
    /// True if something stands under the name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The volume on which a folder lies, where that can be told.
    fn volume(&self, _path: &Path) -> Option<Volume> {
        None
    }
}

/// The operating system's file system.
#[derive(Clone, Copy, Default, Debug)]
pub struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create(true).truncate(true);
            }
        }
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let dir = fs::File::open(path)?;
        site!("real.folder", dir.sync_all())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        fs::read_dir(path)?
            .map(|entry| {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                Ok(Entry { name, is_dir: entry.file_type()?.is_dir() })
            })
            .collect()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        take(&file)?;
        // As wide as any number, so that nothing of an earlier one is left behind it.
        file.write_all_at(format!("{:<10}\n", std::process::id()).as_bytes(), 0)?;
        Ok(Box::new(RealLock(file)))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        let file = fs::File::open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn volume(&self, path: &Path) -> Option<Volume> {
        let volume = rustix::fs::statvfs(path).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(volume.f_frsize);
        Some(Volume { total: bytes(volume.f_blocks), free: bytes(volume.f_bavail) })
    }
}

/// Locks a file for this process alone. Who merely asks for the lock shares it for a moment
/// ([`FileSystem::is_locked`]): that is waited for.
fn take(file: &fs::File) -> io::Result<()> {
    const MOMENT: Duration = Duration::from_millis(100);
    let lock = || flock(file, FlockOperation::NonBlockingLockExclusive);
    lock().or_else(|_| {
        std::thread::sleep(MOMENT);
        lock()
    })?;
    Ok(())
}

/// flock(2) ends when the last descriptor closes, so a killed process never leaves a stale lock.
#[derive(Debug)]
struct RealLock(#[allow(dead_code, reason = "held, never read")] fs::File);

impl Lock for RealLock {}

#[derive(Debug)]
struct RealFile(fs::File);

impl File for RealFile {
    fn write_at(&self, data: &[u8], position: u64) -> io::Result<()> {
        self.0.write_all_at(data, position)
    }

    fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, position + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn allocate(&self, position: u64, len: u64) -> io::Result<()> {
        match fallocate(&self.0, FallocateFlags::KEEP_SIZE, position, len) {
            // Not every file system can (NFS, some FUSE): there a full disk is met by the write,
            // which the append undoes.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            other => Ok(other?),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        site!("real.data", self.0.sync_data())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        site!("real.cut", self.0.set_len(len))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}
