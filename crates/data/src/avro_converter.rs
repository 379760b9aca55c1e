//! The AvroConverter: bytes are a zero, the registry's id of the schema in four bytes, and the value
//! as Avro.

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_config::{Config, ConfigKey, Importance, KeyType, Problem};
use parking_lot::Mutex;

use crate::avro::AvroSchema;
use crate::cache::Cache;
use crate::converter::Role;
use crate::error::DataError;
use crate::plain::checked;
use crate::registry::{Login, Patience, Registry, Server};
use crate::schema::Schema;
use crate::value::{SchemaAndValue, Value};

/// Its class.
pub const AVRO_CONVERTER: &str = "io.confluent.connect.avro.AvroConverter";

const URL: &str = "schema.registry.url";
const LOGIN_SOURCE: &str = "basic.auth.credentials.source";
const LOGIN: &str = "basic.auth.user.info";
const TRUST: &str = "schema.registry.ssl.truststore.location";
const TRUST_TYPE: &str = "schema.registry.ssl.truststore.type";
const AUTO_REGISTER: &str = "auto.register.schemas";
const CACHE: &str = "schemas.cache.config";
const CONNECT_TIMEOUT: &str = "http.connect.timeout.ms";
const READ_TIMEOUT: &str = "http.read.timeout.ms";
const RETRIES: &str = "max.retries";
const RETRY_WAIT: &str = "retries.wait.ms";
const RETRY_WAIT_MAX: &str = "retries.max.wait.ms";

/// Options of the original that change what is written: any other value than this one is refused.
const FIXED: &[(&str, &str)] = &[
    ("use.latest.version", "false"),
    ("use.schema.id", "-1"),
    ("normalize.schemas", "false"),
    ("connect.meta.data", "true"),
    ("enhanced.avro.schema.support", "false"),
    ("scrub.invalid.names", "false"),
    ("allow.optional.map.keys", "false"),
    ("flatten.unions", "false"),
    ("flatten.singleton.unions", "false"),
    ("generalized.sum.type.support", "false"),
    ("ignore.default.for.nullables", "false"),
    ("key.subject.name.strategy", TOPIC_NAME),
    ("value.subject.name.strategy", TOPIC_NAME),
    ("bearer.auth.credentials.source", ""),
    ("discard.type.doc.default", "false"),
    ("propagate.schema.tags", "false"),
    ("context.name.strategy", NO_CONTEXT),
    ("use.latest.with.metadata", ""),
];
const NO_CONTEXT: &str = "io.confluent.kafka.serializers.context.NullContextNameStrategy";
const TOPIC_NAME: &str = "io.confluent.kafka.serializers.subject.TopicNameStrategy";

/// Options of the original that change nothing here: they are about its memory, about classes of Java, or about what
/// the [`FIXED`] ones have switched off.
const IDLE: &[&str] = &[
    "max.schemas.per.subject",
    "latest.cache.size",
    "latest.cache.ttl.sec",
    "latest.compatibility.strict",
    "id.compatibility.strict",
    "specific.avro.reader",
    "schema.reflection",
    "avro.reflection.allow.null",
    "avro.use.logical.type.converters",
    "avro.remove.java.properties",
];

/// The names of all options that are taken.
pub(crate) fn options() -> impl Iterator<Item = &'static str> {
    let own = keys().into_iter().map(|key| key.name);
    own.chain(FIXED.iter().map(|(name, _)| *name)).chain(IDLE.iter().copied())
}

/// A first byte that says that a schema's id follows.
const MAGIC: u8 = 0;

pub(crate) fn keys() -> Vec<ConfigKey> {
    let (high, medium, low) = (Importance::High, Importance::Medium, Importance::Low);
    let text = KeyType::String;
    let count = |max| KeyType::Int { min: 0, max };
    let hour = KeyType::Int { min: 1, max: 3_600_000 };
    let key = ConfigKey::new;
    vec![
        key(
            URL,
            KeyType::List,
            None,
            high,
            "Addresses of the registry, http or https; each is asked in turn.",
        ),
        key(
            LOGIN_SOURCE,
            KeyType::Choice(&["URL", "USER_INFO"]),
            Some("URL"),
            medium,
            "Where the login is: URL (https://user:password@host) or USER_INFO.",
        ),
        key(LOGIN, KeyType::Password, Some(""), medium, "The login, user:password."),
        key(
            TRUST,
            text,
            Some(""),
            medium,
            "File in PEM with the authorities to trust; empty: those of the system.",
        ),
        key(TRUST_TYPE, KeyType::Choice(&["PEM"]), Some("PEM"), low, "Form of that file."),
        key(
            AUTO_REGISTER,
            KeyType::Boolean,
            Some("true"),
            medium,
            "Whether a schema that the registry does not have is registered; else it is refused.",
        ),
        key(
            CACHE,
            count(1_000_000),
            Some("1000"),
            low,
            "How many schemas are remembered each way.",
        ),
        key(
            CONNECT_TIMEOUT,
            hour,
            Some("60000"),
            low,
            "Time in milliseconds that connecting may take.",
        ),
        key(
            READ_TIMEOUT,
            hour,
            Some("60000"),
            low,
            "Time in milliseconds that an answer may take.",
        ),
        key(
            RETRIES,
            count(100),
            Some("3"),
            low,
            "How often a request without answer is sent again.",
        ),
        key(
            RETRY_WAIT,
            count(600_000),
            Some("1000"),
            low,
            "Time in milliseconds before the second attempt; then doubled.",
        ),
        key(
            RETRY_WAIT_MAX,
            count(600_000),
            Some("20000"),
            low,
            "Greatest time in milliseconds between two attempts.",
        ),
    ]
}

