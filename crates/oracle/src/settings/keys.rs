//! The keys that the connector takes, by what they are about.

use highwater_connector::{ConfigDef, ConfigKey, Importance, KeyType};

/// Key of the largest record: the worker's, which stops at a larger one. Read here, too, as nothing else may be
/// larger.
pub(crate) const RECORD_LIMIT: &str = "producer.override.max.request.size";

const DAY_MS: i64 = 86_400_000;

/// The keys that the connector takes.
pub fn definition() -> ConfigDef {
    let parts = [
        database_keys(),
        table_keys(),
        key_keys(),
        log_keys(),
        step_keys(),
        buffer_keys(),
        transaction_keys(),
        value_keys(),
        record_keys(),
        own_topic_keys(),
        running_keys(),
    ];
    ConfigDef::new(parts.into_iter().flatten().collect())
}

fn database_keys() -> Vec<ConfigKey> {
    use Importance::{High, Medium};
    use KeyType::{Int, List, Password, String};
    vec![
        ConfigKey::new(
            "cdc.database.host",
            String,
            Some(""),
            High,
            "Host name or address of the listener. Needed unless cdc.database.url is given.",
        ),
        ConfigKey::new(
            "cdc.database.port",
            Int { min: 1, max: 65_535 },
            Some("1521"),
            High,
            "Port of the listener, 1 to 65535.",
        ),
        ConfigKey::new(
            "cdc.database.service",
            String,
            Some(""),
            High,
            "Service to connect to. In a container database that of the root, as LogMiner is run there; that of a pluggable database captures this one alone, in range mode. With cdc.database.host either this or cdc.database.sid.",
        ),
        ConfigKey::new(
            "cdc.database.sid",
            String,
            Some(""),
            Medium,
            "SID to connect to, for a listener that knows no service.",
        ),
        ConfigKey::new(
            "cdc.database.url",
            String,
            Some(""),
            Medium,
            "Connect string, in place of host, port and service: host:port/service, a whole descriptor (DESCRIPTION=...), or either behind jdbc:oracle:thin:@. It names no user and no password.",
        ),
        ConfigKey::new(
            "cdc.database.user",
            String,
            None,
            High,
            "User who mines. In a container database a common user (C##...) whose CONTAINER_DATA is ALL.",
        ),
        ConfigKey::new("cdc.database.password", Password, None, High, "Password of the user."),
        ConfigKey::new(
            "cdc.database.wallet.location",
            String,
            Some(""),
            Medium,
            "Folder with ewallet.pem: the authorities to trust, and the certificate to log in with. Empty: no wallet.",
        ),
        ConfigKey::new(
            "cdc.database.pdbs",
            List,
            Some(""),
            High,
            "Pluggable databases whose tables are captured. Empty in a database without containers, and where the service is that of a pluggable database.",
        ),
    ]
}

fn table_keys() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    use KeyType::{Boolean, List};
    vec![
        ConfigKey::new(
            "cdc.tables.include",
            List,
            None,
            High,
            "Tables to capture: regular expressions separated by commas, each matched against the whole of PDB.SCHEMA.TABLE, or SCHEMA.TABLE in a database without containers. A table that is created later and matches is captured from its first row on.",
        ),
        ConfigKey::new(
            "cdc.tables.exclude",
            List,
            Some(""),
            Medium,
            "Tables not to capture although they are included, in the same form.",
        ),
        ConfigKey::new(
            "cdc.tables.case.sensitive",
            Boolean,
            Some("false"),
            Low,
            "Whether these patterns tell apart names that differ by case alone.",
        ),
        ConfigKey::new(
            "cdc.columns.exclude",
            List,
            Some(""),
            Medium,
            "Columns whose values are never read: regular expressions matched against the whole of PDB.SCHEMA.TABLE.COLUMN, or SCHEMA.TABLE.COLUMN. A column of a key cannot be left out.",
        ),
        ConfigKey::new(
            "cdc.users.exclude",
            List,
            Some(""),
            Medium,
            "Oracle users whose transactions are not captured, as the dictionary writes them, such as one that loads data which consumers get elsewhere.",
        ),
    ]
}

