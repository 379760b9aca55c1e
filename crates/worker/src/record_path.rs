//! What lies between a connector and the log: converters between values and bytes, and the
//! transforms beside them. Knows no task: what is done about a failure is decided elsewhere.

use std::borrow::Cow;

use bytes::Bytes;
use highwater_connector::{ConnectorError, ErrorKind, Header, LogRecord, Problem, SchemaAndValue};
use highwater_data::{Converter, DataError, Role, unknown_options};
use highwater_kafka::OutgoingRecord;
use highwater_transforms::{Chain, Record, TransformError};

use crate::pipeline::Properties;
use crate::plugin_kinds;
use crate::plugin_versions;
use crate::record_keys::{converter_key, converter_options};
use crate::scrub::Scrub;
use crate::settings::{ConverterSetting, DefaultConverters};
use crate::tolerance::Stage;

/// What failed with a record, and how.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    /// Full name of the class of the converter or transform.
    pub(crate) class: String,
    pub(crate) error: ConnectorError,
}

/// A converter and its place in a record.
struct Placed {
    role: Role,
    class: String,
    converter: Converter,
}

/// See the module's text. Not printed for debugging: there may be secrets among the options.
pub(crate) struct RecordPath {
    key: Placed,
    value: Placed,
    header: Placed,
    chain: Chain,
    /// Takes what the configuration refers to out of what is said of a failure.
    scrub: Scrub,
}

impl RecordPath {
    /// The path that a connector's properties name; where they name no converter, the worker's is
    /// taken with its own options, as Kafka Connect does.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(crate) fn new(
        properties: &Properties,
        defaults: &DefaultConverters,
        scrub: &Scrub,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = plugin_versions::of_parts(properties);
        problems.extend(misspelt(properties));
        let is_wrong = !problems.is_empty();
        let mut keep = |found: Vec<Problem>| problems.extend(found);
        let key = Placed::new(Role::Key, properties, &defaults.key).map_err(&mut keep).ok();
        let value = Placed::new(Role::Value, properties, &defaults.value).map_err(&mut keep).ok();
        let header =
            Placed::new(Role::Header, properties, &defaults.header).map_err(&mut keep).ok();
        let chain = Chain::new(properties).map_err(&mut keep).ok();
        match (key, value, header, chain) {
            (Some(key), Some(value), Some(header), Some(chain)) if !is_wrong => {
                Ok(Self { key, value, header, chain, scrub: scrub.clone() })
            }
            _ => Err(problems),
        }
    }

    /// The first transform that may drop records or send them elsewhere.
    pub(crate) fn rerouting(&self) -> Option<&str> {
        self.chain.rerouting()
    }

    /// What transforms make of a record; none when they drop it.
    pub(crate) fn transform(&self, record: Record) -> Result<Option<Record>, Box<Failure>> {
        if self.chain.is_empty() {
            return Ok(Some(record));
        }
        self.chain.apply(record).map_err(|failed| self.scrubbed(not_transformed(failed)))
    }

    fn scrubbed(&self, mut failure: Box<Failure>) -> Box<Failure> {
        failure.error = self.scrub.error(failure.error);
        failure
    }

    /// The values of a record of the log.
    pub(crate) async fn read(&self, record: &LogRecord) -> Result<Record, Box<Failure>> {
        self.values(record).await.map_err(|failure| self.scrubbed(failure))
    }

    /// The bytes of a record for the log.
    pub(crate) async fn write(&self, record: &Record) -> Result<OutgoingRecord, Box<Failure>> {
        self.bytes(record).await.map_err(|failure| self.scrubbed(failure))
    }

    async fn values(&self, record: &LogRecord) -> Result<Record, Box<Failure>> {
        let key = self.key.read(record.key.as_ref(), record).await?;
        let value = self.value.read(record.value.as_ref(), record).await?;
        let mut headers = Vec::with_capacity(record.headers.len());
        for (name, bytes) in &record.headers {
            let value = self.header.read(Some(bytes), record).await?;
            headers.push(Header { name: name.as_str().into(), value });
        }
        Ok(Record {
            topic: record.from.topic.clone(),
            partition: Some(record.from.partition),
            key,
            value,
            timestamp: Some(record.timestamp),
            headers,
            offset: Some(record.offset),
        })
    }

    async fn bytes(&self, record: &Record) -> Result<OutgoingRecord, Box<Failure>> {
        let topic = &record.topic;
        let mut headers = Vec::with_capacity(record.headers.len());
        for Header { name, value } in &record.headers {
            let bytes = self.header.write(topic, value).await?;
            let bytes = bytes.ok_or_else(|| self.header.no_header(topic, name))?;
            headers.push((Cow::Owned(name.as_ref().to_owned()), bytes));
        }
        let key = self.key.write(topic, &record.key).await?;
        let value = self.value.write(topic, &record.value).await?;
        Ok(OutgoingRecord {
            topic: topic.clone(),
            partition: record.partition,
            key,
            value,
            headers,
        })
    }
}

