//! What a server says once it is up: where everything is, how the log was found, what to try.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use highwater_log::Opening;

use crate::output;

/// Where the commands look for a server when nobody says otherwise.
const DEFAULT_HTTP: &str = "127.0.0.1:8083";

/// Where a server can be reached.
pub(crate) struct Places {
    pub(crate) log: LogPlace,
    /// HOST:PORT of HTTP.
    pub(crate) http: String,
    /// Whether HTTP has TLS.
    pub(crate) secure: bool,
    /// Whether requests over HTTP have to say who they come from.
    pub(crate) login: bool,
}

/// Where the log is.
pub(crate) enum LogPlace {
    /// In this process.
    Embedded { data_dir: PathBuf, kafka: SocketAddr, found: String },
    /// In a cluster, described in words.
    Cluster(String),
}

/// The text, for a terminal and for a file alike.
pub(crate) fn text(Places { log, http, secure, login }: &Places) -> String {
    let scheme = if *secure { "https" } else { "http" };
    let mut facts = match log {
        LogPlace::Cluster(described) => vec![("log", described.clone())],
        LogPlace::Embedded { data_dir, kafka, found } => vec![
            ("data folder", whole(data_dir)),
            ("log", found.clone()),
            ("Kafka clients", kafka.to_string()),
        ],
    };
    facts.extend([
        ("REST and streams", format!("{scheme}://{http}")),
        ("health", format!("{scheme}://{http}/highwater/v1/health/ready")),
        ("metrics", format!("{scheme}://{http}/metrics")),
    ]);
    format!(
        "highwater {} is up\n{}\n\nTry next, in another terminal; Ctrl-C here stops it:\n{}{}",
        env!("CARGO_PKG_VERSION"),
        output::facts(&facts),
        commands(scheme, http),
        with(*secure, *login)
    )
}

/// The folder as one can find it from anywhere.
fn whole(data_dir: &Path) -> String {
    data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned()).display().to_string()
}

/// How the log was found.
pub(crate) fn found(opening: &Opening) -> String {
    let left = match (opening.partitions(), opening.unclean()) {
        (0, _) => return "new".to_owned(),
        (all, 0) => format!("{all} partitions, closed cleanly at the last stop"),
        (all, unclean) => {
            format!("recovered: the last stop did not close {unclean} of {all} partitions")
        }
    };
    match whole_log(opening.unclean(), opening.cut().len(), opening.offline()) {
        Some(kept) => format!("{left}; {kept}"),
        None => left,
    }
}

/// Whether all is there, where somebody may ask: after a stop that was not clean, or a damage.
fn whole_log(unclean: usize, cut: usize, offline: usize) -> Option<String> {
    match (unclean, cut, offline) {
        (0, 0, 0) => None,
        (_, 0, 0) => Some("what was acknowledged is there".to_owned()),
        (_, cut, 0) => Some(format!(
            "{cut} were cut before whole batches, which are kept aside: see highwater doctor"
        )),
        (_, 0, offline) => Some(format!("{offline} cannot be opened: see highwater doctor")),
        (_, cut, offline) => Some(format!(
            "{offline} cannot be opened, {cut} were cut before whole batches: see highwater doctor"
        )),
    }
}

/// Commands that work when pasted.
fn commands(scheme: &str, http: &str) -> String {
    let usual = scheme == "http" && http == DEFAULT_HTTP;
    let at = if usual { String::new() } else { format!(" --url {scheme}://{http}") };
    let lines = [
        ("connector create --file shop.json", "capture a database"),
        ("connector list", "see whether it moves, and if not why"),
        ("stream list", "see the streams over its changes"),
        ("doctor", "see whether anything needs attention"),
    ];
    let lines = lines.map(|(command, what)| (format!("highwater {command}{at}"), what));
    let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    lines.map(|(command, what)| format!("  {command:<width$}   {what}")).join("\n")
}

/// What the commands need beside.
fn with(secure: bool, login: bool) -> String {
    let trust =
        secure.then_some("--ca-file FILE where this machine does not trust its certificate");
    let who = login.then_some("--token-file FILE, or --login NAME, because users log in");
    let needs: Vec<_> = trust.into_iter().chain(who).collect();
    if needs.is_empty() {
        return String::new();
    }
    format!(
        "\nAdd {}; highwater --help names what each is in the environment.",
        needs.join(", and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unclean_stop_is_said() {
        assert_eq!(found(&Opening::default()), "new");
        assert_eq!(whole_log(0, 0, 0), None);
        assert_eq!(whole_log(4, 0, 0).as_deref(), Some("what was acknowledged is there"));
        for (unclean, cut, offline) in [(4, 1, 0), (4, 0, 1), (4, 1, 1), (0, 0, 1)] {
            let said = whole_log(unclean, cut, offline).unwrap();
            assert!(!said.contains("acknowledged") && said.contains("doctor"), "{said}");
        }
    }

    fn said(http: &str, secure: bool, login: bool) -> String {
        let log = LogPlace::Cluster("Kafka at a:1".to_owned());
        text(&Places { log, http: http.to_owned(), secure, login })
    }

    #[test]
    fn with_tls_every_address_is_https() {
        let said = said("a.example:8083", true, false);
        assert!(said.contains("https://a.example:8083/metrics"), "{said}");
        assert!(said.contains("--url https://a.example:8083"), "{said}");
        assert!(!said.contains("http://"), "{said}");
    }

    #[test]
    fn what_the_commands_need_beside_is_named() {
        let needs = |secure, login| {
            let said = said(DEFAULT_HTTP, secure, login);
            (said.contains("--ca-file"), said.contains("--token-file"))
        };
        for (secure, login) in [(false, false), (true, false), (false, true), (true, true)] {
            assert_eq!(needs(secure, login), (secure, login));
        }
    }

    #[test]
    fn the_commands_name_the_server_where_it_is_not_at_the_default() {
        assert!(!commands("http", DEFAULT_HTTP).contains("--url"));
        let other = commands("http", "127.0.0.1:1");
        assert!(other.lines().all(|line| line.contains("--url http://127.0.0.1:1")), "{other}");
    }
}
