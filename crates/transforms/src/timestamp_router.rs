//! TimestampRouter: sends records to a topic with their time in its name.

use std::sync::Arc;

use highwater_config::{Config, ConfigKey, Importance, KeyType};
use highwater_data::{DataError, DateFormat};

use crate::options::{Problems, optional, wrong};
use crate::place::Place;
use crate::record::Record;
use crate::transform::{Applied, Transform};

const TOPIC: &str = "topic.format";
const TIMESTAMP: &str = "timestamp.format";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        optional(
            TOPIC,
            KeyType::String,
            "${topic}-${timestamp}",
            "The new name; ${topic} stands for the topic's, ${timestamp} for the record's time.",
        )
        .of_importance(Importance::High),
        optional(
            TIMESTAMP,
            KeyType::String,
            "yyyyMMdd",
            "How the time is written, in UTC, by Java's SimpleDateFormat.",
        )
        .of_importance(Importance::High),
    ]
}

#[derive(Debug)]
struct TimestampRouter {
    topic: String,
    timestamp: DateFormat,
}

pub(crate) fn make(_: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let timestamp =
        DateFormat::new(config.text(TIMESTAMP)).map_err(|what| wrong(TIMESTAMP, what))?;
    Ok(Box::new(TimestampRouter { topic: config.text(TOPIC).to_owned(), timestamp }))
}

impl Transform for TimestampRouter {
    fn apply(&self, mut record: Record) -> Applied {
        let ms = record.timestamp.ok_or_else(|| DataError::unfit("a record without timestamp"))?;
        let text = self
            .timestamp
            .format(ms)
            .ok_or_else(|| DataError::unfit("a timestamp outside of the years 1583 to 9999"))?;
        let topic = self.topic.replace("${topic}", &record.topic).replace("${timestamp}", &text);
        record.topic = Arc::from(topic);
        Ok(Some(record))
    }

    fn reroutes(&self) -> bool {
        true
    }
}
