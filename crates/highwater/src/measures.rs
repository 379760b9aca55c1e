//! What is measured when somebody asks for metrics: the log's partitions, its volume, the process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{Method, StatusCode};
use highwater_log::{Log, PartitionState};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::machine;
use crate::open_files::OpenFiles;

/// Upper bounds of the buckets of every histogram of seconds: from a fast sync to a slow answer.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// How often samples are folded into histograms: they pile up between two scrapes otherwise.
const UPKEEP: Duration = Duration::from_secs(5);

/// Starts recording.
pub(crate) fn record() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?;
    describe();
    gauge!("process_start_time_seconds").set(now_seconds());
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

/// Every metric of the server: those of its parts, and its own.
pub(crate) fn describe() {
    highwater_log::describe_metrics();
    highwater_broker::describe_metrics();
    highwater_kafka::describe_metrics();
    highwater_worker::describe_metrics();
    highwater_streams::describe_metrics();
    crate::http_listener::describe_metrics();
    crate::user_store::describe_metrics();
    crate::listener_tls::describe_metrics();
    crate::http_access::describe_metrics();
    describe_counter!("highwater_http_requests_total", "Requests answered, by method and status");
    let bytes = Unit::Bytes;
    describe_gauge!("highwater_log_bytes", bytes, "Bytes of a topic's segments, by topic");
    describe_gauge!("highwater_log_held_bytes", bytes, "Bytes of all topics together");
    describe_gauge!(
        "highwater_log_limit_bytes",
        bytes,
        "What all topics together may hold; 0 where there is no limit"
    );
    describe_gauge!("highwater_log_start_offset", "First offset kept, by topic and partition");
    describe_gauge!("highwater_log_end_offset", "Next offset to be given, by topic and partition");
    describe_gauge!(
        "highwater_log_high_watermark",
        "One past the last visible offset, by topic and partition; what lies between it and the \
         end is not synced yet"
    );
    describe_gauge!(
        "highwater_log_partitions",
        "Partitions, by state: online, poisoned (a sync failed, it reopens by itself), offline"
    );
    describe_gauge!("highwater_log_volume_free_bytes", bytes, "Free bytes of the log's volume");
    describe_gauge!("highwater_log_volume_size_bytes", bytes, "Size of the log's volume");
    describe_gauge!("process_cpu_seconds_total", Unit::Seconds, "CPU time of the process");
    describe_gauge!("process_max_fds", "Files that the process may open");
    describe_gauge!("process_open_fds", "Files that the process has open");
    describe_gauge!(
        "process_resident_memory_bytes",
        bytes,
        "Memory of the process that is resident"
    );
    describe_gauge!(
        "process_start_time_seconds",
        Unit::Seconds,
        "When the process started, as Unix time"
    );
}

/// A request was answered.
pub(crate) fn http(method: &'static str, status: StatusCode) {
    let labels = [("method", method.to_owned()), ("status", status.as_u16().to_string())];
    counter!("highwater_http_requests_total", &labels).increment(1);
}

/// A method as a label: a peer may send any word.
pub(crate) fn method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// The log and its volume, as they are measured.
pub(crate) struct LogMeasures {
    log: Log,
    data_dir: PathBuf,
    /// Topics that have series, with their partitions.
    shown: Mutex<BTreeMap<String, i32>>,
}

impl LogMeasures {
    pub(crate) fn new(log: Log, data_dir: PathBuf) -> Self {
        Self { log, data_dir, shown: Mutex::default() }
    }

    /// Looks at them.
    pub(crate) fn take(&self) {
        let mut states: BTreeMap<&str, u32> =
            ["online", "poisoned", "offline"].map(|state| (state, 0)).into();
        let topics = self.log.topics();
        self.forget(topics.iter().map(|topic| (topic.name.clone(), topic.partitions)).collect());
        for topic in topics {
            let mut bytes = 0;
            for index in 0..topic.partitions {
                let Some(partition) = self.log.partition(&topic.name, index) else { continue };
                let marks = partition.watermarks_now();
                bytes += partition.size();
                *states.entry(state(marks.state)).or_default() += 1;
                let offsets = [marks.log_start, marks.log_end, marks.high_watermark];
                of_partition(&topic.name, index, offsets.map(number));
            }
            gauge!("highwater_log_bytes", "topic" => topic.name).set(bytes as f64);
        }
        for (state, count) in states {
            gauge!("highwater_log_partitions", "state" => state.to_owned()).set(count);
        }
        gauge!("highwater_log_held_bytes").set(self.log.held_bytes() as f64);
        gauge!("highwater_log_limit_bytes").set(self.log.limit_bytes().unwrap_or(0) as f64);
        if let Ok(space) = machine::space(&self.data_dir) {
            gauge!("highwater_log_volume_free_bytes").set(space.free as f64);
            gauge!("highwater_log_volume_size_bytes").set(space.total as f64);
        }
    }