fn key_keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    use KeyType::{Choice, String};
    vec![
        ConfigKey::new(
            "cdc.key.columns",
            String,
            Some(""),
            Medium,
            "Columns of the record key where they are not those of the primary key: SCHEMA.TABLE:COL1,COL2 with ; between tables, the pluggable database in front if there is need. Without it the key is the primary key, or the first unique index by name whose columns are all NOT NULL.",
        ),
        ConfigKey::new(
            "cdc.key.missing",
            Choice(&["fail", "rowid", "none"]),
            Some("fail"),
            Medium,
            "What to do with a table that has no such key. fail: stop. rowid: key its records by ROWID, which an ALTER TABLE MOVE and a row movement change. none: records without a key.",
        ),
        ConfigKey::new(
            "cdc.rac.enabled",
            KeyType::Boolean,
            Some("false"),
            Low,
            "Whether a database with several enabled redo threads is captured (Real Application Clusters). The offset then has a block threads with the position of each. No cluster was at hand to test it on, only a simulated one; without it such a database is refused (CDC-5001).",
        ),
    ]
}

fn log_keys() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    use KeyType::{Choice, Int, String};
    vec![
        ConfigKey::new(
            "cdc.capture.mode",
            Choice(&["online", "archive_only"]),
            Some("online"),
            High,
            "online: archived and online logs of a primary database, with a delay of a step. archive_only: archived logs alone, of a primary or of a physical standby that is open for reading; a change is seen once its log is archived.",
        ),
        ConfigKey::new(
            "cdc.mining.mode",
            Choice(&["auto", "logs", "range"]),
            Some("auto"),
            Low,
            "How LogMiner learns of logs. logs: each is named. range: a range of SCNs is named and the database finds them, all that a session inside of a pluggable database may do. auto: range there, else logs.",
        ),
        ConfigKey::new(
            "cdc.start.scn",
            Int { min: 0, max: i64::MAX },
            Some("0"),
            Medium,
            "SCN to begin at where no offset is stored; transactions that were open there are captured whole. 0: the present one. Without effect once there is an offset.",
        ),
        ConfigKey::new(
            "cdc.archive.destination",
            String,
            Some(""),
            Medium,
            "Archive destination (DEST_NAME, such as LOG_ARCHIVE_DEST_2) whose logs are read. Empty: the valid local one of the lowest number. Logs of other destinations are not seen.",
        ),
    ]
}

fn step_keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    use KeyType::Int;
    vec![
        ConfigKey::new(
            "cdc.mining.target.latency.ms",
            Int { min: 100, max: DAY_MS },
            Some("2000"),
            Medium,
            "How long a step through the redo should take, milliseconds, from 100 on. After one that was quicker the next reads twice as many logs.",
        ),
        ConfigKey::new(
            "cdc.mining.max.logs.per.step",
            Int { min: 1, max: 256 },
            Some("8"),
            Low,
            "Most redo logs that one step reads, 1 to 256.",
        ),
        ConfigKey::new(
            "cdc.mining.stage.max.bytes",
            Int { min: 1 << 20, max: 1 << 36 },
            Some("67108864"),
            Low,
            "Memory that the rows of a step may take before they are applied, bytes, from 1048576 on; what is above goes to a file in cdc.buffer.spill.dir.",
        ),
        ConfigKey::new(
            "cdc.mining.fetch.size",
            Int { min: 100, max: 1_000_000 },
            Some("10000"),
            Low,
            "Rows of V$LOGMNR_CONTENTS that the server sends at a time, 100 to 1000000.",
        ),
        ConfigKey::new(
            "cdc.mining.query.timeout.ms",
            Int { min: 10_000, max: DAY_MS },
            Some("600000"),
            Low,
            "How long the statement of a step may run, milliseconds, from 10000 on. A step that takes longer is cancelled and done again in smaller pieces; three times in a row for a single log is CDC-4003. A connection that is silent for a minute more counts as lost.",
        ),
        ConfigKey::new(
            "cdc.mining.session.max.age.ms",
            Int { min: 60_000, max: DAY_MS },
            Some("3600000"),
            Low,
            "After how long the mining session is opened anew, which gives its server memory (PGA) back, milliseconds, from 60000 on.",
        ),
        ConfigKey::new(
            "cdc.mining.inlist.max",
            Int { min: 1, max: 1_000 },
            Some("1000"),
            Low,
            "Most object numbers in one IN list of the statement, 1 to 1000 (ORA-01795).",
        ),
    ]
}

