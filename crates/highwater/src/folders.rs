//! What `highwater server --check` looks at beside the settings: the folders that they name. A start takes
//! them as they are, so what is wrong there is told and refuses nothing.

use std::path::{Path, PathBuf};

use highwater_kafka::Bootstrap;

use crate::server::{Plugins, worker_config};
use crate::settings::{ALLOWED_PATHS, Settings};

/// Files that are named, at most.
const NAMED: usize = 10;

/// What is wrong with the folders of connectors, a warning each.
pub(crate) fn check(settings: &Settings, plugins: Plugins) -> Vec<String> {
    let connectors =
        settings.worker.connectors_dir().map(|folder| of_connectors(folder, settings, plugins));
    let files = settings.allowed_paths.iter().filter_map(of_files);
    connectors.into_iter().flatten().chain(files).collect()
}

/// A folder of connectors is there, and each of its files is one whose keys fit, as far as that can be
/// said without a log and without what they lead to.
fn of_connectors(folder: &Path, settings: &Settings, plugins: Plugins) -> Vec<String> {
    let said =
        |what: String| format!("warning CONNECTOR_FILE: {what}; the server starts without it");
    let log = || Bootstrap::from(&settings.kafka_listen.to_string());
    let log = settings.apache.clone().unwrap_or_else(log);
    let config = worker_config(settings, &log, settings.http_listen);
    let plugins = plugins(settings.allowed_paths());
    let wrong = match highwater_worker::check_connector_files(folder, plugins, &config) {
        Ok(wrong) => wrong,
        Err(error) => return vec![said(format!("{} cannot be read: {error}", folder.display()))],
    };
    let more = wrong.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more files of {}", folder.display()));
    let named = wrong
        .iter()
        .take(NAMED)
        .map(|(file, why)| format!("{}: {why}", folder.join(file).display()));
    named.chain(more).map(said).collect()
}

/// A folder that is not there allows nothing, and says so only when somebody needs it.
fn of_files(folder: &PathBuf) -> Option<String> {
    let why = std::fs::read_dir(folder).err()?;
    let folder = folder.display();
    Some(format!(
        "warning {ALLOWED_PATHS}: {folder} cannot be read: {why}; nothing below it is allowed"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ServerFlags;
    use crate::settings;

    #[test]
    fn folders_are_looked_at_with_each_file_and_its_keys() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let path = |name: &str| at(name).display().to_string();
        let warned = |connectors: &str, allowed: &str| {
            let (connectors, allowed) = (path(connectors), path(allowed));
            let text =
                format!("worker.connectors_dir = '{connectors}'\n{ALLOWED_PATHS} = '{allowed}'");
            std::fs::write(at("highwater.toml"), text).unwrap();
            let flags =
                ServerFlags { config: Some(at("highwater.toml")), ..ServerFlags::default() };
            check(&settings::load(&flags).unwrap(), crate::plugins)
        };
        std::fs::create_dir_all(at("data")).unwrap();
        std::fs::create_dir_all(at("files")).unwrap();
        let line = |key: &str| {
            format!(
                "name={key}\nconnector.class=FileStreamSource\ntopic=t\n{key}={}\n",
                path("data/a.txt")
            )
        };
        std::fs::write(at("files/good.properties"), line("file")).unwrap();
        assert_eq!(warned("files", "data"), Vec::<String>::new());
        std::fs::write(at("files/bad.json"), "{").unwrap();
        std::fs::write(at("files/odd.properties"), line("fil")).unwrap();
        let [bad, odd] = &warned("files", "data")[..] else { panic!("both are told") };
        assert!(bad.contains("bad.json: it is no JSON"), "{bad}");
        assert!(odd.contains("odd.properties: ") && odd.contains("did you mean file?"), "{odd}");
        let [connectors, allowed] = &warned("none", "nowhere")[..] else { panic!("both are told") };
        assert!(connectors.starts_with("warning CONNECTOR_FILE: /"), "{connectors}");
        assert!(allowed.starts_with("warning worker.allowed_paths: /"), "{allowed}");
    }
}
