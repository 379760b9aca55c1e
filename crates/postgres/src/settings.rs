//! The configuration: Debezium's names, and what the values mean here.

use std::time::Duration;

use highwater_connector::{
    Config, ConfigDef, ConfigKey, ConnectorError, ErrorKind, Importance, KeyType, Routing,
};
use sha2::{Digest as _, Sha256};

use crate::error::code;
use crate::filter::Filter;
use crate::forms::{Forms, JSON_CONVERTER};
use crate::tls::{SslMode, Tls};

/// How the publication comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Autocreate {
    /// It has to be there.
    Disabled,
    /// For all tables of the database, if it is not there.
    AllTables,
    /// For the captured tables; missing ones are added.
    Filtered,
}

/// Whether tables are read before their changes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SnapshotMode {
    /// At the first start.
    Initial,
    /// Never.
    NoData,
}

/// What to do with a slot that stands without a stored offset (rule P3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Adopt {
    /// Refuse.
    No,
    /// Go on where the slot stands.
    Stream,
    /// Drop it and begin again with a snapshot.
    Resnapshot,
}

/// Where the server is and who asks.
#[derive(Clone)]
pub(crate) struct Login {
    /// Host name, or the folder of a Unix socket.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
    /// User.
    pub(crate) user: String,
    /// Password; may be empty.
    pub(crate) password: String,
    /// Database.
    pub(crate) database: String,
    /// Bound of making a connection.
    pub(crate) connect_timeout: Duration,
    /// How long the server may be silent while it owes an answer.
    pub(crate) answer_timeout: Duration,
    /// See [`Tls`].
    pub(crate) tls: Tls,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, port, user, database, .. } = self;
        write!(f, "{user}@{host}:{port}/{database}")
    }
}

/// A checked configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// See [`Login`].
    pub(crate) login: Login,
    /// `topic.prefix`: the trail's name, or what the names of tables' topics begin with.
    pub(crate) prefix: String,
    /// Whether records go to a trail or to topics of their tables.
    pub(crate) routing: Routing,
    /// Whether a tombstone follows a DELETE.
    pub(crate) tombstones: bool,
    /// Debezium's forms, where the configuration states them (rule R6).
    pub(crate) forms: Option<Forms>,
    /// Name of the slot.
    pub(crate) slot: String,
    /// Name of the publication.
    pub(crate) publication: String,
    /// See [`Autocreate`].
    pub(crate) autocreate: Autocreate,
    /// Whether changes of partitions bear the name of the partitioned table.
    pub(crate) via_root: bool,
    /// Which tables are captured.
    pub(crate) filter: Filter,
    /// See [`SnapshotMode`].
    pub(crate) snapshot: SnapshotMode,
    /// Rows that one poll of a snapshot yields at most.
    pub(crate) fetch_size: usize,
    /// See [`Adopt`].
    pub(crate) adopt: Adopt,
    /// Stands for a value that the server did not send.
    pub(crate) placeholder: String,
    /// Time between two status updates.
    pub(crate) status_interval: Duration,
    /// Time between two looks at the server.
    pub(crate) watch_interval: Duration,
    /// From how many held bytes on the status warns.
    pub(crate) wal_warn: u64,
    /// Bound of waiting for the slot to be made.
    pub(crate) slot_timeout: Duration,
    /// Bound of a record's key and value together, bytes.
    pub(crate) record_limit: usize,
}

/// Key of the largest record: the worker's, read here too, so that a larger row is not even
/// buffered.
pub(crate) const RECORD_LIMIT: &str = "producer.override.max.request.size";

/// The keys that the connector takes.
pub(crate) fn definition() -> ConfigDef {
    let mut keys = login_keys();
    keys.extend(tls_keys());
    keys.extend(capture_keys());
    keys.extend(running_keys());
    keys.extend(fixed_keys());
    keys.extend(form_keys());
    ConfigDef::new(keys)
}