impl Placed {
    fn new(
        role: Role,
        properties: &Properties,
        default: &ConverterSetting,
    ) -> Result<Self, Vec<Problem>> {
        let key = converter_key(role);
        let given = properties.get(key).map(|class| class.trim()).filter(|class| !class.is_empty());
        let (class, made) = match given {
            Some(class) => {
                (class, Converter::new(class, &converter_options(role, properties), role))
            }
            None => {
                (default.class.as_str(), Converter::new(&default.class, &default.options, role))
            }
        };
        let converter = made.map_err(|problems| prefixed(key, problems))?;
        let kind = if role == Role::Header { "header_converter" } else { "converter" };
        Ok(Self { role, class: full_name(kind, class), converter })
    }

    async fn read(
        &self,
        bytes: Option<&Bytes>,
        record: &LogRecord,
    ) -> Result<SchemaAndValue, Box<Failure>> {
        self.converter.read(bytes).await.map_err(|error| {
            let LogRecord { from, offset, .. } = record;
            self.failed(
                format!("the {} of record {from}@{offset} cannot be read", self.name()),
                &error,
            )
        })
    }

    async fn write(
        &self,
        topic: &str,
        value: &SchemaAndValue,
    ) -> Result<Option<Bytes>, Box<Failure>> {
        let written = self.converter.write(topic, value.schema.as_ref(), &value.value).await;
        written.map_err(|error| self.not_written(topic, &error))
    }

    fn not_written(&self, topic: &str, error: &DataError) -> Box<Failure> {
        let what = format!("the {} of a record for topic {topic} cannot be written", self.name());
        self.failed(what, error)
    }

    /// The log's records have headers without bytes; what is sent here has not.
    fn no_header(&self, topic: &str, name: &str) -> Box<Failure> {
        self.not_written(topic, &DataError::unfit(format!("header {name:?} is null")))
    }

    fn failed(&self, what: String, error: &DataError) -> Box<Failure> {
        let key = converter_key(self.role);
        let what = format!("{what}: {error}");
        let error = if error.is_passing() {
            ConnectorError::again(error.code(), ErrorKind::Data, what)
        } else {
            let remedy =
                format!("set {key} and its options to what fits, then restart the connector");
            ConnectorError::stop(error.code(), ErrorKind::Data, what, remedy)
        };
        Box::new(Failure { stage: self.stage(), class: self.class.clone(), error })
    }

    const fn stage(&self) -> Stage {
        match self.role {
            Role::Key => Stage::KeyConverter,
            Role::Value => Stage::ValueConverter,
            Role::Header => Stage::HeaderConverter,
        }
    }

    const fn name(&self) -> &'static str {
        match self.role {
            Role::Key => "key",
            Role::Value => "value",
            Role::Header => "header",
        }
    }
}

/// Options that no converter has.
fn misspelt(properties: &Properties) -> Vec<Problem> {
    let of_place = |role| {
        let key = converter_key(role);
        prefixed(key, unknown_options(&converter_options(role, properties), &format!("{key}.")))
    };
    [Role::Key, Role::Value, Role::Header].into_iter().flat_map(of_place).collect()
}

/// A problem of the class has an empty key.
fn prefixed(key: &str, problems: Vec<Problem>) -> Vec<Problem> {
    let full = |option: String| {
        if option.is_empty() { key.to_owned() } else { format!("{key}.{option}") }
    };
    problems.into_iter().map(|problem| Problem { key: full(problem.key), ..problem }).collect()
}

