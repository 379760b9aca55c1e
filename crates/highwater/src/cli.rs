//! The command line, as `--help` shows it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::client_login::LoginArguments;

/// Captures changes from databases, keeps them in a durable log, delivers them to Kafka clients
/// and over a WebSocket.
#[derive(Debug, Parser)]
#[command(name = "highwater", version, propagate_version = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// Where the server answers.
    #[arg(long, global = true, env = "HIGHWATER_URL", default_value = "http://127.0.0.1:8083")]
    pub(crate) url: String,

    /// How to print: text for people, json for scripts.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) login: LoginArguments,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Start with:
  highwater server                                  the log, the worker and the streams, on loopback
  highwater connector create --file shop.json       capture a database
  highwater stream create shop --trail shop         a data stream over what it writes
  highwater stream tail shop --begin earliest       see its changes
  highwater doctor                                  see whether anything needs attention

Exit codes: 0 done, 1 failed, 2 usage, 3 refused (nothing changed), 4 authentication or permission,
5 unreachable, 6 not found.";

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Output {
    /// Aligned text.
    Text,
    /// One JSON document.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server: log, worker, streams.
    Server(ServerFlags),
    /// See and steer connectors.
    Connector {
        #[command(subcommand)]
        command: ConnectorCommand,
    },
    /// See and move the position of a connector.
    Offsets {
        #[command(subcommand)]
        command: OffsetsCommand,
    },
    /// Make and see data streams, and follow one.
    Stream {
        #[command(subcommand)]
        command: StreamCommand,
    },
    /// See the topics of a Kafka cluster and what is in them: the server's own log, or any other.
    Topic(TopicArguments),
    /// See and change who may come in through the Kafka listener, and what each may do.
    ///
    /// Works on the users file (access.users_file), on this machine; a server that runs reads it
    /// again within two seconds. Passwords are kept as salted keys alone.
    User(UserArguments),
    /// Copy all that can be seen of the log at this moment into a folder.
    ///
    /// The running server does it, below its backup.dir; with --data-dir it is done here, on a folder that no
    /// server holds. What an earlier backup into the same folder has is not copied again, and that one stands
    /// until the new one is whole.
    Backup(BackupArguments),
    /// Put a backup into a data folder that is empty or not there.
    ///
    /// Offsets, epochs, topic ids and the cluster's id are kept; every file is verified first.
    Restore(RestoreArguments),
    /// Look for what is wrong or will be: machine, log, connectors and their sources, streams.
    ///
    /// Asks the server; where none answers, looks at settings, data folder, ports and limits here.
    /// Changes nothing. Exit code 1 when a finding is an error, 0 for warnings and notes.
    Doctor(DoctorFlags),
    /// Look into what the Oracle source reads; needs no server and no database.
    Oracle {
        #[command(subcommand)]
        command: OracleCommand,
    },
    /// Print what an error code means and what to do; needs no server.
    Explain {
        /// The code, in any case, such as UNREACHABLE.
        code: String,
    },
    /// Print a completion script, such as: source <(highwater completions bash)
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
}

/// `highwater oracle`
#[derive(Debug, Subcommand)]
pub(crate) enum OracleCommand {
    /// Decode statements of LogMiner from standard input, one JSON object a line.
    ///
    /// A line has sql (SQL_REDO) and op_code (OPERATION_CODE), and where they matter csf_parts (the pieces of
    /// a statement that goes on over several rows, in place of sql), rollback and status; id comes back in
    /// the answer. Each answer is one line: what was read, or error with code, message and at, the byte of
    /// the statement where it ended. A line that cannot be read stops nothing.
    Decode {
        /// How SQL_REDO writes a quote inside of a text, as cdc.decode.quoting.
        #[arg(long, value_enum, default_value = "strict")]
        quoting: QuotingArgument,
    },
}

/// See `cdc.decode.quoting`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum QuotingArgument {
    /// Twice, as SQL has it.
    Strict,
    /// Perhaps once, in texts above 4000 bytes.
    Relaxed,
}

/// `highwater backup`
#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The folder; made when missing. Of a running server: below its backup.dir, and relative to it.
    pub(crate) dir: PathBuf,
    /// A data folder that no server holds.
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
}

/// `highwater restore`
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The folder of the backup.
    pub(crate) dir: PathBuf,
    /// The data folder to be made.
    #[arg(long)]
    pub(crate) data_dir: PathBuf,
}