fn login_keys() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    use KeyType::{Int, Password, String};
    vec![
        ConfigKey::new(
            "database.hostname",
            String,
            None,
            High,
            "Host name or address of the server; a text that begins with / is the folder of its Unix socket.",
        ),
        ConfigKey::new(
            "database.port",
            Int { min: 1, max: 65_535 },
            Some("5432"),
            High,
            "Port of the server, 1 to 65535.",
        ),
        ConfigKey::new(
            "database.user",
            String,
            None,
            High,
            "User with the attribute REPLICATION and SELECT on the captured tables.",
        ),
        ConfigKey::new(
            "database.password",
            Password,
            Some(""),
            High,
            "Password of the user. Empty where the server asks for none.",
        ),
        ConfigKey::new(
            "database.dbname",
            String,
            None,
            High,
            "Database whose changes are captured; a slot sees one database.",
        ),
        ConfigKey::new(
            "database.connect.timeout.ms",
            Int { min: 100, max: 600_000 },
            Some("10000"),
            Medium,
            "Bound of making a connection, milliseconds, 100 to 600000.",
        ),
        ConfigKey::new(
            "database.answer.timeout.ms",
            Int { min: 1_000, max: 86_400_000 },
            Some("600000"),
            Low,
            "How long the server may be silent while a start waits for an answer or a snapshot for rows, milliseconds, 1000 to 86400000; then the task tries again.",
        ),
        ConfigKey::new(
            "topic.prefix",
            String,
            None,
            High,
            "Name of the trail topic, or what the names of tables' topics begin with, and of the logical server in offsets and records: letters, digits, '.', '_' and '-', at most 200.",
        ),
    ]
}

fn tls_keys() -> Vec<ConfigKey> {
    use Importance::Medium;
    use KeyType::{Choice, String};
    vec![
        ConfigKey::new(
            "database.sslmode",
            Choice(&SslMode::NAMES),
            Some("prefer"),
            Medium,
            "As in libpq. disable: no TLS. prefer: TLS where the server speaks it, else in the clear. require: TLS, whoever the server is; with database.sslrootcert the same as verify-ca. verify-ca: the server's certificate must be signed by database.sslrootcert. verify-full: it must also name database.hostname as a subject alternative name. On a Unix socket TLS is never used.",
        ),
        ConfigKey::new(
            "database.sslrootcert",
            String,
            Some(""),
            Medium,
            "File with the certificates of the authorities to trust, PEM, at most 4 MiB; read by the server process at each connection. Needed by verify-ca and verify-full.",
        ),
        ConfigKey::new(
            "database.sslcert",
            String,
            Some(""),
            Medium,
            "File with the certificate to log in with, followed by those between it and its authority, PEM. Only together with database.sslkey.",
        ),
        ConfigKey::new(
            "database.sslkey",
            String,
            Some(""),
            Medium,
            "File with the key of database.sslcert: PEM or PKCS#8 DER, without a passphrase.",
        ),
    ]
}

