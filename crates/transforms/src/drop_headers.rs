//! DropHeaders: takes headers off by their names.

use highwater_config::{Config, ConfigKey, KeyType};

use crate::options::{Problems, required, some_list};
use crate::place::Place;
use crate::record::Record;
use crate::transform::{Applied, Transform};

const HEADERS: &str = "headers";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![required(HEADERS, KeyType::List, "Names of the headers to take off.")]
}

#[derive(Debug)]
struct DropHeaders {
    names: Vec<String>,
}

pub(crate) fn make(_: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    Ok(Box::new(DropHeaders { names: some_list(config, HEADERS)? }))
}

impl Transform for DropHeaders {
    fn apply(&self, mut record: Record) -> Applied {
        record.headers.retain(|header| !self.names.iter().any(|name| **name == *header.name));
        Ok(Some(record))
    }
}