/// `highwater topic restore`
#[derive(Debug, Args)]
pub(crate) struct TopicRestore {
    /// The folder of a backup or archive. Of a running server: its archive.dir, or below its backup.dir.
    pub(crate) dir: PathBuf,
    /// The topic, by its name or id.
    pub(crate) topic: String,
    /// Restore it under this name.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A data folder that no server holds.
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Where to look when no server answers.
#[derive(Debug, Args)]
pub(crate) struct DoctorFlags {
    /// Configuration file of the server.
    #[arg(long, env = "HIGHWATER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Folder of the log.
    #[arg(long, env = "HIGHWATER_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Flags of `highwater server`; each wins over the configuration file.
#[derive(Debug, Args, Default)]
pub(crate) struct ServerFlags {
    /// Configuration file (TOML); docs/reference/configuration.md names its keys.
    #[arg(long, env = "HIGHWATER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Folder of the log. Made when missing. [default: highwater-data]
    #[arg(long, env = "HIGHWATER_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keep the log in Apache Kafka in place of the embedded log: its brokers, several separated by
    /// commas.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) kafka: Option<String>,
    /// Client settings for --kafka, as Kafka's own tools take them: security.protocol, sasl.*, ssl.*.
    #[arg(long, env = "HIGHWATER_KAFKA_CONFIG", value_name = "FILE")]
    pub(crate) kafka_config: Option<PathBuf>,
    /// Address for Kafka clients. [default: 127.0.0.1:9092]
    #[arg(long)]
    pub(crate) kafka_listen: Option<SocketAddr>,
    /// Address for REST, streams, health and metrics. [default: 127.0.0.1:8083]
    #[arg(long)]
    pub(crate) http_listen: Option<SocketAddr>,
    /// HOST:PORT that Kafka clients are told to connect to. [default: the listener]
    #[arg(long)]
    pub(crate) kafka_advertise: Option<String>,
    /// HOST[:PORT] under which HTTP is reached, accepted as Host. [default: the listener]
    #[arg(long)]
    pub(crate) http_advertise: Option<String>,
    /// File of the users, as `highwater user` writes it: with it clients have to log in.
    #[arg(long, env = "HIGHWATER_USERS_FILE")]
    pub(crate) users_file: Option<PathBuf>,
    /// Certificate of the Kafka listener, PEM.
    #[arg(long)]
    pub(crate) kafka_tls_cert: Option<PathBuf>,
    /// Key of the certificate, PEM.
    #[arg(long)]
    pub(crate) kafka_tls_key: Option<PathBuf>,
    /// Certificate of the HTTP listener, PEM.
    #[arg(long)]
    pub(crate) http_tls_cert: Option<PathBuf>,
    /// Key of that certificate, PEM.
    #[arg(long)]
    pub(crate) http_tls_key: Option<PathBuf>,
    /// Listen beyond loopback without TLS and authentication, knowing that anyone who reaches the
    /// port can read and change everything.
    #[arg(long)]
    pub(crate) insecure_listen: bool,
    /// How log lines look on standard error. [default: text]
    #[arg(long, value_enum)]
    pub(crate) log_format: Option<LogFormat>,
    /// Least level of the log lines, such as info or highwater_worker=debug,info. [default: info]
    #[arg(long, env = "HIGHWATER_LOG")]
    pub(crate) log_level: Option<String>,
    /// Check the settings and the users and certificates that they name, say what the server would run with, and start nothing.
    #[arg(long)]
    pub(crate) check: bool,
}

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl ServerFlags {
    /// The flags that were given, as the keys of the configuration file that they stand for.
    pub(crate) fn values(&self) -> Vec<(String, String)> {
        let text = |value: &Option<SocketAddr>| value.map(|value| value.to_string());
        let path =
            |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
        let format = self.log_format.and_then(|format| format.to_possible_value());
        [
            ("data_dir", path(&self.data_dir)),
            ("access.users_file", path(&self.users_file)),
            ("kafka.tls.cert", path(&self.kafka_tls_cert)),
            ("kafka.tls.key", path(&self.kafka_tls_key)),
            ("http.tls.cert", path(&self.http_tls_cert)),
            ("http.tls.key", path(&self.http_tls_key)),
            ("kafka.bootstrap", self.kafka.clone()),
            ("kafka.config", path(&self.kafka_config)),
            ("kafka.listen", text(&self.kafka_listen)),
            ("http.listen", text(&self.http_listen)),
            ("kafka.advertise", self.kafka_advertise.clone()),
            ("http.advertise", self.http_advertise.clone()),
            ("insecure_listen", self.insecure_listen.then(|| "true".to_owned())),
            ("logging.format", format.map(|format| format.get_name().to_owned())),
            ("logging.level", self.log_level.clone().filter(|level| !level.is_empty())),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConnectorCommand {
    /// List connectors with their states.
    List,
    /// Show one connector: state, what each task is doing and where, offset, configuration.
    Show { name: String },
    /// Create a connector from a file.
    #[command(after_help = CONNECTOR_FILE_HELP)]
    Create {
        /// The file; `-` reads standard input.
        #[arg(long, short)]
        file: PathBuf,
    },
    /// Replace the configuration of a connector by that of a file; its tasks start anew with it.
    ///
    /// A secret that the file has masked, as show prints it, stays as it is.
    #[command(after_help = CONNECTOR_FILE_HELP)]
    Update {
        name: String,
        /// The file; `-` reads standard input.
        #[arg(long, short)]
        file: PathBuf,
    },
    /// Change single keys of a connector's configuration; those that are not named stay.
    ///
    /// Every user of the machine sees a command's words: change a password with update, or refer to it.
    Patch {
        name: String,
        /// Keys to set, as KEY=VALUE.
        #[arg(required_unless_present = "unset")]
        keys: Vec<String>,
        /// A key to take out; may be given several times.
        #[arg(long, value_name = "KEY")]
        unset: Vec<String>,
    },
    /// Check the configuration of a file, and change nothing.
    #[command(after_help = CONNECTOR_FILE_HELP)]
    Validate {
        /// The file; `-` reads standard input.
        #[arg(long, short)]
        file: PathBuf,
    },
    /// List the classes that connector.class may name.
    Plugins {
        /// Converters, transforms and predicates, too.
        #[arg(long)]
        all: bool,
    },
    /// Delete a connector. Its topics and its stored offset stay, and what its source keeps for it.
    Delete {
        name: String,
        /// Stop it first and drop its replication slot at the source, if it is its own and nobody
        /// reads it. The stored offset goes too: nothing can continue from it without the slot.
        #[arg(long)]
        drop_slot: bool,
    },
    /// Pause: the connection to the source stays, nothing is read.
    Pause { name: String },
    /// Stop: the source is let go; the offset may then be changed.
    Stop { name: String },
    /// Resume a paused or stopped connector.
    Resume { name: String },
    /// Restart a connector and its tasks.
    Restart {
        name: String,
        /// What has failed, and nothing else.
        #[arg(long, conflicts_with = "task")]
        only_failed: bool,
        /// This task alone.
        #[arg(long, value_name = "NUMBER")]
        task: Option<u32>,
    },
}

const CONNECTOR_FILE_HELP: &str = "\
A file is one connector, in any form that a file of worker.connectors_dir may have:
  {\"name\": \"shop\", \"config\": {\"connector.class\": …}}   as Kafka Connect's REST API takes it
  {\"name\": \"shop\", \"connector.class\": …}               its keys alone
  name=shop, a line for each key                         Java's properties, in a file that ends in .properties
Without a name the file's own counts, without its end.";

#[derive(Debug, Subcommand)]
pub(crate) enum OffsetsCommand {
    /// Show the stored offset, field by field.
    Show { name: String },
    /// Change fields of the stored offset of a stopped connector.
    ///
    /// The connector asks its source first whether reading can continue there.
    Set {
        name: String,
        /// Fields to set, as FIELD=VALUE, such as lsn=0/1A2B3C8.
        #[arg(required_unless_present = "remove")]
        fields: Vec<String>,
        /// A field to remove; may be given several times.
        #[arg(long)]
        remove: Vec<String>,
        /// A field of the partition whose offset it is, as FIELD=VALUE; may be given several times.
        ///
        /// Needed where there are several offsets. Of a sink kafka_topic=NAME and
        /// kafka_partition=NUMBER, which need not have an offset yet.
        #[arg(long)]
        partition: Vec<String>,
        /// Allow moving forward: the changes in between are then never delivered.
        #[arg(long)]
        allow_skip: bool,
        /// Why; kept with the offset.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Remove the stored offset of a stopped connector, so that it starts from nothing.
    ///
    /// What it holds at the source stays; a PostgreSQL slot of its own must be dropped there first,
    /// or adopted with slot.adopt.
    Delete {
        name: String,
        /// Why; kept with the offset.
        #[arg(long, default_value = "")]
        reason: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum StreamCommand {
    /// List data streams.
    List,
    /// Show one data stream: what it reads, how, and who is connected.
    Show { name: String },
    /// Make a data stream over a trail, or over one partition of a table's topic.
    #[command(after_help = STREAM_CREATE_HELP)]
    Create(StreamAttributes),
    /// Delete a data stream. Its connections end; the topic and all records in it stay.
    Delete { name: String },
    /// Follow a data stream and print its records, one a line.
    ///
    /// Text for people: time, operation, table and what changed, cut to the width of the terminal.
    /// With --output json every record as the stream sends it, one JSON object a line.
    Tail {
        name: String,
        /// Where to begin: earliest, now, or a saved pos.
        #[arg(long, default_value = "now")]
        begin: String,
        /// End after this many records that bear a position.
        #[arg(long)]
        count: Option<u64>,
        /// Keep the last printed position in this file and resume from it.
        #[arg(long)]
        checkpoint: Option<PathBuf>,
    },
}

const STREAM_CREATE_HELP: &str = "\
Examples:
  highwater stream create shop --trail shop
  highwater stream create orders --topic shop.public.orders --partition 0
  highwater stream create lean --trail shop --set encoding.json.includeJSONSchemaRecord=false
Every attribute that --set and --file take: docs/reference/configuration.md, \"Data streams\".";

/// Attributes of a new stream; a flag wins over the file.
#[derive(Debug, Args)]
pub(crate) struct StreamAttributes {
    pub(crate) name: String,
    /// Trail to read: the topic.prefix of a connector with topic.routing=trail.
    #[arg(long, conflicts_with_all = ["topic", "partition"])]
    pub(crate) trail: Option<String>,
    /// Topic of a table to read.
    #[arg(long)]
    pub(crate) topic: Option<String>,
    /// Partition of the topic; must be given where it has several.
    #[arg(long, requires = "topic")]
    pub(crate) partition: Option<u32>,
    /// Quality of service: exactlyOnce (the default), atLeastOnce or atMostOnce.
    #[arg(long)]
    pub(crate) qos: Option<String>,
    /// What it is for, in words.
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Bytes at which a message is sent though more records are at hand.
    #[arg(long)]
    pub(crate) buffer_size: Option<u64>,
    /// Any other attribute, as PATH=VALUE; VALUE is JSON, or a text. May be given several times.
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// A JSON file with attributes; `-` reads standard input.
    #[arg(long, short)]
    pub(crate) file: Option<PathBuf>,
}

/// `highwater topic …`
#[derive(Debug, Args)]
pub(crate) struct TopicArguments {
    /// Brokers to ask, as HOST:PORT, several separated by commas.
    #[arg(
        long,
        visible_alias = "kafka",
        global = true,
        env = "HIGHWATER_BOOTSTRAP",
        default_value = "127.0.0.1:9092"
    )]
    pub(crate) bootstrap: String,
    /// Client settings, as Kafka's own tools take them: security.protocol, sasl.*, ssl.*.
    #[arg(long, global = true, env = "HIGHWATER_KAFKA_CONFIG", value_name = "FILE")]
    pub(crate) kafka_config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: TopicCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Make a topic.
    #[command(after_help = TOPIC_CREATE_HELP)]
    Create(TopicCreate),
    /// List topics with their partitions, bytes, and how many records they keep at most.
    List {
        /// The server's and the cluster's own topics too.
        #[arg(long)]
        internal: bool,
    },
    /// Show one topic: who writes it, what was configured, where its partitions stand.
    Show { topic: String },
    /// Print records, one a line: partition and offset, time, position at the source, key, value.
    ///
    /// Reads what was committed, from the beginning to the end as it is now. Without --partition
    /// the partitions come one after the other.
    #[command(after_help = TOPIC_READ_HELP)]
    Read(TopicRead),
    /// Look up an offset in every partition.
    #[command(after_help = TOPIC_OFFSETS_HELP)]
    Offsets {
        topic: String,
        /// Which: earliest, latest, max-timestamp, or a time.
        #[arg(long, default_value = "latest")]
        spec: String,
    },
    /// Change settings of a topic; those that are not named stay.
    Set {
        topic: String,
        /// Settings, as KEY=VALUE, such as retention.ms=86400000.
        #[arg(required_unless_present = "unset")]
        settings: Vec<String>,
        /// A setting that takes its default again; may be given several times.
        #[arg(long, value_name = "KEY")]
        unset: Vec<String>,
    },
    /// Delete a topic with all its records.
    Delete(TopicDelete),
    /// Keep records of a topic from an offset on, whatever its retention says.
    ///
    /// Retention, deletion of records and compaction take nothing that is held. Where the log is full a
    /// hold is broken, which topic show, doctor and a metric say.
    Hold(TopicHold),
    /// Bring a topic of a backup or archive back into the server's log, or into a data folder.
    Restore(TopicRestore),
    /// Release what a hold keeps.
    Release {
        topic: String,
        /// The hold.
        name: String,
    },
}

/// Flags of `highwater topic create`.
#[derive(Debug, Args)]
pub(crate) struct TopicCreate {
    pub(crate) topic: String,
    /// How many partitions; more can be added later, none taken away.
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) partitions: i32,
    /// Settings, as KEY=VALUE, such as retention.ms=86400000.
    pub(crate) settings: Vec<String>,
}

const TOPIC_CREATE_HELP: &str = "\
Examples:
  highwater topic create orders --partitions 3                 kept for seven days, as Kafka's default is
  highwater topic create prices cleanup.policy=compact         the newest record of each key is kept
  highwater topic create audit retention.ms=-1                 kept for ever
The settings are Kafka's, and highwater.*: docs/reference/configuration.md names them, with their defaults.";

/// Flags of `highwater topic delete`.
#[derive(Debug, Args)]
pub(crate) struct TopicDelete {
    pub(crate) topic: String,
    /// Do it: nothing brings the records back.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Flags of `highwater topic hold`.
#[derive(Debug, Args)]
pub(crate) struct TopicHold {
    pub(crate) topic: String,
    /// Who or what it is for; one of that name is replaced.
    pub(crate) name: String,
    /// The first offset to keep: OFFSET in every partition, or PARTITION:OFFSET, several times.
    /// [default: all that is there]
    #[arg(long)]
    pub(crate) offset: Vec<String>,
    /// When it ends by itself, as 2026-12-01T00:00:00Z. [default: when it is released]
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

const TOPIC_READ_HELP: &str = "\
Examples:
  highwater topic read shop --max 20                        the first 20 records
  highwater topic read shop --begin latest --follow         what comes from now on
  highwater topic read shop --begin 2026-11-29T08:00:00Z    from the first record appended since
  highwater topic read shop --offset 41200 --max 1 --output json
A time is RFC 3339 with its zone, or milliseconds since 1970, and means the time of the append.";

const TOPIC_OFFSETS_HELP: &str = "\
Specs:
  earliest       the first offset that is kept
  latest         behind the last record that may be read (committed)
  max-timestamp  the record with the greatest timestamp (brokers from Kafka 3.0 on)
  TIME           the first record appended at or after it: 2026-11-29T08:00:00Z, or milliseconds";

/// Flags of `highwater topic read`.
#[derive(Debug, Args)]
pub(crate) struct TopicRead {
    pub(crate) topic: String,
    /// Read this partition alone.
    #[arg(long, short)]
    pub(crate) partition: Option<i32>,
    /// Begin at this offset; needs --partition where the topic has several.
    #[arg(long, conflicts_with = "begin", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) offset: Option<i64>,
    /// Where to begin: earliest, latest, or a time.
    #[arg(long, default_value = "earliest")]
    pub(crate) begin: String,
    /// End after this many records.
    #[arg(long)]
    pub(crate) max: Option<u64>,
    /// Go on with what comes, until stopped.
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// `highwater user …`
#[derive(Debug, Args)]
pub(crate) struct UserArguments {
    /// The users file; made by the first user that is added.
    #[arg(long, global = true, env = "HIGHWATER_USERS_FILE")]
    pub(crate) users_file: Option<PathBuf>,
    /// Configuration file of the server, whose access.users_file names the file.
    #[arg(long, global = true, env = "HIGHWATER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: UserCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// List users with their roles and grants.
    List,
    /// Add a user.
    #[command(after_help = USER_HELP)]
    Add(UserAdd),
    /// Give a user a new password. Connections that are open stay.
    Password {
        name: String,
        #[command(flatten)]
        source: PasswordSource,
    },
    /// Change role and grants of a user. What is open feels it at once.
    #[command(after_help = USER_HELP)]
    Change(UserChange),
    /// Give a user a token, for programs that log in over HTTP. It is printed this once and kept as a
    /// hash alone.
    Token(UserToken),
    /// Remove a user, who may do nothing from then on.
    Remove { name: String },
}

const USER_HELP: &str = "\
Examples:
  highwater user add ann --users-file users.toml --grant 'read topic shop.*' --grant 'read group ann-*'
  highwater user add ops --users-file users.toml --role operate --password-file ops.password
  highwater user add CN=svc,O=shop --users-file users.toml --no-password --grant 'write topic orders'
  highwater user change ann --users-file users.toml --revoke 'read topic shop.*'
  highwater user token ops --users-file users.toml --label ci --to-file ci.token
A grant is an operation, a kind and a name: read, write, create, delete, alter, describe,
alter-configs, describe-configs or all; topic, group, transactional-id, connector, stream, table,
column, or cluster, which has no name. A name that ends in * stands for all that begin so.";

/// A new user.
#[derive(Debug, Args)]
pub(crate) struct UserAdd {
    pub(crate) name: String,
    /// What it may see and steer: view, operate or admin. Records it reads and writes by grants.
    #[arg(long, value_enum)]
    pub(crate) role: Option<RoleName>,
    /// Something it may do, such as 'read topic shop.*'. May be given several times.
    #[arg(long = "grant")]
    pub(crate) grants: Vec<String>,
    /// No password: it has a client certificate.
    #[arg(long, conflicts_with_all = ["password_file", "password_env"])]
    pub(crate) no_password: bool,
    #[command(flatten)]
    pub(crate) source: PasswordSource,
}

/// A token of a user.
#[derive(Debug, Args)]
pub(crate) struct UserToken {
    pub(crate) name: String,
    /// What it is called, so that it can be taken away again.
    #[arg(long, default_value = "token")]
    pub(crate) label: String,
    /// Write it into this file, which nobody else may read, in place of printing it.
    #[arg(long, value_name = "FILE", conflicts_with = "revoke")]
    pub(crate) to_file: Option<PathBuf>,
    /// Take the token of this label away; it lets nobody in from then on.
    #[arg(long)]
    pub(crate) revoke: bool,
}

/// What is changed of a user.
#[derive(Debug, Args)]
pub(crate) struct UserChange {
    pub(crate) name: String,
    /// What it may see and steer from now on.
    #[arg(long, value_enum)]
    pub(crate) role: Option<RoleName>,
    /// No role any more.
    #[arg(long, conflicts_with = "role")]
    pub(crate) no_role: bool,
    /// Something more that it may do. May be given several times.
    #[arg(long = "grant")]
    pub(crate) grants: Vec<String>,
    /// A grant to take away, as user list shows it. May be given several times.
    #[arg(long)]
    pub(crate) revoke: Vec<String>,
}

/// Where a password comes from: never from the command line's words. Without a flag from standard
/// input, where a terminal does not show it.
#[derive(Debug, Args)]
pub(crate) struct PasswordSource {
    /// A file that holds the password and nothing else. Without it: standard input.
    #[arg(long)]
    pub(crate) password_file: Option<PathBuf>,
    /// Name of an environment variable that holds it.
    #[arg(long, value_name = "VARIABLE", conflicts_with = "password_file")]
    pub(crate) password_env: Option<String>,
}

/// A role.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RoleName {
    /// Sees what is there, how it stands, and settings; reads no record.
    View,
    /// Makes, changes and deletes topics, groups and streams, and steers connectors, too.
    Operate,
    /// Everything.
    Admin,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn one_task_is_restarted_or_those_that_failed() {
        let parsed = |flags: &[&str]| {
            Cli::try_parse_from([&["highwater", "connector", "restart", "a"][..], flags].concat())
        };
        assert!(parsed(&["--task", "3"]).is_ok() && parsed(&["--only-failed"]).is_ok());
        assert!(parsed(&["--task", "3", "--only-failed"]).is_err());
    }

    #[test]
    fn setting_an_offset_needs_something_to_set() {
        assert!(Cli::try_parse_from(["highwater", "offsets", "set", "shop"]).is_err());
        assert!(Cli::try_parse_from(["highwater", "offsets", "set", "shop", "lsn=0/1"]).is_ok());
    }
}