fn capture_keys() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    use KeyType::{Boolean, Choice, List, String};
    vec![
        ConfigKey::new(
            "table.include.list",
            List,
            Some(""),
            High,
            "Tables to capture: regular expressions separated by commas, each matched against the whole of schema.table whatever its case. Empty: all. Not together with table.exclude.list.",
        ),
        ConfigKey::new(
            "table.exclude.list",
            List,
            Some(""),
            Medium,
            "Tables not to capture, in the same form. Not together with table.include.list.",
        ),
        ConfigKey::new(
            "schema.include.list",
            List,
            Some(""),
            Medium,
            "Schemas to capture, in the same form, matched against the schema's name. Not together with schema.exclude.list.",
        ),
        ConfigKey::new(
            "schema.exclude.list",
            List,
            Some(""),
            Medium,
            "Schemas not to capture, in the same form. Not together with schema.include.list.",
        ),
        ConfigKey::new(
            "publication.name",
            String,
            Some("dbz_publication"),
            Medium,
            "Publication that the changes are read through, at most 63 bytes.",
        ),
        ConfigKey::new(
            "publication.autocreate.mode",
            Choice(&["filtered", "all_tables", "disabled"]),
            Some("filtered"),
            Medium,
            "filtered: made for the captured tables, and missing ones are added to it at each start and, with snapshot.mode initial, read before their changes; nothing is ever taken out. all_tables: made for all tables where it is not there. disabled: it has to be there.",
        ),
        ConfigKey::new(
            "publish.via.partition.root",
            Boolean,
            Some("false"),
            Low,
            "Whether changes of partitions bear the name of the partitioned table; used only when the publication is made here. TRUNCATE of a single partition is then not sent by PostgreSQL.",
        ),
        ConfigKey::new(
            "slot.name",
            String,
            Some("debezium"),
            High,
            "Replication slot: lower-case letters, digits and '_', at most 63. Two connectors never share one.",
        ),
        ConfigKey::new(
            "slot.adopt",
            Choice(&["", "stream", "resnapshot"]),
            Some(""),
            Medium,
            "What to do with a slot that stands while no offset is stored. Empty: refuse. stream: go on where the slot stands, without a snapshot. resnapshot: drop it and begin again.",
        ),
        ConfigKey::new(
            "snapshot.mode",
            Choice(&["initial", "no_data", "never"]),
            Some("initial"),
            High,
            "initial: the captured tables are read at the first start; a table stays locked in ACCESS SHARE mode from its turn to the end of the snapshot, so that ALTER TABLE waits. no_data, also called never: only changes.",
        ),
    ]
}

fn running_keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    use KeyType::{Int, String};
    vec![
        ConfigKey::new(
            "snapshot.fetch.size",
            Int { min: 1, max: 100_000 },
            Some("1024"),
            Low,
            "Rows that a snapshot hands on at a time, 1 to 100000.",
        ),
        ConfigKey::new(
            "slot.create.timeout.ms",
            Int { min: 1_000, max: 86_400_000 },
            Some("600000"),
            Low,
            "How long to wait for open transactions to end so that the slot can be made, milliseconds, 1000 to 86400000; then the task names them and tries again.",
        ),
        ConfigKey::new(
            "status.update.interval.ms",
            Int { min: 100, max: 60_000 },
            Some("10000"),
            Low,
            "Time between two status updates to the server, milliseconds, 100 to 60000; must stay below the server's wal_sender_timeout.",
        ),
        ConfigKey::new(
            "slot.watch.interval.ms",
            Int { min: 100, max: 3_600_000 },
            Some("10000"),
            Low,
            "Time between two looks at what the slot holds and at whether the publication still has the captured tables, milliseconds, 100 to 3600000; each look is a connection of its own.",
        ),
        ConfigKey::new(
            "slot.wal.warn.bytes",
            Int { min: 1, max: i64::MAX },
            Some("1073741824"),
            Low,
            "From how many bytes of WAL that the slot holds at the server the status warns; from half of max_slot_wal_keep_size on it always does.",
        ),
        ConfigKey::new(
            "unavailable.value.placeholder",
            String,
            Some("__debezium_unavailable_value"),
            Low,
            "Text that stands for a TOASTed value which the statement did not touch and the server did not send; header hw.states names the columns.",
        ),
        ConfigKey::new(
            RECORD_LIMIT,
            Int { min: 1_024, max: 1 << 30 },
            Some("10485760"),
            Medium,
            "Largest record in bytes, with key and headers. The task stops at a larger one. The trail is made to take as much.",
        ),
    ]
}

