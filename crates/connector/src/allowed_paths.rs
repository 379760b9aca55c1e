//! Which files may be opened for a connector (rule A4).

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Folders below which files may be opened, and the setting that names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedPaths {
    setting: &'static str,
    folders: Vec<PathBuf>,
}

impl AllowedPaths {
    /// These folders, named by the server's setting `setting`.
    pub fn new(setting: &'static str, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { setting, folders: folders.into_iter().collect() }
    }

    /// Where `path` leads, its links followed, when that lies below one of the folders. The file
    /// itself need not be there.
    ///
    /// # Errors
    /// Permission denied, with the setting's name, when it lies elsewhere; what the system says.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf> {
        let place = real(&std::path::absolute(path)?)?;
        let mut folders = self.folders.iter().filter_map(|folder| folder.canonicalize().ok());
        if folders.any(|folder| place.starts_with(&folder) && place != folder) {
            return Ok(place);
        }
        Err(Error::new(ErrorKind::PermissionDenied, self.refusal(path, &place)))
    }

    fn refusal(&self, path: &Path, place: &Path) -> String {
        let setting = self.setting;
        let leads = if path == place {
            String::new()
        } else {
            format!(", which leads to {},", place.display())
        };
        match self.folders.as_slice() {
            [] => format!(
                "{}{leads} may not be opened: the server's setting {setting} names no folder",
                path.display()
            ),
            folders => {
                let names: Vec<_> =
                    folders.iter().map(|folder| folder.display().to_string()).collect();
                format!(
                    "{}{leads} lies below none of the folders of the server's setting {setting}: {}",
                    path.display(),
                    names.join(", ")
                )
            }
        }
    }

    /// Opens the file at `path`.
    ///
    /// # Errors
    /// As [`Self::resolve`]; when it is no regular file; what the system says.
    pub fn open(&self, path: &Path, options: &OpenOptions) -> Result<File> {
        let place = self.resolve(path)?;
        if let Ok(found) = place.metadata() {
            regular(path, &found)?;
        }
        let file = options.open(&place)?;
        // A link that was put into the path meanwhile led elsewhere: what is open must be what is
        // found now at a place that is allowed.
        let (opened, found) = (file.metadata()?, self.resolve(path)?.metadata()?);
        regular(path, &opened)?;
        if identity(&opened) != identity(&found) {
            let message = format!("{} was exchanged while it was opened", path.display());
            return Err(Error::other(message));
        }
        Ok(file)
    }
}

/// What tells a file from another of the same name.
pub fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Opening a pipe or a device can wait for ever.
fn regular(path: &Path, found: &Metadata) -> Result<()> {
    if found.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, format!("{} is no regular file", path.display())))
}

/// `path` with the links of as much of it followed as is there. What is not there yet must not lead
/// back up.
fn real(path: &Path) -> Result<PathBuf> {
    let mut missing = Vec::new();
    let mut there = path;
    loop {
        match there.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            // A link that leads nowhere could lead anywhere once it is opened.
            Err(error) if there.symlink_metadata().is_ok() => return Err(error),
            Err(error) => match (there.parent(), there.file_name()) {
                (Some(parent), Some(name)) => {
                    missing.push(name);
                    there = parent;
                }
                _ => return Err(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn opened(allowed: &AllowedPaths, path: &Path) -> Result<File> {
        allowed.open(path, OpenOptions::new().read(true))
    }

    #[test]
    fn a_file_is_opened_below_an_allowed_folder_only() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let allowed = AllowedPaths::new("the.setting", [inside.path().to_owned()]);
        std::fs::write(inside.path().join("a"), "x").unwrap();
        std::fs::write(outside.path().join("b"), "x").unwrap();
        opened(&allowed, &inside.path().join("a")).unwrap();
        let up = inside.path().join("..").join(outside.path().file_name().unwrap()).join("b");
        for path in [outside.path().join("b"), up, inside.path().to_owned(), "/etc/passwd".into()] {
            let error = opened(&allowed, &path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path:?}: {error}");
            assert!(error.to_string().contains("the.setting"), "{error}");
        }
    }

    #[test]
    fn a_link_leads_no_further() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let allowed = AllowedPaths::new("the.setting", [inside.path().to_owned()]);
        std::fs::write(outside.path().join("b"), "x").unwrap();
        let link = inside.path().join("link");
        symlink(outside.path(), inside.path().join("folder")).unwrap();
        symlink(outside.path().join("b"), &link).unwrap();
        symlink(outside.path().join("none"), inside.path().join("nowhere")).unwrap();
        for path in ["link", "folder/b", "folder/new", "nowhere"] {
            assert!(allowed.resolve(&inside.path().join(path)).is_err(), "{path}");
        }
        let error = opened(&allowed, &link).unwrap_err().to_string();
        assert!(error.contains("which leads to"), "{error}");
        // A link inside may stay inside, and a folder may be allowed by a link to it.
        std::fs::write(inside.path().join("a"), "x").unwrap();
        symlink(inside.path().join("a"), inside.path().join("alias")).unwrap();
        opened(&allowed, &inside.path().join("alias")).unwrap();
        let by_link = AllowedPaths::new("the.setting", [inside.path().join("folder")]);
        opened(&by_link, &outside.path().join("b")).unwrap();
    }

    #[test]
    fn what_is_not_there_yet_is_judged_by_the_folder_that_is() {
        let inside = tempfile::tempdir().unwrap();
        let allowed = AllowedPaths::new("the.setting", [inside.path().to_owned()]);
        allowed.resolve(&inside.path().join("new/folder/file")).unwrap();
        assert!(allowed.resolve(&inside.path().join("new/../../file")).is_err());
    }

    #[test]
    fn nothing_is_allowed_where_no_folder_is_named() {
        let error = AllowedPaths::new("the.setting", []).resolve(Path::new("/tmp/x")).unwrap_err();
        assert!(error.to_string().ends_with("the.setting names no folder"), "{error}");
    }

    #[test]
    fn a_pipe_is_refused_before_it_is_opened() {
        let inside = tempfile::tempdir().unwrap();
        let allowed = AllowedPaths::new("the.setting", [inside.path().to_owned()]);
        let socket = inside.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(opened(&allowed, &socket).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
