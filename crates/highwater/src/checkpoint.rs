//! A file that keeps the last position of a stream that was printed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The last stored position; `None` when there is no file yet.
pub(crate) fn load(path: &Path) -> std::io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!(
                "the checkpoint file {} holds no position; remove it to begin anew",
                path.display()
            ),
        )),
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes sure that positions can be stored there, before anything is read.
pub(crate) fn check(path: &Path) -> std::io::Result<()> {
    let fresh = fresh(path);
    let tried = if path.is_dir() {
        Err(std::io::Error::from(std::io::ErrorKind::IsADirectory))
    } else {
        File::create(&fresh).and_then(|_| fs::remove_file(&fresh))
    };
    tried.map_err(|error| {
        let what = format!("no position can be stored in {}: {error}", path.display());
        std::io::Error::new(error.kind(), what)
    })
}

fn fresh(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Replaces the stored position, so that a crash leaves the old one or the new one whole.
pub(crate) fn store(path: &Path, position: &str) -> std::io::Result<()> {
    let fresh = fresh(path);
    let mut file = File::create(&fresh)?;
    writeln!(file, "{position}")?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.pos");
        assert_eq!(load(&path).unwrap(), None);
        store(&path, "one").unwrap();
        store(&path, "two").unwrap();
        assert_eq!(load(&path).unwrap().as_deref(), Some("two"));
        check(&path).unwrap();
        assert!(check(&folder.path().join("nowhere").join("shop.pos")).is_err());
        assert!(check(folder.path()).is_err());
        assert_eq!(load(&path).unwrap().as_deref(), Some("two"));
        fs::write(&path, "\n").unwrap();
        assert!(load(&path).is_err());
    }
}
