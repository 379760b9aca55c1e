//! The configuration reference: its tables of connector keys are written from the definitions.
//!
//! `HIGHWATER_WRITE_DOCS=1 cargo test -p highwater reference` writes them into
//! `docs/reference/configuration.md`; without the variable the test holds the page against the code.

use std::path::{Path, PathBuf};

use highwater_connector::{
    ConfigKey, Importance, KeyType, SinkConnector as _, SourceConnector as _,
};
use highwater_log::{TOPIC_SETTINGS, TopicSetting};
use highwater_worker::{CLIENT_SETTINGS, ClientSettings, Fate};

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md")
}

fn table(keys: &[ConfigKey]) -> String {
    let rows: String = keys.iter().map(row).collect();
    format!("| key | values | default | importance | what it does |\n|---|---|---|---|---|\n{rows}")
}

fn row(key: &ConfigKey) -> String {
    let default = match key.default {
        None => "required".to_owned(),
        Some("") => "empty".to_owned(),
        Some(default) => format!("`{default}`"),
    };
    let importance = match key.importance {
        Importance::High => "high",
        Importance::Medium => "medium",
        Importance::Low => "low",
    };
    let text = key.documentation.replace('|', "\\|");
    format!("| `{}` | {} | {default} | {importance} | {text} |\n", key.name, values(key.key_type))
}

fn values(key_type: KeyType) -> String {
    match key_type {
        KeyType::String => "text".to_owned(),
        KeyType::Password => "text, never shown".to_owned(),
        KeyType::Int { min, max } if max == i64::MAX => format!("{min} or more"),
        KeyType::Int { min, max } => format!("{min} to {max}"),
        KeyType::Boolean => "`true`, `false`".to_owned(),
        KeyType::List => "list, separated by commas".to_owned(),
        KeyType::Choice(choices) => choices
            .iter()
            .map(
                |choice| if choice.is_empty() { "empty".to_owned() } else { format!("`{choice}`") },
            )
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Puts `table` between the two marks of `name`.
pub(crate) fn with_section(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = page.split_once(&begin).expect("the page has the mark");
    let (_, after) = rest.split_once(&end).expect("the page has the end mark");
    format!("{before}{begin}\n{table}\n{end}{after}")
}

/// Writes a file that is made from the code, or holds the one that is there against it.
pub(crate) fn holds(path: &Path, fresh: &str) {
    if std::env::var_os("HIGHWATER_WRITE_DOCS").is_some() {
        std::fs::write(path, fresh).expect("the reference can be written");
        return;
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert!(
        written == fresh,
        "{path}: run HIGHWATER_WRITE_DOCS=1 cargo test -p highwater reference"
    );
}

/// What a topic may be given.
fn topic_table() -> String {
    let row = |setting: &TopicSetting| {
        let default = match setting.default {
            "" => "empty".to_owned(),
            "9223372036854775807" => "no bound".to_owned(),
            default => format!("`{default}`"),
        };
        format!("| `{}` | {default} | {} |\n", setting.name, setting.about)
    };
    let rows: String = TOPIC_SETTINGS.iter().map(row).collect();
    format!("| key | default | what it does |\n|---|---|---|\n{rows}")
}

/// Overrides that are keys of the worker.
fn honoured_table() -> String {
    let keys = [highwater_worker::worker_keys(), highwater_worker::sink_keys()].concat();
    let is_honoured = |key: &&ConfigKey| {
        let parted = key.name.split_once(".override.");
        parted.is_some_and(|(client, setting)| !is_sorted(client, setting))
    };
    let rows: String = keys.iter().filter(is_honoured).map(row).collect();
    format!("| key | values | default | importance | what it does |\n|---|---|---|---|---|\n{rows}")
}

/// Whether a setting is in the tables of those that change nothing or are refused.
fn is_sorted(client: &str, setting: &str) -> bool {
    let of = |group: &&ClientSettings| group.clients.iter().any(|each| each.name() == client);
    CLIENT_SETTINGS.iter().filter(of).any(|group| group.names.contains(&setting))
}

/// Settings of Kafka's clients that change nothing, or that are refused.
fn client_table(fate: Fate) -> String {
    let coded = |texts: &[&str]| {
        let code =
            |text: &&str| if text.is_empty() { "empty".to_owned() } else { format!("`{text}`") };
        texts.iter().map(code).collect::<Vec<_>>().join(", ")
    };
    let row = |group: &ClientSettings| {
        let clients: Vec<_> = group.clients.iter().map(|client| client.name()).collect();
        let (names, met) = (coded(group.names), coded(group.met));
        format!("| {names} | {} | {met} | {} |\n", clients.join(", "), group.reason)
    };
    let rows: String = CLIENT_SETTINGS.iter().filter(|group| group.fate == fate).map(row).collect();
    let head = match fate {
        Fate::WithoutEffect => "| setting | of | what is done anyway | why it changes nothing |",
        Fate::Refused => "| setting | of | taken all the same | why it is refused |",
    };
    format!("{head}\n|---|---|---|---|\n{rows}")
}

#[test]
fn the_reference_of_client_overrides_says_what_the_code_says() {
    let page = page().with_file_name("client-overrides.md");
    let text = std::fs::read_to_string(&page).expect("the reference is there");
    let fresh = with_section(&text, "honoured", &honoured_table());
    let fresh = with_section(&fresh, "without effect", &client_table(Fate::WithoutEffect));
    let fresh = with_section(&fresh, "refused", &client_table(Fate::Refused));
    holds(&page, &fresh);
}

#[test]
fn the_configuration_reference_says_what_the_code_says() {
    let postgres = highwater_postgres::PostgresConnector::new();
    let page_text = std::fs::read_to_string(page()).expect("the reference is there");
    let server = crate::settings::definition();
    let fresh = with_section(&page_text, "server keys", &table(server.keys()));
    let fresh = with_section(&fresh, "worker keys", &table(&highwater_worker::worker_keys()));
    let fresh = with_section(&fresh, "record keys", &table(&highwater_worker::record_keys()));
    let fresh = with_section(&fresh, "sink keys", &table(&highwater_worker::sink_keys()));
    let fresh = with_section(&fresh, "postgres keys", &table(postgres.config().keys()));
    let allowed = highwater_connector::AllowedPaths::new(crate::settings::ALLOWED_PATHS, []);
    let source = highwater_file::FileSourceConnector::new(allowed.clone());
    let sink = highwater_file::FileSinkConnector::new(allowed);
    let fresh = with_section(&fresh, "file source keys", &table(source.config().keys()));
    let fresh = with_section(&fresh, "file sink keys", &table(sink.config().keys()));
    let fresh = with_section(&fresh, "topic keys", &topic_table());
    holds(&page(), &fresh);
}
