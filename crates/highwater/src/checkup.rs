//! `GET /highwater/v1/doctor`: what a running server finds wrong with itself and what it stands on.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::routing::get;
use axum::{Json, Router};
use highwater_connector::{Finding, Severity};
use highwater_kafka::Bootstrap;
use highwater_log::{Log, LogError, Opening, PartitionState, TopicInfo};
use highwater_streams::Streams;
use highwater_worker::Worker;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::apache;
use crate::http_guard::OpenHttpGuard;
use crate::kafka_guard::OpenGuard;
use crate::machine;
use crate::open_files::OpenFiles;

/// The parts that are looked at.
pub(crate) struct Checkup {
    /// One at a time: it syncs files and logs in at the sources, whoever asks.
    pub(crate) one: Mutex<()>,
    pub(crate) http: OpenHttpGuard,
    pub(crate) log: Checked,
    pub(crate) worker: Worker,
    pub(crate) streams: Streams,
    /// Flags and addresses of the listeners.
    pub(crate) listeners: Vec<(&'static str, SocketAddr)>,
}

/// Where the log is that is looked at.
pub(crate) enum Checked {
    /// In this process.
    Embedded { log: Log, data_dir: PathBuf, guard: OpenGuard },
    /// In a cluster.
    Cluster(Bootstrap),
}

impl Checkup {
    /// The route.
    pub(crate) fn router(self) -> Router {
        let checkup = Arc::new(self);
        let answer = async move || Json(report(checkup.findings().await));
        Router::new().route("/highwater/v1/doctor", get(answer))
    }

    fn is_guarded(&self, flag: &str) -> bool {
        if flag == "--http-listen" {
            return self.http.is_whole();
        }
        let Checked::Embedded { guard, .. } = &self.log else { return false };
        flag == "--kafka-listen" && guard.is_whole()
    }

    async fn findings(&self) -> Vec<Finding> {
        let _one = self.one.lock().await;
        let mut findings = match &self.log {
            Checked::Embedded { log, data_dir, guard } => {
                let mut findings = of_log(log, data_dir).await;
                findings.extend(guard.findings());
                findings
            }
            Checked::Cluster(bootstrap) => match apache::examine(bootstrap).await {
                Some(finding) => vec![finding],
                None => self.worker.examine_cluster().await,
            },
        };
        findings.extend(self.http.findings());
        findings.extend(OpenFiles::granted().few());
        let open = self.listeners.iter().filter(|(flag, _)| !self.is_guarded(flag));
        findings.extend(open.filter_map(|(flag, at)| of_listener(flag, *at)));
        findings.extend(self.worker.examine().await);
        findings.extend(self.streams.examine().await);
        findings
    }
}

/// What is to be said of the embedded log and its folder.
async fn of_log(log: &Log, data_dir: &Path) -> Vec<Finding> {
    let folder = data_dir.to_owned();
    // It syncs, which may take its time.
    let folder = tokio::task::spawn_blocking(move || machine::of_folder(&folder)).await;
    let mut findings = folder.unwrap_or_default();
    findings.extend(of_opening(log.opening()));
    let free = machine::space(data_dir).map_or(u64::MAX, |space| space.free);
    findings.extend(of_limit(log.held_bytes(), log.limit_bytes(), free));
    findings.extend(of_partitions(log));
    findings.extend(log.topics().iter().flat_map(of_holds));
    findings.extend(of_archive(log));
    findings
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
            format!("it listens on {address}, without both TLS and authentication"),
            "whoever reaches the port can read and change everything",
            format!("{flag} 127.0.0.1:{}, and a proxy or firewall in front", address.port()),
        )
        .about(flag)
    })
}

fn of_opening(opening: &Opening) -> Option<Finding> {
    let (unclean, all) = (opening.unclean(), opening.partitions());
    (unclean > 0).then(|| {
        let (severity, impact) = after_unclean(&opening.cut(), opening.offline());
        Finding::new(
            severity,
            "STOP_UNCLEAN",
            format!("the stop before this start did not close {unclean} of {all} partitions"),
            impact,
            "stop with SIGTERM and give it shutdown_timeout_ms; journalctl -k | grep -i oom shows whether memory ran out",
        )
        .about("log")
    })
}

/// What an unclean stop has left of the log.
fn after_unclean(cut: &[String], offline: usize) -> (Severity, String) {
    if !cut.is_empty() {
        let names = cut.join(", ");
        return (
            Severity::Warning,
            format!(
                "a batch of the last second was broken in {names}, and whole ones stood behind it: from there on \
                 the log was cut, and what went is kept in a file *.cut of the partition's folder"
            ),
        );
    }
    let kept = match offline {
        0 => "the start read them to their end; what was acknowledged is there".to_owned(),
        _ => format!(
            "the start read them to their end; {offline} cannot be opened, which are named here as well"
        ),
    };
    (Severity::Note, kept)
}

