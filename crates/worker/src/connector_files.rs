//! The folder of connector files: what stands in it, read as it is.
//!
//! A file is one connector, in the form of a request that makes one (JSON) or of Kafka Connect's
//! standalone worker (JSON or Java's `Properties`).

use std::collections::{BTreeMap, btree_map::Entry};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use highwater_kafka::properties;
use serde_json::{Value, json};

use crate::WorkerConfig;
use crate::fresh::listed;
use crate::keys;
use crate::pipeline::Properties;
use crate::plan::Plan;
use crate::plugins::{Plugin, Plugins};
use crate::rest_request::{Given, whole};
use crate::target_state::TargetState;

/// Largest file of a connector, in bytes: the bound of a request's body.
const MAX_FILE: u64 = 1 << 20;

/// Files that a folder may have.
const MAX_FILES: usize = 10_000;

/// A file that has not changed for so long is taken at the first sight.
const SETTLED: Duration = Duration::from_secs(2);

/// What a file wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The connector's name.
    pub name: String,
    /// Its configuration.
    pub properties: BTreeMap<String, String>,
    /// What its connector begins with when it is made.
    pub(crate) target: TargetState,
}

impl Declaration {
    /// Reads the text of a file, whose end says how it is written: JSON where it says nothing. The
    /// connector's name is `unnamed` where the text gives none.
    ///
    /// # Errors
    /// What is wrong with it; no value of it.
    pub fn read(file: &Path, text: &str, unnamed: &str) -> Result<Self, String> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Format::of(&name).unwrap_or(Format::Json).parse(text, unnamed)
    }

    /// The body of a request that makes the connector.
    pub fn request(&self) -> Value {
        let Self { name, properties, target } = self;
        json!({ "name": name, "config": properties, "initial_state": target.initial() })
    }
}

/// Tells one state of a file from another without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    changed: Option<SystemTime>,
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self { inode: found.ino(), size: found.len(), changed: found.modified().ok() }
    }

    fn is_settled(&self) -> bool {
        let age = self.changed.and_then(|changed| changed.elapsed().ok());
        age.is_some_and(|age| age >= SETTLED)
    }
}

/// A file at one look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// It changes just now: the look after this one says more.
    Unsettled,
    /// What it wants, or what is wrong with it.
    Read(Result<Declaration, String>),
}

/// All files at one look, by their names. Looks follow one another: what a file is can only be said
/// by two of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Look {
    pub(crate) files: BTreeMap<String, (Stamp, Found)>,
}

impl Look {
    /// Looks at `folder`, some time after `before`.
    ///
    /// # Errors
    /// When the folder cannot be read; nothing is known of its files then.
    pub(crate) fn at(folder: &Path, before: &Self) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_text = name.to_str().is_some();
            let name = name.to_string_lossy().into_owned();
            let Some(format) = Format::of(&name) else { continue };
            if files.len() == MAX_FILES {
                return Err(io::Error::other(format!("it has more than {MAX_FILES} files")));
            }
            // Of what a link leads to, as a mounted volume has them.
            let stamp = match fs::metadata(entry.path()) {
                Ok(found) if found.is_file() && is_text => Stamp::of(&found),
                // Gone since the folder was read.
                Err(_) if fs::symlink_metadata(entry.path()).is_err() => continue,
                unfit => {
                    // It stands there, so what it wanted last is not given up.
                    let why = match unfit {
                        Ok(found) if found.is_file() => "its name is no UTF-8".to_owned(),
                        Ok(_) => "it is no file".to_owned(),
                        Err(error) => format!("it cannot be read: {error}"),
                    };
                    files.insert(name, (Stamp::default(), Found::Read(Err(why))));
                    continue;
                }
            };
            let known = before.files.get(&name).filter(|(known, _)| *known == stamp);
            let found = match known {
                Some((_, Found::Read(read))) => Found::Read(read.clone()),
                Some((_, Found::Unsettled)) => format.read(&entry.path(), &name, stamp),
                None if stamp.is_settled() => format.read(&entry.path(), &name, stamp),
                None => Found::Unsettled,
            };
            files.insert(name, (stamp, found));
        }
        Ok(Self { files })
    }

    /// What each connector's file wants, by the connector's name, and what is wrong with which file.
    /// Two files that want one connector are both wrong.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        let Wanted { mut connectors, mut wrong } = Wanted::default();
        for (file, (_, found)) in &self.files {
            match found {
                Found::Unsettled => {}
                Found::Read(Err(why)) => drop(wrong.insert(file, why.clone())),
                Found::Read(Ok(declaration)) => match connectors.entry(&declaration.name) {
                    Entry::Vacant(free) => drop(free.insert((file, declaration))),
                    Entry::Occupied(taken) => {
                        let (other, _) = *taken.get();
                        let twice = |file: &str| {
                            format!("connector {} is wanted by {file}, too", declaration.name)
                        };
                        wrong.insert(other, twice(file));
                        wrong.insert(file, twice(other));
                    }
                },
            }
        }
        connectors.retain(|_, (file, _)| !wrong.contains_key(*file));
        Wanted { connectors, wrong }
    }
}

