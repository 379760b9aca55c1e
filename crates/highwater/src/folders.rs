//! What `highwater server --check` looks at beside the settings: the folders that they name.

use std::path::{Path, PathBuf};

use crate::failure::{Exit, Failure};
use crate::settings::{ALLOWED_PATHS, Settings};

/// Files that are named, at most.
const NAMED: usize = 10;

/// Looks at the folders of connectors.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn check(settings: &Settings) -> Result<(), Failure> {
    if let Some(folder) = settings.worker.connectors_dir() {
        of_connectors(folder)?;
    }
    of_files(&settings.allowed_paths)
}

/// A folder of connectors is there, and each of its files is one. What their configurations lead to
/// is looked at by the server that makes them.
fn of_connectors(folder: &Path) -> Result<(), Failure> {
    let (_, wrong) = highwater_worker::check_connector_files(folder)
        .map_err(|error| refused(format!("{} cannot be read: {error}", folder.display())))?;
    if wrong.is_empty() {
        return Ok(());
    }
    let named = wrong.iter().take(NAMED).map(|(file, why)| format!("{file}: {why}"));
    let mut named: Vec<_> = named.collect();
    if wrong.len() > NAMED {
        named.push(format!("{} more", wrong.len() - NAMED));
    }
    Err(refused(format!("files of {} are no connectors: {}", folder.display(), named.join("; "))))
}

fn refused(what: String) -> Failure {
    Failure::new(Exit::Usage, "CONNECTOR_FILE", what)
        .kept("nothing was started")
        .remedy("correct worker.connectors_dir or these files; docs/how-to/connector-files.md shows what one is")
}

/// A folder that is not there allows nothing, and says so only when somebody needs it.
fn of_files(folders: &[PathBuf]) -> Result<(), Failure> {
    let unfit = folders.iter().find_map(|folder| {
        let why = std::fs::read_dir(folder).err()?;
        Some(format!("{ALLOWED_PATHS} names {}, which cannot be read: {why}", folder.display()))
    });
    match unfit {
        None => Ok(()),
        Some(what) => Err(Failure::new(Exit::Usage, "SETTINGS_INVALID", what)
            .kept("nothing was started")
            .remedy(
                "make the folder, let the server's user read it, or take it out of the setting",
            )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_connectors_are_looked_at_with_each_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(of_connectors(&at("none")).unwrap_err().code, "CONNECTOR_FILE");
        std::fs::write(at("good.properties"), "name=a\nconnector.class=FileStreamSource\n")
            .unwrap();
        of_connectors(dir.path()).unwrap();
        std::fs::write(at("bad.json"), "{").unwrap();
        let what = of_connectors(dir.path()).unwrap_err().what;
        assert!(what.contains("bad.json") && !what.contains("good"), "{what}");
        assert!(of_files(&[dir.path().to_owned()]).is_ok());
        let failure = of_files(&[dir.path().to_owned(), at("none")]).unwrap_err();
        assert!(
            failure.what.contains(ALLOWED_PATHS) && failure.what.contains("none"),
            "{failure:?}"
        );
    }
}