fn buffer_keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    use KeyType::{Int, String};
    vec![
        ConfigKey::new(
            "cdc.buffer.memory.max.bytes",
            Int { min: 16 << 20, max: i64::MAX },
            Some("268435456"),
            Medium,
            "Memory that changes of open transactions may take, bytes, from 16777216 on. Above it the largest transactions go to files.",
        ),
        ConfigKey::new(
            "cdc.buffer.spill.dir",
            String,
            Some(""),
            Medium,
            "Folder for those files, of no other connector; what a start finds there is removed. Empty: one named after the prefix in the system's folder for temporary files.",
        ),
        ConfigKey::new(
            "cdc.buffer.spill.max.bytes",
            Int { min: 64 << 20, max: i64::MAX },
            Some("10737418240"),
            Medium,
            "Most bytes in those files, from 67108864 on; above it the task stops with CDC-4001.",
        ),
        ConfigKey::new(
            "cdc.txjournal.threshold.ms",
            Int { min: 1_000, max: i64::MAX },
            Some("300000"),
            Low,
            "Age from which the changes of an open transaction are kept in the journal topic, so that it no longer holds the position back, milliseconds, from 1000 on.",
        ),
        ConfigKey::new(
            "cdc.txjournal.threshold.events",
            Int { min: 1, max: i64::MAX },
            Some("100000"),
            Low,
            "Number of changes from which that is done whatever the age, from 1 on.",
        ),
        ConfigKey::new(
            "cdc.txjournal.chunk.max.bytes",
            Int { min: 16_384, max: 8 << 20 },
            Some("524288"),
            Low,
            "Largest record of the journal topic, bytes, 16384 to 8388608.",
        ),
    ]
}

fn transaction_keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    use KeyType::{Choice, Int};
    vec![
        ConfigKey::new(
            "cdc.transaction.max.age.ms",
            Int { min: -1, max: i64::MAX },
            Some("-1"),
            Medium,
            "How long a transaction may be open, milliseconds, from 1000 on. -1: without bound.",
        ),
        ConfigKey::new(
            "cdc.transaction.max.age.action",
            Choice(&["fail", "discard"]),
            Some("fail"),
            Medium,
            "What to do with an older one. fail: stop with CDC-4004. discard: drop its changes, with an event and a dead letter; if it commits all the same the task stops with CDC-7001.",
        ),
        ConfigKey::new(
            "cdc.transaction.orphan.check.interval.ms",
            Int { min: 1_000, max: DAY_MS },
            Some("300000"),
            Low,
            "Time between two looks for open transactions that the database does not know any more, milliseconds, from 1000 on. One is an orphan when it is missing twice in a row, redo was read past the first time, and its session is gone.",
        ),
        ConfigKey::new(
            "cdc.transaction.orphan.action",
            Choice(&["release", "fail"]),
            Some("release"),
            Low,
            "What to do with an orphan. release: drop it as rolled back, with an event; if it commits all the same the task stops with CDC-7001. fail: stop with CDC-7002.",
        ),
    ]
}

fn value_keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    use KeyType::{Choice, Int, String};
    vec![
        ConfigKey::new(
            "cdc.lob.mode",
            Choice(&["skip", "inline", "reselect"]),
            Some("skip"),
            Medium,
            "Large objects. skip: left out of records. inline: what the redo holds whole; else the placeholder stands for the value. reselect: as inline, and what the redo does not hold is read from the table as of the commit.",
        ),
        ConfigKey::new(
            "cdc.lob.max.bytes",
            Int { min: 1, max: 1 << 30 },
            Some("1048576"),
            Medium,
            "Largest large object that is delivered, bytes, 1 to 1073741824.",
        ),
        ConfigKey::new(
            "cdc.lob.oversize.action",
            Choice(&["fail", "placeholder"]),
            Some("fail"),
            Medium,
            "What to do with a larger one. fail: stop with CDC-3003. placeholder: deliver the placeholder.",
        ),
        ConfigKey::new(
            "cdc.unavailable.placeholder",
            String,
            Some("__cdc_unavailable_value"),
            Low,
            "Text that stands for a large object whose value is not known, so that consumers keep the one they have; header hw.states names the columns.",
        ),
        ConfigKey::new(
            "cdc.on.decode.error",
            Choice(&["fail", "dlq"]),
            Some("fail"),
            Medium,
            "What to do with a committed row that cannot be decoded. fail: stop before its transaction with CDC-3001. dlq: put it into cdc.dlq.topic and go on; the table is then no longer complete at its consumers.",
        ),
        ConfigKey::new(
            "cdc.decode.quoting",
            Choice(&["strict", "relaxed"]),
            Some("strict"),
            Low,
            "How SQL_REDO writes a quote inside of a text. strict: twice, as SQL has it; anything else is an error. relaxed: for a release that may leave it single in texts above 4000 bytes (MAX_STRING_SIZE=EXTENDED); the strict reading is tried first.",
        ),
    ]
}

