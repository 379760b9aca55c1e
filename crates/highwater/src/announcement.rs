//! What a server says once it is up: where everything is, how the log was found, what to try.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use highwater_log::Opening;

use crate::output;

/// Where the commands look for a server when nobody says otherwise.
const DEFAULT_HTTP: &str = "127.0.0.1:8083";

/// Where a server can be reached.
pub(crate) struct Places {
    pub(crate) data_dir: PathBuf,
    pub(crate) kafka: SocketAddr,
    pub(crate) http: SocketAddr,
}

/// The text, for a terminal and for a file alike.
pub(crate) fn text(places: &Places, opening: &Opening) -> String {
    let Places { data_dir, kafka, http } = places;
    let facts = [
        ("data folder", whole(data_dir)),
        ("log", found(opening.partitions(), opening.unclean())),
        ("Kafka clients", kafka.to_string()),
        ("REST and streams", format!("http://{http}")),
        ("health", format!("http://{http}/highwater/v1/health/ready")),
        ("metrics", format!("http://{http}/metrics")),
    ];
    format!(
        "highwater {} is up\n{}\n\nTry next, in another terminal; Ctrl-C here stops it:\n{}",
        env!("CARGO_PKG_VERSION"),
        output::facts(&facts),
        commands(&http.to_string())
    )
}

/// The folder as one can find it from anywhere.
fn whole(data_dir: &Path) -> String {
    data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned()).display().to_string()
}

/// How the log was found.
fn found(partitions: usize, unclean: usize) -> String {
    match (partitions, unclean) {
        (0, _) => "new".to_owned(),
        (all, 0) => format!("{all} partitions, closed cleanly at the last stop"),
        (all, unclean) => format!(
            "recovered: the last stop did not close {unclean} of {all} partitions; what was \
             acknowledged is there"
        ),
    }
}

/// Commands that work when pasted.
fn commands(http: &str) -> String {
    let at = if http == DEFAULT_HTTP { String::new() } else { format!(" --url http://{http}") };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unclean_stop_is_said() {
        assert_eq!(found(0, 0), "new");
        assert!(found(4, 0).contains("cleanly"));
        assert!(found(4, 1).contains("1 of 4"));
    }

    #[test]
    fn the_commands_name_the_server_where_it_is_not_at_the_default() {
        assert!(!commands(DEFAULT_HTTP).contains("--url"));
        let other = commands("127.0.0.1:1");
        assert!(other.lines().all(|line| line.contains("--url http://127.0.0.1:1")), "{other}");
    }
}