/// Reads all files of a folder, without following it, and checks their keys as far as that can be done
/// without a log: what is wrong, by file.
///
/// # Errors
/// When the folder cannot be read.
pub fn check_connector_files(
    folder: &Path,
    plugins: Vec<Plugin>,
    worker: &WorkerConfig,
) -> io::Result<BTreeMap<String, String>> {
    // What has changed just now is read at the second look.
    let look = Look::at(folder, &Look::at(folder, &Look::default())?)?;
    let (plugins, wanted) = (Plugins::new(plugins), look.wanted());
    let refused = wanted.connectors.into_iter().filter_map(|(name, (file, declaration))| {
        let problems = Plan::of(name, &declaration.properties, &[], &plugins, worker).err()?;
        Some((file, listed(&problems)))
    });
    let wrong = wanted.wrong.into_iter().chain(refused);
    Ok(wrong.map(|(file, why)| (file.to_owned(), why)).collect())
}

/// What all files together want.
#[derive(Default)]
pub(crate) struct Wanted<'a> {
    /// By the connector's name: the file, and what it wants.
    pub(crate) connectors: BTreeMap<&'a str, (&'a str, &'a Declaration)>,
    /// What is wrong, by file.
    pub(crate) wrong: BTreeMap<&'a str, String>,
}

/// How a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Json,
    Properties,
}

impl Format {
    /// By the name's end; hidden files and those of other ends are no connectors.
    fn of(name: &str) -> Option<Self> {
        let (stem, end) = name.rsplit_once('.')?;
        match end {
            _ if stem.is_empty() || stem.starts_with('.') => None,
            "json" => Some(Self::Json),
            "properties" => Some(Self::Properties),
            _ => None,
        }
    }

    fn read(self, path: &Path, name: &str, stamp: Stamp) -> Found {
        match text(path, stamp) {
            Ok(Some(text)) => {
                let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
                Found::Read(self.parse(&text, stem))
            }
            Ok(None) => Found::Unsettled,
            Err(error) => Found::Read(Err(error.to_string())),
        }
    }

    /// What a text wants; `stem` is the connector's name where it gives none.
    fn parse(self, text: &str, stem: &str) -> Result<Declaration, String> {
        match self {
            Self::Properties => of_properties(properties::parse(text)?, stem),
            Self::Json => of_json(text, stem),
        }
    }
}

/// The text of a file; `None` when it changes meanwhile.
fn text(path: &Path, stamp: Stamp) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    if Stamp::of(&file.metadata()?) != stamp {
        return Ok(None);
    }
    if stamp.size > MAX_FILE {
        return Err(io::Error::other(format!("it has more than {MAX_FILE} bytes")));
    }
    let mut bytes = Vec::new();
    (&mut file).take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if Stamp::of(&file.metadata()?) != stamp || bytes.len() as u64 != stamp.size {
        return Ok(None);
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is no UTF-8"))?;
    Ok(Some(text))
}

fn of_properties(mut properties: Properties, stem: &str) -> Result<Declaration, String> {
    let name = properties.entry(keys::NAME.to_owned()).or_insert_with(|| stem.to_owned()).clone();
    if !properties.contains_key(keys::CLASS) {
        return Err(format!("it has no {}", keys::CLASS));
    }
    Ok(Declaration { name, properties, target: TargetState::Started })
}

fn of_json(text: &str, stem: &str) -> Result<Declaration, String> {
    // Where it is wrong, not what stands there: it may be a password.
    let place = |error: serde_json::Error| {
        format!("it is no JSON at line {} column {}", error.line(), error.column())
    };
    let Value::Object(mut object) = serde_json::from_str(text).map_err(place)? else {
        return Err("it is no JSON object".to_owned());
    };
    let Some(config) = object.get_mut("config").filter(|config| config.is_object()) else {
        return of_properties(flat(Value::Object(object))?, stem);
    };
    let mut properties = flat(config.take())?;
    object.remove("config");
    let mut word = |key: &str| match object.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its {key} is no text")),
    };
    let (name, state) = (word("name")?, word("initial_state")?);
    if let Some(key) = object.keys().next() {
        return Err(format!("it has {key} beside its config, which nobody knows"));
    }
    let own = properties.get(keys::NAME);
    match (name, own) {
        (Some(name), Some(own)) if name != *own => {
            return Err(format!("its name is {name}, and {own} in its config"));
        }
        (Some(name), _) => drop(properties.insert(keys::NAME.to_owned(), name)),
        (None, _) => {}
    }
    let mut declaration = of_properties(properties, stem)?;
    if let Some(state) = state {
        declaration.target = TargetState::from_initial(&state)
            .ok_or("its initial_state is none of RUNNING, PAUSED and STOPPED")?;
    }
    Ok(declaration)
}

fn flat(config: Value) -> Result<Properties, String> {
    let given: Given = serde_json::from_value(config)
        .map_err(|_| "a value of its config is no text, number or truth value".to_owned())?;
    whole(given).map_err(|_| "a value of its config is null".to_owned())
}

#[cfg(test)]
#[path = "connector_files_tests.rs"]
mod tests;
