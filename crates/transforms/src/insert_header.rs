//! InsertHeader: adds a header whose value is the same for all records.

use std::sync::Arc;

use highwater_config::{Config, ConfigKey, KeyType};
use highwater_data::{Header, infer};

use crate::options::{Problems, required};
use crate::place::Place;
use crate::record::Record;
use crate::transform::{Applied, Transform};

const HEADER: &str = "header";
const LITERAL: &str = "value.literal";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        required(HEADER, KeyType::String, "Name of the header."),
        required(
            LITERAL,
            KeyType::String,
            "Its value; the type is inferred as by SimpleHeaderConverter.",
        ),
    ]
}

#[derive(Debug)]
struct InsertHeader {
    header: Header,
}

pub(crate) fn make(_: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let header =
        Header { name: Arc::from(config.text(HEADER)), value: infer::parse(config.text(LITERAL)) };
    Ok(Box::new(InsertHeader { header }))
}

impl Transform for InsertHeader {
    fn apply(&self, mut record: Record) -> Applied {
        record.headers.push(self.header.clone());
        Ok(Some(record))
    }
}
