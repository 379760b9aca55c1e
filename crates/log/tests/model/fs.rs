//! A file system that keeps what was synced apart from what was not: files, lengths, names. It can fill
//! up, fail to sync, stop in the middle of anything, and lose its power.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use highwater_log::{Entry, File, FileSystem, Lock, OpenMode};

use crate::dice::Dice;
use crate::node::{DirNode, FileNode, Loss, NameChange, NodeId};

const BLOCK: usize = 4096;
const ROOT: NodeId = 0;

#[derive(Debug)]
enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Debug)]
struct State {
    nodes: Vec<Node>,
    dice: Dice,
    /// Handles of an earlier life do nothing.
    life: u64,
    locked: BTreeSet<PathBuf>,
    capacity: Option<usize>,
    failing_syncs: u32,
    failing_dir_syncs: u32,
    /// Writes left until one fails half way.
    failing_write: Option<u32>,
    /// Changes left until everything stops.
    stop_after: Option<u32>,
    stopped: bool,
    syncs: u64,
}

/// The model. Clones share it.
#[derive(Clone, Debug)]
pub struct ModelFs(Arc<Mutex<State>>);

impl ModelFs {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            nodes: vec![Node::Dir(DirNode::default())],
            dice: Dice::new(seed),
            life: 0,
            locked: BTreeSet::new(),
            capacity: None,
            failing_syncs: 0,
            failing_dir_syncs: 0,
            failing_write: None,
            stop_after: None,
            stopped: false,
            syncs: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The process ends; the page cache stays.
    pub fn kill(&self) {
        self.state().restart();
    }

    /// The power goes.
    pub fn lose_power(&self, loss: Loss) {
        let mut state = self.state();
        let State { nodes, dice, .. } = &mut *state;
        for node in nodes {
            match node {
                Node::File(file) => file.lose(loss, dice),
                Node::Dir(dir) => dir.lose(loss, dice),
            }
        }
        state.restart();
    }

    /// No more than `bytes` from now on above what is there; None for a disk without end.
    pub fn leave_space(&self, bytes: Option<usize>) {
        let mut state = self.state();
        state.capacity = bytes.map(|bytes| state.used() + bytes);
    }

    pub fn fail_syncs(&self, count: u32) {
        self.state().failing_syncs = count;
    }

    pub fn fail_dir_syncs(&self, count: u32) {
        self.state().failing_dir_syncs = count;
    }

    /// The write after so many others fails half way.
    pub fn fail_write_after(&self, writes: Option<u32>) {
        self.state().failing_write = writes;
    }

    /// Everything fails after so many changes, until a kill or a power loss.
    pub fn stop_after(&self, changes: Option<u32>) {
        self.state().stop_after = changes;
    }

    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Flips a bit of a byte on the disk itself.
    pub fn flip(&self, path: &Path, position: usize) {
        let mut state = self.state();
        let node = state.find(path).unwrap();
        state.file(node).flip(position);
    }

    /// Replaces a file's content on the disk itself; None takes the file away.
    pub fn damage(&self, path: &Path, content: Option<Vec<u8>>) {
        let mut state = self.state();
        let node = state.find(path).unwrap();
        match content {
            Some(content) => state.file(node).replace(content),
            None => {
                let (dir, name) = split(path);
                state.dir(dir).unwrap().forget(&name);
            }
        }
    }

    /// How many syncs of data there were.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// The content as a process sees it.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        match state.nodes.get(state.find(path).ok()?)? {
            Node::File(file) => Some(file.live.clone()),
            Node::Dir(_) => None,
        }
    }
}

impl State {
    fn restart(&mut self) {
        self.life += 1;
        self.locked.clear();
        self.capacity = None;
        self.failing_syncs = 0;
        self.failing_dir_syncs = 0;
        self.failing_write = None;
        self.stop_after = None;
        self.stopped = false;
    }