/// How near the log is to `log.total_max_bytes`, and whether the volume is full before it.
fn of_limit(held: u64, limit: Option<u64>, free: u64) -> Option<Finding> {
    const MIB: u64 = 1 << 20;
    let limit = limit?;
    let (held_mib, limit_mib) = (held / MIB, limit / MIB);
    let what = format!("it holds {held_mib} of {limit_mib} MiB that log.total_max_bytes allows");
    let finding = if held >= limit / 10 * 9 {
        let severity = if held >= limit { Severity::Error } else { Severity::Warning };
        Finding::new(
            severity,
            "LOG_LIMIT_NEAR",
            what,
            "at the limit retention comes early and holds are broken, and where nothing more may go, nothing can be written",
            "lower retention.ms or retention.bytes of a topic, delete one, or raise log.total_max_bytes",
        )
    } else if limit.saturating_sub(held) > free {
        let free_mib = free / MIB;
        Finding::new(
            Severity::Note,
            "LOG_LIMIT_BEYOND_VOLUME",
            format!("{what}, and its volume has {free_mib} MiB left"),
            "the volume is full before the limit is reached",
            "lower log.total_max_bytes, or give the log a volume of its own",
        )
    } else {
        return None;
    };
    Some(finding.about("log"))
}

/// An archive that does not work, and what is missing in one.
fn of_archive(log: &Log) -> Vec<Finding> {
    let fault = log.archive_fault().map(|fault| {
        Finding::new(
            Severity::Error,
            fault.code(),
            fault.to_string(),
            "closed segments are not archived: what retention would remove waits for it, until the log is full",
            "see to the folder that archive.dir names; it is tried again by itself",
        )
    });
    let gaps = log.archive_gaps();
    let gap = (!gaps.is_empty()).then(|| {
        Finding::new(
            Severity::Warning,
            "ARCHIVE_GAP",
            format!("records are missing between others in the archive, of {}", gaps.join(", ")),
            "they were removed while the topic was not archived, or the log was full; a restore brings what follows the last gap",
            "give the log more space, and see that archive.dir can be written",
        )
    });
    fault.into_iter().chain(gap).map(|finding| finding.about("archive")).collect()
}

/// Rule L7: who relied on it is to know.
fn of_holds(topic: &TopicInfo) -> Vec<Finding> {
    let broken = topic.config.holds.iter().filter(|hold| hold.broken_ms.is_some());
    broken
        .map(|hold| {
            let (topic, hold) = (&topic.name, &hold.name);
            Finding::new(
                Severity::Error,
                "HOLD_BROKEN",
                format!("hold {hold} was broken: the log was full, and what retention alone would have removed is gone"),
                "who relies on it finds the beginning of what it held gone; it holds nothing any more",
                format!("highwater topic release {topic} {hold}, after its owner has reconciled; give the log more space before you hold again"),
            )
            .about(format!("topic {topic}"))
        })
        .collect()
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
    fn after_a_cut_or_with_a_partition_offline_nobody_says_that_all_is_there() {
        let said = |cut: &[&str], offline| {
            after_unclean(&cut.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), offline)
        };
        let (severity, text) = said(&[], 0);
        assert!(severity == Severity::Note && text.contains("what was acknowledged is there"));
        for (cut, offline, due) in [(&["a-0"][..], 0, Severity::Warning), (&[], 1, Severity::Note)]
        {
            let (severity, text) = said(cut, offline);
            assert!(severity == due && !text.contains("acknowledged"), "{text}");
        }
    }

    #[test]
    fn a_limit_is_told_before_it_is_reached() {
        let found = |held: u64, free: u64| {
            of_limit(held << 20, Some(1000 << 20), free << 20)
                .map(|found| (found.code.into_owned(), found.severity))
        };
        assert_eq!(found(100, 5000), None);
        assert_eq!(found(900, 5000), Some(("LOG_LIMIT_NEAR".to_owned(), Severity::Warning)));
        assert_eq!(found(1000, 5000), Some(("LOG_LIMIT_NEAR".to_owned(), Severity::Error)));
        assert_eq!(found(100, 500), Some(("LOG_LIMIT_BEYOND_VOLUME".to_owned(), Severity::Note)));
        assert_eq!(of_limit(1, None, 0), None);
    }

    #[test]
    fn a_partition_that_does_not_work_is_found() {
        let fault = || LogError::Offline { partition: "a-0".to_owned(), reason: "r".to_owned() };
        assert_eq!(of_partition(PartitionState::Online, fault()), None);
        let finding = of_partition(PartitionState::Offline, fault()).unwrap();
        assert_eq!((&*finding.code, finding.severity), ("LOG_PARTITION_OFFLINE", Severity::Error));
    }
}
