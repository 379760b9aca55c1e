//! An open file that lines are appended to: the blocking half of the sink task.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use highwater_connector::{AllowedPaths, ConnectorError, identity};

use crate::error;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    allowed: AllowedPaths,
    file: File,
    /// Whether the file may end inside a line, which what follows must not go on.
    torn: bool,
    /// Why it could not be synced: the system may say of a second attempt that all is well.
    failed: Option<ConnectorError>,
}

impl Writer {
    /// Opens the file, which is made when it is not there.
    ///
    /// # Errors
    /// When it must not be opened, or cannot be.
    pub(crate) fn open(path: &Path, allowed: &AllowedPaths) -> Result<Self, ConnectorError> {
        let opened = open(path, allowed).map_err(|error| error::failed(path, "written", &error))?;
        let (file, torn) = opened;
        if torn {
            let path = path.display();
            tracing::warn!(%path, "the file ends inside a line; what follows begins on a new one");
        }
        Ok(Self { path: path.to_owned(), allowed: allowed.clone(), file, torn, failed: None })
    }

    /// Appends whole lines.
    ///
    /// # Errors
    /// When they could not all be written: some may be there, and are written again.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<(), ConnectorError> {
        self.follow()?;
        if self.torn {
            self.write(b"\n")?;
        }
        self.torn = true;
        self.write(lines)?;
        self.torn = false;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ConnectorError> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| error::failed(&self.path, "written", &error))
    }

    /// Goes on in a new file where somebody has moved the old one away, which is whole by then.
    fn follow(&mut self) -> Result<(), ConnectorError> {
        let failed = |error: &io::Error| error::failed(&self.path, "written", error);
        let open = self.file.metadata().map_err(|error| failed(&error))?;
        match self.path.metadata() {
            Ok(found) if identity(&found) == identity(&open) => Ok(()),
            _ => {
                self.sync()?;
                *self = Self::open(&self.path.clone(), &self.allowed.clone())?;
                Ok(())
            }
        }
    }

    /// Makes everything appended durable.
    ///
    /// # Errors
    /// When it is not, or the file is gone with it.
    pub(crate) fn sync(&mut self) -> Result<(), ConnectorError> {
        let synced = match self.failed.take() {
            Some(error) => Err(error),
            None => self.sync_once(),
        };
        self.failed = synced.as_ref().err().cloned();
        synced
    }

    fn sync_once(&self) -> Result<(), ConnectorError> {
        let failed = |error: &io::Error| error::not_durable(&self.path, error);
        self.file.sync_data().map_err(|error| failed(&error))?;
        let open = self.file.metadata().map_err(|error| failed(&error))?;
        if open.nlink() == 0 { Err(error::removed(&self.path)) } else { Ok(()) }
    }
}

/// The file, its name durable, and whether it ends inside a line.
fn open(path: &Path, allowed: &AllowedPaths) -> io::Result<(File, bool)> {
    let mut file = allowed.open(path, OpenOptions::new().read(true).append(true).create(true))?;
    let place = allowed.resolve(path)?;
    if let Some(folder) = place.parent() {
        File::open(folder)?.sync_all()?;
    }
    if file.metadata()?.len() == 0 {
        return Ok((file, false));
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok((file, last != *b"\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        dir: tempfile::TempDir,
    }

    impl Bench {
        fn path(&self) -> PathBuf {
            self.dir.path().join("lines")
        }

        fn writer(&self) -> Writer {
            let allowed = AllowedPaths::new("the.setting", [self.dir.path().to_owned()]);
            Writer::open(&self.path(), &allowed).unwrap()
        }

        fn text(&self) -> String {
            std::fs::read_to_string(self.path()).unwrap()
        }
    }

    fn bench() -> Bench {
        Bench { dir: tempfile::tempdir().unwrap() }
    }

    #[test]
    fn lines_are_appended_to_what_is_there() {
        let bench = bench();
        std::fs::write(bench.path(), "old\n").unwrap();
        let mut writer = bench.writer();
        writer.append(b"a\nb\n").unwrap();
        writer.sync().unwrap();
        assert_eq!(bench.text(), "old\na\nb\n");
    }

    #[test]
    fn part_of_a_line_that_a_crash_left_is_not_gone_on() {
        let bench = bench();
        std::fs::write(bench.path(), "a\nb").unwrap();
        bench.writer().append(b"b2\n").unwrap();
        assert_eq!(bench.text(), "a\nb\nb2\n");
    }

    #[test]
    fn a_file_that_was_moved_away_is_followed_by_a_new_one() {
        let bench = bench();
        let mut writer = bench.writer();
        writer.append(b"a\n").unwrap();
        let old = bench.dir.path().join("old");
        std::fs::rename(bench.path(), &old).unwrap();
        writer.append(b"b\n").unwrap();
        writer.sync().unwrap();
        assert_eq!(
            (std::fs::read_to_string(old).unwrap().as_str(), bench.text().as_str()),
            ("a\n", "b\n")
        );
    }

    #[test]
    fn what_went_with_a_removed_file_is_not_durable() {
        let bench = bench();
        let mut writer = bench.writer();
        writer.append(b"a\n").unwrap();
        std::fs::remove_file(bench.path()).unwrap();
        assert_eq!(writer.sync().unwrap_err().code, "FILE_REMOVED");
        assert_eq!(writer.append(b"b\n").unwrap_err().code, "FILE_REMOVED");
    }
}