fn fixed_keys() -> Vec<ConfigKey> {
    use Importance::{High, Low};
    use KeyType::Choice;
    vec![
        ConfigKey::new(
            "plugin.name",
            Choice(&["pgoutput"]),
            Some("pgoutput"),
            Low,
            "Logical decoding plugin; pgoutput is part of every PostgreSQL.",
        ),
        ConfigKey::new(
            "topic.routing",
            Choice(&["trail", "table"]),
            Some("trail"),
            High,
            "trail: one topic with one partition for all tables, in commit order. table: a topic a table, named prefix.schema.table as Debezium names it, partitioned by the record's key.",
        ),
        ConfigKey::new(
            "slot.drop.on.stop",
            Choice(&["false"]),
            Some("false"),
            Low,
            "A slot is never dropped by a stop: what is committed before the next start would be lost.",
        ),
        ConfigKey::new(
            "tombstones.on.delete",
            Choice(&["", "true", "false"]),
            Some(""),
            Low,
            "Whether a DELETE on the topic of a table is followed by a record of the same key without value, which lets compaction forget the row. Empty: yes. A trail is never compacted and has none.",
        ),
    ]
}

fn form_keys() -> Vec<ConfigKey> {
    use Importance::Low;
    use KeyType::{Boolean, Choice};
    let key = |name, choices, documentation| {
        ConfigKey::new(name, Choice(choices), Some(""), Low, documentation)
    };
    let schemas =
        |name, documentation| ConfigKey::new(name, Boolean, Some("true"), Low, documentation);
    vec![
        key(
            "key.converter",
            &["", JSON_CONVERTER],
            "For a pipeline taken over from Debezium: the converter that it had. Keys and values are then what Debezium's are under the modes below, all of which must be stated; needs topic.routing=table. Empty: keys and values are the source's own text.",
        ),
        schemas(
            "key.converter.schemas.enable",
            "Whether keys bear their schema; used with key.converter.",
        ),
        key("value.converter", &["", JSON_CONVERTER], "As key.converter, for values."),
        schemas(
            "value.converter.schemas.enable",
            "Whether values bear their schema; used with value.converter.",
        ),
        key(
            "decimal.handling.mode",
            &["", "precise", "string", "double"],
            "With converters, Debezium's modes. Without, string or empty: decimals are the server's own digits as text.",
        ),
        key(
            "time.precision.mode",
            &[
                "",
                "adaptive",
                "adaptive_time_microseconds",
                "connect",
                "isostring",
                "microseconds",
                "nanoseconds",
            ],
            "With converters, Debezium's modes. Without, isostring or empty: dates and times are the server's own text in DateStyle ISO, UTC for those with a time zone; infinity and BC stay as they are.",
        ),
        key(
            "binary.handling.mode",
            &["", "bytes", "base64", "base64-url-safe", "hex"],
            "With converters, Debezium's modes. Without, hex or empty: bytea is the server's own text, \\x and hex digits.",
        ),
        key(
            "interval.handling.mode",
            &["", "numeric", "string"],
            "With converters, Debezium's modes; empty: numeric. Without, empty alone: the server's own text.",
        ),
    ]
}

impl Settings {
    /// What a configuration that fits [`definition`] means.
    ///
    /// # Errors
    /// When its values do not fit each other.
    pub(crate) fn new(config: &Config) -> Result<Self, ConnectorError> {
        check(config)?;
        let text = |name: &str| config.text(name).to_owned();
        Ok(Self {
            login: login(config),
            prefix: text("topic.prefix"),
            routing: routing(config),
            forms: Forms::read(config).map_err(wrong)?,
            tombstones: config.text("tombstones.on.delete") != "false",
            slot: text("slot.name"),
            publication: text("publication.name"),
            autocreate: match config.text("publication.autocreate.mode") {
                "disabled" => Autocreate::Disabled,
                "all_tables" => Autocreate::AllTables,
                _ => Autocreate::Filtered,
            },
            via_root: config.flag("publish.via.partition.root"),
            filter: filter(config)?,
            snapshot: match config.text("snapshot.mode") {
                "initial" => SnapshotMode::Initial,
                _ => SnapshotMode::NoData,
            },
            fetch_size: size(config, "snapshot.fetch.size"),
            adopt: match config.text("slot.adopt") {
                "stream" => Adopt::Stream,
                "resnapshot" => Adopt::Resnapshot,
                _ => Adopt::No,
            },
            placeholder: text("unavailable.value.placeholder"),
            status_interval: config.millis("status.update.interval.ms"),
            watch_interval: config.millis("slot.watch.interval.ms"),
            wal_warn: config.int("slot.wal.warn.bytes").unsigned_abs(),
            slot_timeout: config.millis("slot.create.timeout.ms"),
            record_limit: size(config, RECORD_LIMIT),
        })
    }
}

