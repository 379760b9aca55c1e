//! `GET /highwater/v1/doctor`: what a running server finds wrong with itself and what it stands on.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::routing::get;
use axum::{Json, Router};
use highwater_connector::{Finding, Severity};
use highwater_log::{Log, LogError, Opening, PartitionState};
use highwater_streams::Streams;
use highwater_worker::Worker;
use serde_json::{Value, json};

use crate::machine;

/// The parts that are looked at.
pub(crate) struct Checkup {
    pub(crate) log: Log,
    pub(crate) worker: Worker,
    pub(crate) streams: Streams,
    pub(crate) data_dir: PathBuf,
    /// Flags and addresses of the listeners.
    pub(crate) listeners: [(&'static str, SocketAddr); 2],
}

impl Checkup {
    /// The route.
    pub(crate) fn router(self) -> Router {
        let checkup = Arc::new(self);
        let answer = async move || Json(report(checkup.findings().await));
        Router::new().route("/highwater/v1/doctor", get(answer))
    }

    async fn findings(&self) -> Vec<Finding> {
        let data_dir = self.data_dir.clone();
        // It syncs, which may take its time.
        let folder = tokio::task::spawn_blocking(move || machine::of_folder(&data_dir)).await;
        let mut findings = folder.unwrap_or_default();
        findings.extend(machine::of_open_files(machine::open_files()));
        findings.extend(self.listeners.iter().filter_map(|(flag, at)| of_listener(flag, *at)));
        findings.extend(of_opening(self.log.opening()));
        findings.extend(of_partitions(&self.log));
        findings.extend(self.worker.examine().await);
        findings.extend(self.streams.examine().await);
        findings
    }
}

/// The findings as they are printed and answered, the worst first.
pub(crate) fn report(mut findings: Vec<Finding>) -> Value {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    json!({
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "notes": count(Severity::Note),
        "findings": findings,
    })
}

/// Rule A2: somebody asked for it, and should not forget it.
fn of_listener(flag: &str, address: SocketAddr) -> Option<Finding> {
    let open = !address.ip().is_loopback();
    open.then(|| {
        Finding::new(
            Severity::Warning,
            "LISTENER_OPEN",
            format!("it listens on {address}, without TLS and authentication"),
            "whoever reaches the port can read and change everything",
            format!("{flag} 127.0.0.1:{}, and a proxy or firewall in front", address.port()),
        )
        .about(flag)
    })
}

fn of_opening(opening: &Opening) -> Option<Finding> {
    let (unclean, all) = (opening.unclean(), opening.partitions());
    (unclean > 0).then(|| {
        Finding::new(
            Severity::Note,
            "STOP_UNCLEAN",
            format!("the stop before this start did not close {unclean} of {all} partitions"),
            "the start read them to their end; what was acknowledged is there",
            "stop with SIGTERM and give it shutdown_timeout_ms; journalctl -k | grep -i oom shows whether memory ran out",
        )
        .about("log")
    })
}

/// Partitions that do not work; others go on.
fn of_partitions(log: &Log) -> Vec<Finding> {
    let partitions = log.topics().into_iter().flat_map(|topic| {
        let name = topic.name;
        (0..topic.partitions).filter_map(move |index| {
            Some((format!("{name}-{index}"), log.partition(&name, index)?))
        })
    });
    partitions
        .filter_map(|(name, partition)| {
            let state = partition.watermarks_now().state;
            of_partition(state, partition.fault()?)
                .map(|finding| finding.about(format!("partition {name}")))
        })
        .collect()
}

fn of_partition(state: PartitionState, fault: LogError) -> Option<Finding> {
    let (severity, reason, remedy) = match state {
        PartitionState::Poisoned => (
            Severity::Warning,
            "nothing can be written to it until it has reopened itself, which it tries again and again",
            "see whether the disk reports faults: dmesg | tail -n 50",
        ),
        PartitionState::Offline => (
            Severity::Error,
            "it can neither be read nor written; all others go on",
            "do what the text says; the server opens it again by itself",
        ),
        PartitionState::Online | PartitionState::Gone => return None,
    };
    Some(Finding::new(severity, fault.code(), fault.to_string(), reason, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_each_grade_is_counted() {
        let finding = |severity| Finding::new(severity, "X", "w", "r", "d");
        let found = [Severity::Note, Severity::Error, Severity::Warning].map(finding);
        let report = report(found.to_vec());
        assert_eq!((&report["errors"], &report["warnings"]), (&json!(1), &json!(1)));
        assert_eq!(report["findings"][0]["severity"], "error");
        assert_eq!(report["findings"][2]["severity"], "note");
    }

    #[test]
    fn only_listeners_beyond_loopback_are_found() {
        assert_eq!(of_listener("--http-listen", "127.0.0.1:1".parse().unwrap()), None);
        assert!(of_listener("--http-listen", "0.0.0.0:1".parse().unwrap()).is_some());
    }

    #[test]
    fn a_partition_that_does_not_work_is_found() {
        let fault = || LogError::Offline { partition: "a-0".to_owned(), reason: "r".to_owned() };
        assert_eq!(of_partition(PartitionState::Online, fault()), None);
        let finding = of_partition(PartitionState::Offline, fault()).unwrap();
        assert_eq!((finding.code, finding.severity), ("LOG_PARTITION_OFFLINE", Severity::Error));
    }
}
