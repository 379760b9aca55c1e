//! Files and folders of the model: what is on disk, and what was done since and not synced.

use std::collections::BTreeMap;

use crate::dice::Dice;

/// What a power loss tears apart: each sector of a write reaches the disk or not, on its own.
const SECTOR: usize = 512;

pub type NodeId = usize;

/// What a power loss leaves of that which was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    All,
    Some,
    None,
}

impl Loss {
    pub fn keeps(self, dice: &mut Dice) -> bool {
        match self {
            Self::All => false,
            Self::Some => dice.one_in(2),
            Self::None => true,
        }
    }
}

#[derive(Clone, Debug)]
enum FileChange {
    Write { data: Vec<u8>, position: usize },
    Len(usize),
}

#[derive(Clone, Debug, Default)]
pub struct FileNode {
    pub live: Vec<u8>,
    disk: Vec<u8>,
    unsynced: Vec<FileChange>,
    /// End of the space set aside.
    pub allocated: usize,
}

impl FileNode {
    pub fn write(&mut self, data: &[u8], position: usize) {
        write(&mut self.live, data, position);
        self.unsynced.push(FileChange::Write { data: data.to_vec(), position });
    }

    pub fn flip(&mut self, position: usize) {
        for image in [&mut self.live, &mut self.disk] {
            if let Some(byte) = image.get_mut(position) {
                *byte ^= 1;
            }
        }
    }

    pub fn replace(&mut self, content: Vec<u8>) {
        self.allocated = content.len();
        self.live.clone_from(&content);
        self.disk = content;
        self.unsynced.clear();
    }

    pub fn set_len(&mut self, len: usize) {
        self.live.resize(len, 0);
        self.allocated = len;
        self.unsynced.push(FileChange::Len(len));
    }

    /// Only what is dirty reaches the disk: what an earlier sync lost stays lost.
    pub fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                FileChange::Write { data, position } => write(&mut self.disk, &data, position),
                FileChange::Len(len) => self.disk.resize(len, 0),
            }
        }
    }

    /// A sync that fails as Linux does it: part of the data is on disk, none is dirty any more, so that
    /// the next sync has nothing to do. The page cache goes on showing all of it.
    pub fn fail_sync(&mut self, dice: &mut Dice) {
        self.disk = self.after_loss(Loss::Some, dice);
        self.unsynced.clear();
    }

    pub fn lose(&mut self, loss: Loss, dice: &mut Dice) {
        self.live = self.after_loss(loss, dice);
        self.disk.clone_from(&self.live);
        self.unsynced.clear();
        self.allocated = self.live.len();
    }

    /// Content and length are lost apart from each other.
    fn after_loss(&self, loss: Loss, dice: &mut Dice) -> Vec<u8> {
        let mut image = self.disk.clone();
        let mut lengths = vec![image.len()];
        let mut len = image.len();
        for change in &self.unsynced {
            match change {
                FileChange::Write { data, position } => {
                    keep_sectors(&mut image, data, *position, loss, dice);
                    len = len.max(position + data.len());
                }
                FileChange::Len(new) => {
                    if loss.keeps(dice) {
                        image.resize(*new, 0);
                    }
                    len = *new;
                }
            }
            lengths.push(len);
        }
        let left = match loss {
            Loss::All => lengths[0],
            Loss::Some => *dice.pick(&lengths),
            Loss::None => len,
        };
        image.resize(left, 0);
        image
    }
}

fn write(image: &mut Vec<u8>, data: &[u8], position: usize) {
    let end = position + data.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[position..end].copy_from_slice(data);
}

fn keep_sectors(image: &mut Vec<u8>, data: &[u8], position: usize, loss: Loss, dice: &mut Dice) {
    let mut from = 0;
    while from < data.len() {
        let to = (from + SECTOR - (position + from) % SECTOR).min(data.len());
        if loss.keeps(dice) {
            write(image, &data[from..to], position + from);
        }
        from = to;
    }
}

#[derive(Clone, Debug)]
pub enum NameChange {
    Set(String, NodeId),
    Unset(String),
    /// Both names change, or neither.
    Rename {
        from: String,
        to: String,
        node: NodeId,
    },
}

#[derive(Clone, Debug, Default)]
pub struct DirNode {
    pub live: BTreeMap<String, NodeId>,
    disk: BTreeMap<String, NodeId>,
    unsynced: Vec<NameChange>,
}

impl DirNode {
    pub fn change(&mut self, change: NameChange) {
        apply(&mut self.live, &change);
        self.unsynced.push(change);
    }

    /// The name is gone, and no change of it comes back.
    pub fn forget(&mut self, name: &str) {
        self.live.remove(name);
        self.disk.remove(name);
        self.unsynced.retain(|change| match change {
            NameChange::Set(changed, _) | NameChange::Unset(changed) => changed != name,
            NameChange::Rename { from, to, .. } => from != name && to != name,
        });
    }

    pub fn sync(&mut self) {
        self.disk.clone_from(&self.live);
        self.unsynced.clear();
    }

    pub fn lose(&mut self, loss: Loss, dice: &mut Dice) {
        for change in std::mem::take(&mut self.unsynced) {
            if loss.keeps(dice) {
                apply(&mut self.disk, &change);
            }
        }
        self.live.clone_from(&self.disk);
    }
}

fn apply(names: &mut BTreeMap<String, NodeId>, change: &NameChange) {
    match change {
        NameChange::Set(name, node) => {
            names.insert(name.clone(), *node);
        }
        NameChange::Unset(name) => {
            names.remove(name);
        }
        NameChange::Rename { from, to, node } => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
    }
}