/// See the module.
#[derive(Debug)]
pub struct AvroConverter {
    registry: Registry,
    role: Role,
    auto_register: bool,
    /// By subject and identity of the schema, which is held so that it stays its own.
    written: Mutex<Cache<(String, usize), Registered>>,
    read: Mutex<Cache<u32, AvroSchema>>,
}

#[derive(Clone, Debug)]
struct Registered {
    _schema: Schema,
    avro: AvroSchema,
    id: u32,
}

impl AvroConverter {
    /// The converter with these options.
    ///
    /// # Errors
    /// Values that do not fit, and options of the original that are not supported.
    pub fn new(options: &BTreeMap<String, String>, role: Role) -> Result<Self, Vec<Problem>> {
        for (key, value) in FIXED {
            if options.get(*key).is_some_and(|given| !given.trim().eq_ignore_ascii_case(value)) {
                return Err(vec![Problem::new(
                    key,
                    format!("must be {value:?}: nothing else is supported"),
                )]);
            }
        }
        let config = checked(keys(), options)?;
        let registry = registry(&config)?;
        let size = usize::try_from(config.int(CACHE)).unwrap_or(0);
        Ok(Self {
            registry,
            role,
            auto_register: config.flag(AUTO_REGISTER),
            written: Mutex::new(Cache::new(size)),
            read: Mutex::new(Cache::new(size)),
        })
    }

    /// The bytes of a value; null has none.
    ///
    /// # Errors
    /// The value has no schema or does not fit it, or the registry does not take it.
    pub async fn from_connect(
        &self,
        topic: &str,
        schema: Option<&Schema>,
        value: &Value,
    ) -> Result<Option<Bytes>, DataError> {
        if value.is_null() {
            return match schema {
                Some(schema) if !schema.is_optional() => {
                    Err(DataError::unfit("null for a required value"))
                }
                _ => Ok(None),
            };
        }
        let schema =
            schema.ok_or_else(|| DataError::unfit("a value without schema, which Avro needs"))?;
        let Registered { avro, id, .. } = self.registered(topic, schema).await?;
        let mut bytes = vec![MAGIC];
        bytes.extend_from_slice(&id.to_be_bytes());
        bytes.extend_from_slice(&avro.encode(value)?);
        Ok(Some(bytes.into()))
    }

    async fn registered(&self, topic: &str, schema: &Schema) -> Result<Registered, DataError> {
        let subject = format!("{topic}-{}", if self.role == Role::Key { "key" } else { "value" });
        let key = (subject, schema.identity());
        if let Some(registered) = self.written.lock().get(&key) {
            return Ok(registered.clone());
        }
        let avro = AvroSchema::of(schema)?;
        // Rare and large: on the heap, so that the futures of records that need no registry stay small.
        let asked = Box::pin(self.registry.id_of(&key.0, avro.text(), self.auto_register));
        let id = asked.await?;
        let registered = Registered { _schema: schema.clone(), avro, id };
        self.written.lock().put(key, registered.clone());
        Ok(registered)
    }

    /// The value of these bytes.
    ///
    /// # Errors
    /// They do not begin with an id, are none of its schema, or the registry does not know it.
    pub async fn to_connect(&self, bytes: Option<&[u8]>) -> Result<SchemaAndValue, DataError> {
        let Some(bytes) = bytes else { return Ok(SchemaAndValue::default()) };
        let (id, value) = match bytes {
            [MAGIC, a, b, c, d, value @ ..] => (u32::from_be_bytes([*a, *b, *c, *d]), value),
            _ => {
                return Err(DataError::unfit(
                    "bytes that do not begin with 0 and the id of a schema",
                ));
            }
        };
        let known = self.read.lock().get(&id).cloned();
        let avro = match known {
            Some(avro) => avro,
            None => {
                let text = Box::pin(self.registry.schema_of(id)).await?;
                let avro = AvroSchema::parse(&text)?;
                self.read.lock().put(id, avro.clone());
                avro
            }
        };
        avro.decode(value)
    }
}

fn registry(config: &Config) -> Result<Registry, Vec<Problem>> {
    let login = match (config.text(LOGIN_SOURCE), config.text(LOGIN)) {
        ("USER_INFO", "") => {
            return Err(vec![Problem::new(LOGIN, "must be given as user:password")]);
        }
        ("USER_INFO", login) => Some(Login::new(login)),
        _ => None,
    };
    let mut servers = Vec::new();
    for url in config.list(URL) {
        servers
            .push(Server::new(url, login.clone()).map_err(|what| vec![Problem::new(URL, what)])?);
    }
    if servers.is_empty() {
        return Err(vec![Problem::new(URL, "must name one address at least")]);
    }
    let patience = Patience {
        connect: config.millis(CONNECT_TIMEOUT),
        answer: config.millis(READ_TIMEOUT),
        retries: u32::try_from(config.int(RETRIES)).unwrap_or(0),
        wait: config.millis(RETRY_WAIT),
        longest_wait: config.millis(RETRY_WAIT_MAX),
    };
    let trust = Some(config.text(TRUST)).filter(|file| !file.is_empty());
    Registry::new(servers, patience, trust).map_err(|what| vec![Problem::new(TRUST, what)])
}