/// Where the records of a connector with this configuration go.
pub(crate) fn routing(config: &Config) -> Routing {
    let prefix = config.text("topic.prefix").to_owned();
    match config.text("topic.routing") {
        "table" => Routing::Tables(prefix),
        _ => Routing::Trail(prefix),
    }
}

/// Fingerprint of the captured set: of everything that changes which events a transaction has.
pub(crate) fn fingerprint(config: &Config) -> String {
    const COUNTED: [&str; 6] = [
        "database.dbname",
        "publication.name",
        "table.include.list",
        "table.exclude.list",
        "schema.include.list",
        "schema.exclude.list",
    ];
    let mut hash = Sha256::new();
    let mut add = |value: &str| {
        hash.update(value.len().to_le_bytes());
        hash.update(value);
    };
    COUNTED.iter().for_each(|name| add(config.text(name)));
    // On topics of tables an altered table is no event.
    if matches!(routing(config), Routing::Tables(_)) {
        add("table");
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn login(config: &Config) -> Login {
    let text = |name: &str| config.text(name).to_owned();
    Login {
        host: text("database.hostname"),
        port: u16::try_from(config.int("database.port")).unwrap_or(5432),
        user: text("database.user"),
        password: text("database.password"),
        database: text("database.dbname"),
        connect_timeout: Duration::from_millis(
            config.int("database.connect.timeout.ms").unsigned_abs(),
        ),
        answer_timeout: Duration::from_millis(
            config.int("database.answer.timeout.ms").unsigned_abs(),
        ),
        tls: Tls {
            mode: SslMode::of(config.text("database.sslmode")),
            root: text("database.sslrootcert"),
            certificate: text("database.sslcert"),
            key: text("database.sslkey"),
        },
    }
}

fn size(config: &Config, name: &str) -> usize {
    usize::try_from(config.int(name)).unwrap_or(usize::MAX)
}

fn filter(config: &Config) -> Result<Filter, ConnectorError> {
    Filter::new(
        config.text("schema.include.list"),
        config.text("schema.exclude.list"),
        config.text("table.include.list"),
        config.text("table.exclude.list"),
    )
    .map_err(|error| {
        wrong(format!("a list of tables or schemas is no regular expression: {error}"))
    })
}

fn check(config: &Config) -> Result<(), ConnectorError> {
    for kind in ["table", "schema"] {
        let lists = ["include", "exclude"].map(|list| format!("{kind}.{list}.list"));
        if lists.iter().all(|list| !config.text(list).trim().is_empty()) {
            return Err(wrong(format!("{} and {} are both given", lists[0], lists[1])));
        }
    }
    let prefix = config.text("topic.prefix");
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if prefix.is_empty() || prefix.len() > 200 || !prefix.bytes().all(fits) {
        return Err(wrong(format!(
            "topic.prefix {prefix:?} is no topic name of at most 200 bytes"
        )));
    }
    let slot = config.text("slot.name");
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if slot.is_empty() || slot.len() > 63 || !slot.bytes().all(fits) {
        return Err(wrong(format!(
            "slot.name {slot:?} is not made of lower-case letters, digits and '_', at most 63"
        )));
    }
    if config.text("topic.routing") == "trail" && config.text("tombstones.on.delete") == "true" {
        return Err(wrong("tombstones.on.delete=true needs topic.routing=table".to_owned()));
    }
    if !(1..=63).contains(&config.text("publication.name").len()) {
        return Err(wrong("publication.name must have 1 to 63 bytes".to_owned()));
    }
    login(config).tls.problem().map_or(Ok(()), |problem| Err(wrong(problem)))
}

fn wrong(what: String) -> ConnectorError {
    ConnectorError::stop(
        code::CONFIG,
        ErrorKind::Configuration,
        what,
        "mend the configuration and start again",
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Config {
        let mut values: BTreeMap<String, String> = [
            ("database.hostname", "h"),
            ("database.user", "u"),
            ("database.dbname", "d"),
            ("topic.prefix", "shop"),
        ]
        .iter()
        .chain(pairs)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
        values.retain(|_, value| value != "<absent>");
        definition().parse(&values, &[]).unwrap()
    }

    #[test]
    fn defaults_are_debeziums() {
        let settings = Settings::new(&config(&[])).unwrap();
        assert_eq!(
            (settings.slot.as_str(), settings.publication.as_str()),
            ("debezium", "dbz_publication")
        );
        assert_eq!(settings.autocreate, Autocreate::Filtered);
        assert_eq!(settings.snapshot, SnapshotMode::Initial);
    }

    #[test]
    fn values_that_do_not_fit_each_other_are_refused() {
        for pairs in [
            [("table.include.list", "a.b"), ("table.exclude.list", "a.c")],
            [("topic.prefix", "a b"), ("snapshot.mode", "never")],
            [("slot.name", "Shop"), ("snapshot.mode", "never")],
            [("table.include.list", "a.("), ("snapshot.mode", "never")],
            [("publication.name", ""), ("snapshot.mode", "never")],
            [("database.sslmode", "verify-ca"), ("snapshot.mode", "never")],
            [("database.sslcert", "/c.pem"), ("snapshot.mode", "never")],
            [("tombstones.on.delete", "true"), ("topic.routing", "trail")],
            [("decimal.handling.mode", "precise"), ("topic.routing", "table")],
            [("key.converter", JSON_CONVERTER), ("topic.routing", "table")],
        ] {
            assert_eq!(Settings::new(&config(&pairs)).unwrap_err().code, code::CONFIG, "{pairs:?}");
        }
    }

    const FORMS: [(&str, &str); 5] = [
        ("key.converter", JSON_CONVERTER),
        ("value.converter", JSON_CONVERTER),
        ("decimal.handling.mode", "precise"),
        ("time.precision.mode", "connect"),
        ("binary.handling.mode", "bytes"),
    ];

    #[test]
    fn debeziums_forms_are_stated_whole_or_not_at_all() {
        let table = [("topic.routing", "table")];
        let stated: Vec<_> = FORMS.into_iter().chain(table).collect();
        let forms = Settings::new(&config(&stated)).unwrap().forms.unwrap();
        assert!(forms.key_schema && forms.value_schema);
        assert_eq!(Settings::new(&config(&table)).unwrap().forms, None);
        for missing in 0..FORMS.len() {
            let mut pairs = stated.clone();
            let (key, _) = pairs.remove(missing);
            let error = Settings::new(&config(&pairs)).unwrap_err();
            assert!(error.what.contains(key), "{error}");
        }
        let on_a_trail = Settings::new(&config(&FORMS)).unwrap_err();
        assert!(on_a_trail.what.contains("topic.routing=table"), "{on_a_trail}");
    }

    #[test]
    fn the_fingerprint_follows_the_captured_set_alone() {
        let base = fingerprint(&config(&[]));
        assert_eq!(base, fingerprint(&config(&[("snapshot.fetch.size", "7")])));
        assert_ne!(base, fingerprint(&config(&[("table.include.list", "public.a")])));
        assert_ne!(base, fingerprint(&config(&[("publication.name", "other")])));
        assert_ne!(base, fingerprint(&config(&[("topic.routing", "table")])));
    }

    #[test]
    fn a_password_is_not_printed() {
        let settings = Settings::new(&config(&[("database.password", "hush")])).unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
    }
}