    fn find(&self, path: &Path) -> io::Result<NodeId> {
        if self.stopped {
            return Err(io::Error::other("the machine has stopped"));
        }
        let mut node = ROOT;
        for part in path.components().filter(|part| matches!(part, Component::Normal(_))) {
            let Node::Dir(dir) = &self.nodes[node] else {
                return Err(io::ErrorKind::NotFound.into());
            };
            let name = part.as_os_str().to_string_lossy();
            node = *dir.live.get(name.as_ref()).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    fn dir(&mut self, path: &Path) -> io::Result<&mut DirNode> {
        let node = self.find(path)?;
        match &mut self.nodes[node] {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn file(&mut self, node: NodeId) -> &mut FileNode {
        match &mut self.nodes[node] {
            Node::File(file) => file,
            Node::Dir(_) => panic!("a file was a folder"),
        }
    }

    /// Counts a change; from the last one on nothing works.
    fn step(&mut self) -> io::Result<()> {
        match &mut self.stop_after {
            Some(0) => self.stopped = true,
            Some(left) => *left -= 1,
            None => {}
        }
        if self.stopped { Err(io::Error::other("the machine has stopped")) } else { Ok(()) }
    }

    fn used(&self) -> usize {
        let mut used = 0;
        for node in &self.nodes {
            let Node::Dir(dir) = node else { continue };
            for child in dir.live.values() {
                used += BLOCK;
                if let Node::File(file) = &self.nodes[*child] {
                    used += file.live.len().max(file.allocated).next_multiple_of(BLOCK);
                }
            }
        }
        used
    }

    fn take_space(&self, bytes: usize) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if self.used() + bytes > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }
}

fn split(path: &Path) -> (&Path, String) {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    (path.parent().unwrap(), name)
}

impl FileSystem for ModelFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        let node = match (state.find(path), mode) {
            (Ok(node), OpenMode::Create) => {
                state.step()?;
                state.file(node).set_len(0);
                node
            }
            (Err(error), OpenMode::Create) if error.kind() == io::ErrorKind::NotFound => {
                state.step()?;
                state.take_space(BLOCK)?;
                let (dir, name) = split(path);
                let node = state.nodes.len();
                state.dir(dir)?.change(NameChange::Set(name, node));
                state.nodes.push(Node::File(FileNode::default()));
                node
            }
            (found, _) => found?,
        };
        Ok(Arc::new(ModelFile { fs: self.clone(), node, life: state.life }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        if state.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.take_space(BLOCK)?;
        let (dir, name) = split(path);
        let node = state.nodes.len();
        state.dir(dir)?.change(NameChange::Set(name, node));
        state.nodes.push(Node::Dir(DirNode::default()));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        if state.failing_dir_syncs > 0 {
            state.failing_dir_syncs -= 1;
            return Err(io::Error::other("the folder could not be synced"));
        }
        state.dir(path)?.sync();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let node = state.find(from)?;
        let ((dir, from), (same, to)) = (split(from), split(to));
        assert_eq!(dir, same, "names move within a folder only");
        state.dir(dir)?.change(NameChange::Rename { from, to, node });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        state.find(path)?;
        let (dir, name) = split(path);
        state.dir(dir)?.change(NameChange::Unset(name));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        if !state.dir(path)?.live.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (dir, name) = split(path);
        state.dir(dir)?.change(NameChange::Unset(name));
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let mut state = self.state();
        let names = state.dir(path)?.live.clone();
        let entry = |(name, node): (String, NodeId)| {
            let is_dir = matches!(state.nodes[node], Node::Dir(_));
            Entry { name, is_dir }
        };
        Ok(names.into_iter().map(entry).collect())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut state = self.state();
        if !state.locked.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(ModelLock { fs: self.clone(), life: state.life, path: path.to_owned() }))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        Ok(self.state().locked.contains(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.state().find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            other => other.map(|_| true),
        }
    }
}

#[derive(Debug)]
struct ModelLock {
    fs: ModelFs,
    life: u64,
    path: PathBuf,
}

impl Lock for ModelLock {}

impl Drop for ModelLock {
    fn drop(&mut self) {
        let mut state = self.fs.state();
        if state.life == self.life {
            state.locked.remove(&self.path);
        }
    }
}

#[derive(Debug)]
struct ModelFile {
    fs: ModelFs,
    node: NodeId,
    life: u64,
}

impl ModelFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.fs.state();
        if state.stopped || state.life != self.life {
            return Err(io::Error::other("the machine has stopped"));
        }
        Ok(state)
    }
}

impl File for ModelFile {
    fn write_at(&self, data: &[u8], position: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.step()?;
        let position = position as usize;
        let file = state.file(self.node);
        let held = file.live.len().max(file.allocated).next_multiple_of(BLOCK);
        let more = (position + data.len()).saturating_sub(held).next_multiple_of(BLOCK);
        if more > 0 {
            state.take_space(more)?;
        }
        let left = state.failing_write;
        state.failing_write = left.and_then(|left| left.checked_sub(1));
        if left == Some(0) {
            let part = state.dice.below(data.len() as u64) as usize;
            state.file(self.node).write(&data[..part], position);
            return Err(io::Error::other("the disk refused"));
        }
        state.file(self.node).write(data, position);
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize> {
        let mut state = self.state()?;
        let live = &state.file(self.node).live;
        let from = (position as usize).min(live.len());
        let count = into.len().min(live.len() - from);
        into[..count].copy_from_slice(&live[from..from + count]);
        Ok(count)
    }

    fn allocate(&self, position: u64, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.step()?;
        let end = (position + len) as usize;
        let file = state.file(self.node);
        let held = file.live.len().max(file.allocated).next_multiple_of(BLOCK);
        let more = end.saturating_sub(held).next_multiple_of(BLOCK);
        if more > 0 {
            state.take_space(more)?;
        }
        let file = state.file(self.node);
        file.allocated = file.allocated.max(end);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state()?;
        state.step()?;
        state.syncs += 1;
        if state.failing_syncs > 0 {
            state.failing_syncs -= 1;
            let mut dice = Dice::new(state.dice.next());
            state.file(self.node).fail_sync(&mut dice);
            return Err(io::Error::other("the disk refused"));
        }
        state.file(self.node).sync();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.file(self.node).live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.step()?;
        state.file(self.node).set_len(len as usize);
        Ok(())
    }
}