fn record_keys() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    use KeyType::{Choice, Int, String};
    vec![
        ConfigKey::new(
            "cdc.topic.prefix",
            String,
            None,
            High,
            "Name of the trail topic, or what the names of tables' topics begin with, and of the logical server in offsets and records: letters, digits, '.', '_' and '-', at most 200.",
        ),
        ConfigKey::new(
            "topic.routing",
            Choice(&["trail", "table"]),
            Some("trail"),
            High,
            "trail: one topic with one partition for all tables, in the order in which each redo thread wrote its commits. table: a topic a table, partitioned by the record's key.",
        ),
        ConfigKey::new(
            "cdc.topic.template",
            String,
            Some(""),
            Medium,
            "Names of tables' topics, from ${prefix}, ${pdb}, ${schema}, ${table} and ${database}; it begins with ${prefix} and a dot. Empty: ${prefix}.${pdb}.${schema}.${table}, without ${pdb} in a database without containers. Characters that Kafka does not take become '_'. Only with topic.routing=table.",
        ),
        ConfigKey::new(
            "cdc.tombstones.on.delete",
            Choice(&["", "true", "false"]),
            Some(""),
            Low,
            "Whether a DELETE on the topic of a table is followed by a record of the same key without value, which lets compaction forget the row. Empty: yes. A trail is never compacted and has none.",
        ),
        ConfigKey::new(
            "cdc.eos.split.max.records",
            Int { min: 1, max: i64::MAX },
            Some("500000"),
            Low,
            "Changes from which a transaction of the database becomes several of the log, from 1 on. Readers of committed records may then see its first part before the rest.",
        ),
        ConfigKey::new(
            "cdc.eos.split.max.bytes",
            Int { min: 1 << 20, max: i64::MAX },
            Some("268435456"),
            Low,
            "Bytes of records from which that is done, from 1048576 on.",
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

fn own_topic_keys() -> Vec<ConfigKey> {
    let key = |name, documentation| {
        ConfigKey::new(name, KeyType::String, Some(""), Importance::Low, documentation)
    };
    vec![
        key(
            "cdc.ops.topic",
            "Topic of events that are no changes, such as a start, a DDL or a stop. Empty: the prefix and .cdc.ops.",
        ),
        key(
            "cdc.heartbeat.topic",
            "Topic of the records that carry the position of a quiet database. Empty: the prefix and .cdc.heartbeat.",
        ),
        key(
            "cdc.dlq.topic",
            "Topic of rows and transactions that were not delivered because a setting allows it. Empty: the prefix and .cdc.dlq.",
        ),
        key(
            "cdc.txjournal.topic",
            "Topic in which changes of long transactions wait for their commit, compacted and never for a time. Empty: the prefix and .cdc.txjournal.",
        ),
    ]
}

fn running_keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    use KeyType::{Int, List};
    vec![
        ConfigKey::new(
            "cdc.heartbeat.interval.ms",
            Int { min: 0, max: DAY_MS },
            Some("10000"),
            Low,
            "After how long without a record a heartbeat stores the position, milliseconds. 0: only at a start.",
        ),
        ConfigKey::new(
            "cdc.retry.max.time.ms",
            Int { min: 1_000, max: i64::MAX },
            Some("86400000"),
            Medium,
            "For how long a database that cannot be reached is tried again before the task stops with CDC-1001, milliseconds, from 1000 on.",
        ),
        ConfigKey::new(
            "cdc.retry.extra.error.codes",
            List,
            Some(""),
            Low,
            "Further errors after which the session is opened anew and the step done again, such as ORA-12805.",
        ),
        ConfigKey::new(
            "cdc.poll.max.records",
            Int { min: 1, max: 1_000_000 },
            Some("2000"),
            Low,
            "Records that are handed on at a time, 1 to 1000000; four times as many wait at most, at least 1000.",
        ),
        ConfigKey::new(
            "cdc.poll.linger.ms",
            Int { min: 0, max: 10_000 },
            Some("50"),
            Low,
            "How long to wait for a first record, milliseconds, 0 to 10000; at least 10, and 150 at a time. Where there is no new redo, twice as long passes before the next look, at least 100.",
        ),
    ]
}
