//! Where configurations may take secrets from, and the look there (rule A4).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::path::{Component, Path};
use std::sync::Arc;

use highwater_connector::{AllowedPaths, Problem};
use highwater_kafka::properties;

use crate::keys;
use crate::pipeline::Properties;
use crate::record_keys;
use crate::references::{Piece, Provider, Reference, has_reference, pieces};
use crate::scrub::Scrub;
use crate::topic_creation;

/// Largest file that a reference may lead to, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Keys whose value becomes a part of other keys' names, or of what the log answers: no secret has a
/// place there, and nothing could be scrubbed from a key.
const NAMES: [&str; 4] =
    [record_keys::TRANSFORMS, record_keys::PREDICATES, topic_creation::GROUPS, keys::OFFSETS_TOPIC];

/// What references in configurations may lead to: files below folders, and environment variables by
/// their names. Nothing is remembered: each look is a new one.
#[derive(Clone)]
pub struct SecretProviders {
    paths: AllowedPaths,
    /// Name of the setting that holds `names`.
    setting: &'static str,
    names: Arc<[String]>,
    environment: fn(&str) -> Option<OsString>,
}

impl SecretProviders {
    /// Files below `paths`, and the environment variables `names`, which the server's setting
    /// `setting` holds.
    pub fn new(
        paths: AllowedPaths,
        setting: &'static str,
        names: impl IntoIterator<Item = String>,
    ) -> Self {
        let environment = |name: &str| env::var_os(name);
        Self { paths, setting, names: names.into_iter().collect(), environment }
    }

    /// The same with another environment.
    #[cfg(test)]
    pub(crate) fn with_environment(mut self, environment: fn(&str) -> Option<OsString>) -> Self {
        self.environment = environment;
        self
    }

    /// A configuration with what its references lead to now.
    ///
    /// # Errors
    /// All that lead nowhere: the key, the reference and why, never what is there.
    pub(crate) fn resolve(&self, given: &Properties) -> Result<Resolved, Vec<Problem>> {
        let mut look = Look { providers: self, files: BTreeMap::new(), found: Vec::new() };
        let (mut properties, mut problems) = (given.clone(), Vec::new());
        for (key, value) in properties.iter_mut().filter(|(_, value)| has_reference(value)) {
            let resolved = if NAMES.contains(&key.as_str()) {
                Err("names keys or a topic, which are shown: write it out".to_owned())
            } else {
                look.value(value)
            };
            match resolved {
                Ok(resolved) => *value = resolved,
                Err(message) => problems.push(Problem { key: key.clone(), message }),
            }
        }
        let scrub = Scrub::of(look.found);
        if problems.is_empty() { Ok(Resolved { properties, scrub }) } else { Err(problems) }
    }
}

impl fmt::Debug for SecretProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretProviders")
            .field("paths", &self.paths)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// A configuration with secrets in it. It is not printed for debugging.
pub(crate) struct Resolved {
    pub(crate) properties: Properties,
    /// Takes the secrets out of texts.
    pub(crate) scrub: Scrub,
}

/// One look at what all references of a configuration lead to: each file is read once, so that a
/// user and a password of it fit each other.
struct Look<'a> {
    providers: &'a SecretProviders,
    files: BTreeMap<String, Properties>,
    found: Vec<String>,
}

impl Look<'_> {
    fn value(&mut self, value: &str) -> Result<String, String> {
        let mut resolved = String::with_capacity(value.len());
        for piece in pieces(value) {
            match piece {
                Piece::Text(text) => resolved.push_str(text),
                Piece::Reference(reference) => {
                    let found = self.find(&reference).map_err(|why| {
                        format!("refers to {}, which leads nowhere: {why}", reference.text)
                    })?;
                    resolved.push_str(&found);
                    self.found.push(found);
                }
            }
        }
        Ok(resolved)
    }

    fn find(&mut self, reference: &Reference<'_>) -> Result<String, String> {
        let Reference { provider, path, key, .. } = *reference;
        match provider {
            Provider::Env if path.is_empty() => self.providers.variable(key),
            Provider::Env => Err("an environment variable has a name and no path".to_owned()),
            Provider::File if path.is_empty() => {
                let text = self.providers.file(Path::new(key))?;
                let line =
                    text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
                Ok(line.unwrap_or(&text).to_owned())
            }
            Provider::File => {
                let found = self.properties(path)?.get(key).cloned();
                found.ok_or_else(|| format!("{path} has no key {key}"))
            }
            // As with Kafka Connect a line end belongs to it, and a name is no path.
            Provider::Dir if is_name(key) => self.providers.file(&Path::new(path).join(key)),
            Provider::Dir => Err(format!("{key:?} is no name of a file in a folder")),
        }
    }

    fn properties(&mut self, path: &str) -> Result<&Properties, String> {
        match self.files.entry(path.to_owned()) {
            Entry::Occupied(read) => Ok(read.into_mut()),
            Entry::Vacant(unread) => {
                let text = self.providers.file(Path::new(path))?;
                let read = properties::parse(&text).map_err(|why| format!("{path}: {why}"))?;
                Ok(unread.insert(read))
            }
        }
    }
}

fn is_name(key: &str) -> bool {
    let mut parts = Path::new(key).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == key)
}

impl SecretProviders {
    fn variable(&self, name: &str) -> Result<String, String> {
        if !self.names.iter().any(|known| known == name) {
            return Err(format!("the server's setting {} does not name {name}", self.setting));
        }
        let value = (self.environment)(name).ok_or("the server has no such variable")?;
        value.into_string().map_err(|_| "its value is no UTF-8".to_owned())
    }

    /// The text of a file, in whole.
    fn file(&self, path: &Path) -> Result<String, String> {
        let told = |error: io::Error| match error.kind() {
            // It says all there is to say.
            io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => error.to_string(),
            _ => format!("{}: {error}", path.display()),
        };
        let file = self.paths.open(path, OpenOptions::new().read(true)).map_err(told)?;
        let mut bytes = Vec::new();
        // More may come while it is read than it had when it was opened.
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(told)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(format!("{} has more than {MAX_FILE} bytes", path.display()));
        }
        String::from_utf8(bytes).map_err(|_| format!("{} is no UTF-8", path.display()))
    }
}

#[cfg(test)]
#[path = "secret_providers_tests.rs"]
mod tests;
