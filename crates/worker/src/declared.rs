//! What follows for connectors from a folder of their files: decisions alone.
//!
//! A connector that is made or changed for a file bears a mark in the log: which file, and whether the
//! folder made it. Only what the folder made goes with its file.

use serde_json::{Value, json};

use crate::configs::ConfigState;
use crate::connector_files::{Declaration, Found, Look};

/// Whose a connector is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// The file that wants it so.
    pub(crate) file: String,
    /// Whether it was not there before the file.
    pub(crate) made: bool,
}

impl Mark {
    pub(crate) fn value(&self) -> Value {
        json!({ "file": self.file, "made": self.made })
    }

    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let file = value.get("file")?.as_str()?.to_owned();
        Some(Self { file, made: value.get("made")?.as_bool()? })
    }
}

/// One thing to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Make a connector, or change it.
    Put(Declaration, Mark),
    /// Delete a connector, whose file is gone.
    Delete(String),
    /// Let go of a connector that the folder has not made, or that is gone: it is nobody's file's.
    Release(String),
}

/// What is to be done so that the connectors are as the files say: what ends first, so that what it
/// holds is free. A file counts as gone when two looks have not found it, and never while there is no
/// file at all: that looks as a volume that is not mounted. A connector that is gone already is let go at
/// once.
pub(crate) fn changes(configs: &ConfigState, before: Option<&Look>, now: &Look) -> Vec<Change> {
    let wanted = now.wanted().connectors;
    let ended = configs
        .marks()
        .iter()
        .filter(|(name, mark)| {
            !wanted.contains_key(name.as_str())
                && (configs.properties(name).is_none() || is_gone(mark, name, before, now))
        })
        .map(|(name, mark)| match configs.properties(name) {
            Some(_) if mark.made => Change::Delete(name.clone()),
            _ => Change::Release(name.clone()),
        });
    let put = wanted.iter().filter_map(|(name, (file, declaration))| {
        let (stored, mark) = (configs.properties(name), configs.mark(name));
        let made = mark.map_or(stored.is_none(), |mark| mark.made);
        let new = Mark { file: (*file).to_owned(), made };
        let same = stored == Some(&declaration.properties) && mark == Some(&new);
        (!same).then(|| Change::Put((*declaration).clone(), new))
    });
    ended.chain(put).collect()
}

/// Whether the file of a connector that no file wants any more is gone, or wants another one.
fn is_gone(mark: &Mark, name: &str, before: Option<&Look>, now: &Look) -> bool {
    match now.files.get(&mark.file) {
        Some((_, Found::Read(Ok(declaration)))) => declaration.name != name,
        // It may want it yet.
        Some((_, Found::Read(Err(_)) | Found::Unsettled)) => false,
        None => {
            let was = before.is_none_or(|before| before.files.contains_key(&mark.file));
            !was && !now.files.is_empty()
        }
    }
}

#[cfg(test)]
#[path = "declared_tests.rs"]
mod tests;