    /// Ends the series of topics that are there no more.
    fn forget(&self, there: BTreeMap<String, i32>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for (topic, partitions) in shown.iter().filter(|(topic, _)| !there.contains_key(*topic)) {
            for index in 0..*partitions {
                of_partition(topic, index, [f64::NAN; 3]);
            }
            gauge!("highwater_log_bytes", "topic" => topic.clone()).set(f64::NAN);
        }
        *shown = there;
    }
}

fn of_partition(topic: &str, index: i32, offsets: [f64; 3]) {
    let names =
        ["highwater_log_start_offset", "highwater_log_end_offset", "highwater_log_high_watermark"];
    let labels = [("topic", topic.to_owned()), ("partition", index.to_string())];
    for (name, offset) in names.into_iter().zip(offsets) {
        gauge!(name, &labels).set(offset);
    }
}

/// What was recorded, in Prometheus' text format. The recorder forgets no series: those of
/// connectors and topics that are gone were set to NaN, and are left out.
pub(crate) fn text(recorded: &PrometheusHandle) -> String {
    without_ended(&recorded.render())
}

fn without_ended(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.trim_end().ends_with(" NaN")).collect()
}

const fn state(state: PartitionState) -> &'static str {
    match state {
        PartitionState::Online => "online",
        PartitionState::Poisoned => "poisoned",
        PartitionState::Offline | PartitionState::Gone => "offline",
    }
}

/// Prometheus' numbers are floats; offsets are exact up to 2^53.
const fn number(offset: i64) -> f64 {
    offset as f64
}

/// Looks at the process; what the system does not say is left as it was.
pub(crate) fn of_process() {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    gauge!("process_open_fds").set(number(i64::try_from(open).unwrap_or(i64::MAX)));
    gauge!("process_max_fds").set(OpenFiles::granted().limit() as f64);
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    if let Some(bytes) = resident(&read("/proc/self/status")) {
        gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
    if let Some(seconds) = cpu_seconds(&read("/proc/self/stat")) {
        gauge!("process_cpu_seconds_total").set(seconds);
    }
}

/// `VmRSS` of proc_pid_status(5), which is in kB.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// `utime` and `stime` of proc_pid_stat(5), the 12th and 13th field behind the name in parentheses,
/// in ticks of which Linux shows 100 a second on every architecture in use.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<f64>);
    Some((ticks.next()?.ok()? + ticks.next()?.ok()?) / 100.0)
}

fn now_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn series_that_ended_are_left_out() {
        let text = "# TYPE a gauge\na{topic=\"x NaN\"} 1\na{topic=\"y\"} NaN\n\nb 2\n";
        assert_eq!(without_ended(text), "# TYPE a gauge\na{topic=\"x NaN\"} 1\n\nb 2\n");
    }

    #[test]
    fn a_topic_that_was_deleted_is_shown_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let fs = Arc::new(highwater_log::RealFileSystem);
        let log = Log::open(fs, folder.path(), highwater_log::LogConfig::default()).unwrap();
        for topic in ["kept", "gone"] {
            log.create_topic(topic, 2, highwater_log::TopicConfig::default()).unwrap();
        }
        let measures = LogMeasures::new(log.clone(), folder.path().to_owned());
        let recorder = PrometheusBuilder::new().build_recorder();
        let scrape = || {
            metrics::with_local_recorder(&recorder, || measures.take());
            text(&recorder.handle())
        };
        assert_eq!(scrape().matches("topic=\"gone\"").count(), 7);
        log.delete_topic("gone").unwrap();
        let left = scrape();
        assert_eq!(left.matches("topic=\"gone\"").count(), 0, "{left}");
        assert_eq!(left.matches("topic=\"kept\"").count(), 7, "{left}");
        log.create_topic("gone", 1, highwater_log::TopicConfig::default()).unwrap();
        assert_eq!(scrape().matches("topic=\"gone\"").count(), 4);
    }

    #[test]
    fn what_the_system_says_of_the_process_is_read() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t    12 kB\n"), Some(12 * 1024));
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!((resident(""), cpu_seconds("")), (None, None));
        assert!(cpu_seconds(&std::fs::read_to_string("/proc/self/stat").unwrap()).is_some());
    }
}
