//! A program under a preloaded library that keeps a second image of its folder: what the disk would hold if
//! the power went. `power_loss.c` says how.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

/// A folder whose power can go. The root stands for the disk: put the data folder below it.
pub struct Disk {
    place: tempfile::TempDir,
    library: PathBuf,
}

impl Disk {
    pub fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let library = place.path().join("power_loss.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/power-loss/power_loss.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .args([source, "-ldl", "-lpthread"])
            .status()
            .unwrap();
        assert!(built.success(), "power_loss.c does not build");
        let disk = Self { place, library };
        fs::create_dir(disk.root()).unwrap();
        disk.forget();
        disk
    }

    pub fn root(&self) -> PathBuf {
        self.place.path().join("disk")
    }

    /// What the program says the disk is full for, while the file exists.
    pub fn full(&self) -> PathBuf {
        self.place.path().join("full")
    }

    fn image(&self) -> PathBuf {
        self.place.path().join("image")
    }

    fn forget(&self) {
        let _ = fs::remove_dir_all(self.image());
        for kind in ["files", "folders"] {
            fs::create_dir_all(self.image().join(kind)).unwrap();
        }
    }

    /// Has the program run on this disk.
    pub fn attach<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        program
            .env("LD_PRELOAD", &self.library)
            .env("HW_POWER_DIR", self.root())
            .env("HW_POWER_IMAGE", self.image())
            .env("HW_POWER_FULL", self.full())
    }

    /// Everything on the disk that a power loss would leave: path and content, None for a folder.
    pub fn synced(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        self.read_folder(&id(&self.root()), Path::new(""), &mut found);
        found
    }

    fn read_folder(&self, id: &str, at: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
        // A folder that was never synced is empty, and so is a file.
        let names = fs::read_to_string(self.image().join("folders").join(id)).unwrap_or_default();
        for line in names.lines() {
            let mut words = line.splitn(3, ' ');
            let (kind, id) = (words.next().unwrap(), words.next().unwrap());
            let path = at.join(words.next().unwrap());
            if kind == "d" {
                found.insert(path.clone(), None);
                self.read_folder(id, &path, found);
            } else {
                let content = fs::read(self.image().join("files").join(id)).unwrap_or_default();
                found.insert(path, Some(content));
            }
        }
    }

    /// Everything on the disk as a process sees it.
    pub fn live(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let (mut found, mut folders) = (BTreeMap::new(), vec![PathBuf::new()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.root().join(&folder)).unwrap() {
                let entry = entry.unwrap();
                let path = folder.join(entry.file_name());
                if entry.file_type().unwrap().is_dir() {
                    found.insert(path.clone(), None);
                    folders.push(path);
                } else {
                    found.insert(path, Some(fs::read(entry.path()).unwrap()));
                }
            }
        }
        found
    }

    /// The power goes: the disk holds what was synced and nothing else. The program must have ended.
    pub fn lose_power(&self) {
        let synced = self.synced();
        fs::remove_dir_all(self.root()).unwrap();
        fs::create_dir(self.root()).unwrap();
        self.forget();
        for (path, content) in synced {
            let path = self.root().join(path);
            match content {
                None => fs::create_dir(path).unwrap(),
                Some(content) => fs::write(path, content).unwrap(),
            }
        }
        self.keep_all();
    }

    /// What the disk holds now is on it for good.
    fn keep_all(&self) {
        let mut folders: BTreeMap<PathBuf, String> = [(PathBuf::new(), String::new())].into();
        for (path, content) in self.live() {
            let (id, kind) =
                (id(&self.root().join(&path)), if content.is_some() { 'f' } else { 'd' });
            let name = path.file_name().unwrap().to_str().unwrap();
            let line = format!("{kind} {id} {name}\n");
            folders.entry(path.parent().unwrap().to_owned()).or_default().push_str(&line);
            match content {
                None => _ = folders.entry(path).or_default(),
                Some(content) => fs::write(self.image().join("files").join(id), content).unwrap(),
            }
        }
        for (path, names) in folders {
            let id = id(&self.root().join(path));
            fs::write(self.image().join("folders").join(id), names).unwrap();
        }
    }
}

/// As the library makes it.
fn id(path: &Path) -> String {
    let metadata = fs::symlink_metadata(path).unwrap();
    let born = metadata.created().unwrap().duration_since(UNIX_EPOCH).unwrap();
    format!("{}-{}-{}", metadata.ino(), born.as_secs(), born.subsec_nanos())
}
