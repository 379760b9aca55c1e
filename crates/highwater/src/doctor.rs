//! `highwater doctor`: asks the server, or looks around where none answers.

use highwater_broker::BrokerError;
use highwater_connector::{Finding, Severity};
use highwater_log::{Occupancy, RealFileSystem};
use serde_json::Value;

use crate::api::{Api, UNREACHABLE};
use crate::checkup::report;
use crate::cli::{Cli, DoctorFlags, Output, ServerFlags};
use crate::failure::{Exit, Failure};
use crate::open_files::OpenFiles;
use crate::server::HTTP_ADDRESS;
use crate::settings::{self, Settings};
use crate::{machine, output};

pub(crate) async fn run(cli: &Cli, flags: &DoctorFlags) -> Result<(), Failure> {
    let asked = Api::of(cli)?.get("/highwater/v1/doctor").await;
    let report = match asked {
        Ok(report) => report,
        Err(failure) if failure.code == UNREACHABLE => report(offline(&cli.url, flags)),
        Err(failure) => return Err(failure),
    };
    match cli.output {
        Output::Json => output::json(&report)?,
        Output::Text => output::line(&text(&report))?,
    }
    let errors = report["errors"].as_u64().unwrap_or(0);
    if errors == 0 {
        return Ok(());
    }
    let what = match errors {
        1 => "one finding is an error: something does not work".to_owned(),
        _ => format!("{errors} findings are errors: something does not work"),
    };
    Err(Failure::new(Exit::Failed, "DOCTOR_FOUND_ERRORS", what)
        .kept("everything: the doctor changes nothing")
        .remedy("do what stands behind each error, then run highwater doctor again"))
}

/// What can be told without a server.
fn offline(url: &str, flags: &DoctorFlags) -> Vec<Finding> {
    let flags = ServerFlags {
        config: flags.config.clone(),
        data_dir: flags.data_dir.clone(),
        ..ServerFlags::default()
    };
    let settings = match settings::load(&flags) {
        Ok(settings) => settings,
        Err(failure) => {
            let reason = "a server does not start with them";
            let finding = Finding::new(
                Severity::Error,
                "SETTINGS_INVALID",
                failure.what,
                reason,
                failure.remedy,
            );
            return vec![finding.about("settings")];
        }
    };
    if settings.apache.is_some() {
        let mut findings = vec![unreachable(url, &settings, false)];
        let taken = |_| HTTP_ADDRESS;
        findings.extend(machine::of_address("--http-listen", settings.http_listen, taken));
        findings.extend(OpenFiles::claim().few());
        return findings;
    }
    let looked = highwater_log::look(&RealFileSystem, &settings.data_dir);
    let mut findings = vec![unreachable(url, &settings, matches!(looked, Ok(Occupancy::InUse)))];
    match looked {
        Ok(Occupancy::Missing) => {}
        Ok(Occupancy::InUse) => findings.extend(machine::of_folder(&settings.data_dir)),
        Ok(Occupancy::Free) => {
            findings.extend(machine::of_folder(&settings.data_dir));
            findings.extend(addresses(&settings));
        }
        Err(error) => findings.push(
            Finding::new(
                Severity::Error,
                error.code(),
                error.to_string(),
                "a server does not start on it",
                "do what the text says, or choose another folder with --data-dir",
            )
            .about(format!("data folder {}", settings.data_dir.display())),
        ),
    }
    // As a server does: it takes as many as the system allows.
    findings.extend(OpenFiles::claim().few());
    findings
}

/// What a start would say of the addresses.
fn addresses(settings: &Settings) -> Vec<Finding> {
    let (kafka, http) = (settings.kafka_listen, settings.http_listen);
    let of_kafka = |error| BrokerError::listening(kafka, error).code();
    let of_http = |_| HTTP_ADDRESS;
    [
        machine::of_address("--kafka-listen", kafka, of_kafka),
        machine::of_address("--http-listen", http, of_http),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn unreachable(url: &str, settings: &Settings, in_use: bool) -> Finding {
    let dir = settings.data_dir.display();
    let (what, remedy) = if in_use {
        (
            format!("no server answers at {url}, and one holds the data folder {dir}"),
            "name the address that it listens on with --url; it printed it when it came up"
                .to_owned(),
        )
    } else {
        let remedy = match &settings.apache {
            Some(cluster) => format!("highwater server --kafka {cluster}"),
            None => format!("highwater server --data-dir {dir}"),
        };
        (format!("no server answers at {url}"), remedy)
    };
    let reason = "nothing is captured while no server runs, and the sources keep what was not read";
    Finding::new(Severity::Error, UNREACHABLE, what, reason, remedy).about("server")
}

/// The report for people.
fn text(report: &Value) -> String {
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut parts: Vec<String> = findings.iter().map(paragraph).collect();
    let count = |name: &str| output::plain(&report[name]);
    parts.push(match findings {
        [] => "nothing is wrong".to_owned(),
        _ => format!(
            "errors {}, warnings {}, notes {}",
            count("errors"),
            count("warnings"),
            count("notes")
        ),
    });
    parts.join("\n\n")
}

fn paragraph(finding: &Value) -> String {
    let part = |name: &str| output::plain(&finding[name]);
    let head = format!("{} {}: {}", part("severity"), part("code"), part("subject"));
    let facts =
        output::facts(&[("  what", part("what")), ("  why", part("reason")), ("  do", part("do"))]);
    format!("{head}\n{facts}")
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn found(flags: &DoctorFlags) -> Vec<Cow<'static, str>> {
        offline("http://127.0.0.1:1", flags).iter().map(|finding| finding.code.clone()).collect()
    }

    #[test]
    fn without_a_server_it_looks_at_settings_and_folder() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("highwater.toml");
        let flags =
            DoctorFlags { config: Some(config.clone()), data_dir: Some(folder.path().to_owned()) };
        std::fs::write(&config, "data_dri = 'd'").unwrap();
        assert_eq!(found(&flags), ["SETTINGS_INVALID"]);
        std::fs::write(&config, "").unwrap();
        assert!(found(&flags).contains(&UNREACHABLE.into()));
        std::fs::write(folder.path().join("meta.properties"), "version=1\n").unwrap();
        assert!(found(&flags).contains(&"LOG_OTHER_VERSION".into()), "{:?}", found(&flags));
    }

    #[test]
    fn addresses_that_are_taken_have_the_codes_of_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("highwater.toml");
        let taken = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [kafka, http] = taken.each_ref().map(|taken| taken.local_addr().unwrap());
        std::fs::write(&config, format!("kafka.listen = '{kafka}'\nhttp.listen = '{http}'"))
            .unwrap();
        let dir = folder.path().join("data");
        std::fs::create_dir(&dir).unwrap();
        let meta = "highwater.format=1\ncluster.id=x\n";
        std::fs::write(dir.join("meta.properties"), meta).unwrap();
        let flags = DoctorFlags { config: Some(config), data_dir: Some(dir) };
        let found = found(&flags);
        assert!(
            found.contains(&"KAFKA_ADDRESS_TAKEN".into()) && found.contains(&HTTP_ADDRESS.into()),
            "{found:?}"
        );
    }

    #[test]
    fn the_text_has_a_paragraph_for_each_finding() {
        let finding = Finding::new(Severity::Warning, "X_1", "w", "r", "d").about("connector shop");
        assert_eq!(
            text(&report(vec![finding])),
            "warning X_1: connector shop\n  what  w\n  why   r\n  do    d\n\n\
             errors 0, warnings 1, notes 0"
        );
        assert_eq!(text(&report(Vec::new())), "nothing is wrong");
    }
}