/// The full name of the class of a kind that a configuration names.
fn full_name(kind: &str, named: &str) -> String {
    let classes = plugin_kinds::classes(kind);
    plugin_kinds::resolved(&classes, named).unwrap_or(named).to_owned()
}

fn not_transformed(failed: TransformError) -> Box<Failure> {
    let code = failed.code();
    let remedy = format!(
        "change transforms.{} or put it under a predicate that leaves such records alone, then \
         restart the connector",
        failed.transform
    );
    let error = ConnectorError::stop(code, ErrorKind::Data, failed.to_string(), remedy);
    let class = full_name("transformation", &failed.class);
    Box::new(Failure { stage: Stage::Transformation, class, error })
}

#[cfg(test)]
mod tests {
    use highwater_connector::{TopicPartition, Value};

    use super::*;

    fn path(pairs: &[(&str, &str)]) -> Result<RecordPath, Vec<Problem>> {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let properties = pairs.iter().map(pair).collect();
        RecordPath::new(&properties, &DefaultConverters::default(), &Scrub::default())
    }

    fn record(value: &'static [u8]) -> LogRecord {
        LogRecord {
            from: TopicPartition::new("orders", 2),
            offset: 17,
            timestamp: 5,
            key: None,
            value: Some(Bytes::from_static(value)),
            headers: vec![("n".to_owned(), Bytes::from_static(b"7"))],
        }
    }

    #[tokio::test]
    async fn without_a_word_the_workers_converters_count_with_their_own_options() {
        // As in Kafka Connect, options without a class of the connector's own count for nothing.
        let path = path(&[("value.converter.schemas.enable", "false")]).unwrap();
        let enveloped = record(br#"{"schema":{"type":"string"},"payload":"a"}"#);
        let read = path.read(&enveloped).await.unwrap();
        assert_eq!((&read.value.value, read.offset), (&Value::text("a"), Some(17)));
        assert_eq!(read.headers[0].value.value, Value::Int8(7));
        let failure = path.read(&record(b"\"a\"")).await.unwrap_err();
        assert_eq!(failure.stage, Stage::ValueConverter);
        assert!(failure.error.what.contains("value of record orders-2@17"), "{}", failure.error);
    }

    #[tokio::test]
    async fn a_record_is_written_with_its_headers() {
        let path = path(&[("value.converter", "String"), ("key.converter", "Long")]).unwrap();
        let value = SchemaAndValue::schemaless(Value::text("v"));
        let header = |value| Header { name: "h".into(), value: SchemaAndValue::schemaless(value) };
        let whole = Record {
            key: SchemaAndValue::schemaless(Value::Int64(1)),
            value,
            headers: vec![header(Value::text("x"))],
            ..Record::new("t")
        };
        let written = path.write(&whole).await.unwrap();
        assert_eq!(written.value.as_deref(), Some(&b"v"[..]));
        assert_eq!(written.key.as_deref(), Some(&1_i64.to_be_bytes()[..]));
        assert_eq!(written.headers, [("h".into(), Bytes::from("x"))]);
        let unfit = Record { headers: vec![header(Value::Null)], ..whole };
        let failure = path.write(&unfit).await.unwrap_err();
        assert_eq!(failure.stage, Stage::HeaderConverter);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_key() {
        for (pairs, key) in [
            (&[("key.converter", "no.Such")][..], "key.converter"),
            (
                &[("value.converter", "Json"), ("value.converter.schemas.enable", "perhaps")],
                "value.converter.schemas.enable",
            ),
            (&[("header.converter", "Avro")], "header.converter"),
            (&[("value.converter", "Avro")], "value.converter.schema.registry.url"),
            (&[("transforms", "a")], "transforms.a.type"),
            (
                &[("value.converter", "Json"), ("value.converter.schemas.enabl", "false")],
                "value.converter.schemas.enabl",
            ),
            (&[("key.converter.foo", "1")], "key.converter.foo"),
            (&[("header.converter.x", "1")], "header.converter.x"),
            (&[("transforms.x.type", "Filter")], "transforms.x.type"),
            (&[("predicates.p.type", "RecordIsTombstone")], "predicates.p.type"),
        ] {
            let problems = path(pairs).err().unwrap();
            assert_eq!(problems[0].key, key, "{problems:?}");
        }
    }
}
