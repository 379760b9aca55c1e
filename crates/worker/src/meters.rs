//! The meters of all tasks, and their text for Prometheus. The series of a task end with it, which
//! no recorder of the `metrics` facade offers; their number is bounded by that of the tasks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use metrics::{describe_counter, describe_gauge, describe_histogram};
use parking_lot::Mutex;

use crate::meter::{COMMIT_BOUNDS, TaskMeter};

/// A task: its connector's name and its id.
type TaskName = (String, u32);

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Meters(Mutex<BTreeMap<TaskName, Arc<TaskMeter>>>);

impl Meters {
    /// The meter of a task, which is shown until [`Self::end`].
    pub(crate) fn begin(&self, connector: &str, task: u32) -> Arc<TaskMeter> {
        let meter = Arc::default();
        self.0.lock().insert((connector.to_owned(), task), Arc::clone(&meter));
        meter
    }

    /// The meter of a task that is kept.
    pub(crate) fn of(&self, connector: &str, task: u32) -> Option<Arc<TaskMeter>> {
        self.0.lock().get(&(connector.to_owned(), task)).cloned()
    }

    /// The task is gone. One that took its place keeps its own meter.
    pub(crate) fn end(&self, connector: &str, task: u32, meter: &Arc<TaskMeter>) {
        let name = (connector.to_owned(), task);
        let mut kept = self.0.lock();
        if kept.get(&name).is_some_and(|kept| Arc::ptr_eq(kept, meter)) {
            kept.remove(&name);
        }
    }

    /// All series, in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let kept: Vec<_> = self
            .0
            .lock()
            .iter()
            .map(|((connector, task), meter)| (labels(connector, *task), Arc::clone(meter)))
            .collect();
        let mut text = String::new();
        for family in &FAMILIES {
            family.write(&kept, &mut text);
        }
        text
    }
}

fn labels(connector: &str, task: u32) -> String {
    let connector = connector.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("connector=\"{connector}\",task=\"{task}\"")
}

/// What a series shows of a task.
enum Shows {
    Counter(fn(&TaskMeter) -> u64),
    /// Of sources alone.
    SourceCounter(fn(&TaskMeter) -> u64),
    /// Of sinks alone.
    SinkCounter(fn(&TaskMeter) -> u64),
    /// Left out while it is not known.
    Gauge(fn(&TaskMeter) -> Option<f64>),
    /// The times of commits.
    Commits,
}

impl Shows {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Counter(_) | Self::SourceCounter(_) | Self::SinkCounter(_) => "counter",
            Self::Gauge(_) => "gauge",
            Self::Commits => "histogram",
        }
    }

    fn write(&self, name: &str, labels: &str, meter: &TaskMeter, text: &mut String) {
        let is_sink = meter.is_sink.load(Ordering::Relaxed);
        let value = match self {
            Self::SourceCounter(_) if is_sink => None,
            Self::SinkCounter(_) if !is_sink => None,
            Self::Counter(of) | Self::SourceCounter(of) | Self::SinkCounter(of) => {
                Some(of(meter).to_string())
            }
            Self::Gauge(of) => of(meter).map(|level| level.to_string()),
            Self::Commits => {
                write_commits(name, labels, meter, text);
                None
            }
        };
        if let Some(value) = value {
            // Writing to a text does not fail.
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
    }
}

fn write_commits(name: &str, labels: &str, meter: &TaskMeter, text: &mut String) {
    let up_to_each = meter.commits.up_to_each();
    let bounds = COMMIT_BOUNDS.iter().map(|bound| format!("{}", *bound as f64 / 1e3));
    for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(up_to_each) {
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
    }
    let _ = writeln!(text, "{name}_sum{{{labels}}} {}", meter.commits.seconds());
    let _ = writeln!(text, "{name}_count{{{labels}}} {}", up_to_each[COMMIT_BOUNDS.len()]);
}

/// A name, what it shows, and what that means.
struct Family(&'static str, Shows, &'static str);

impl Family {
    fn write(&self, kept: &[(String, Arc<TaskMeter>)], text: &mut String) {
        let Self(name, shows, meaning) = self;
        let mut series = String::new();
        for (labels, meter) in kept {
            shows.write(name, labels, meter, &mut series);
        }
        if !series.is_empty() {
            let kind = shows.kind();
            let _ = writeln!(text, "# HELP {name} {meaning}\n# TYPE {name} {kind}\n{series}");
        }
    }
}

fn seconds(millis: Option<i64>) -> Option<f64> {
    millis.map(|millis| millis as f64 / 1e3)
}

use Shows::{Commits, Counter, Gauge, SinkCounter, SourceCounter};

const FAMILIES: [Family; 20] = [
    Family(
        "highwater_source_records_total",
        SourceCounter(|meter| meter.records.get()),
        "Records of a source that the log has acknowledged, by connector and task",
    ),
    Family(
        "highwater_source_bytes_total",
        SourceCounter(|meter| meter.bytes.get()),
        "Bytes of keys, values and headers that a source's task has sent to the log, by connector and task",
    ),
    Family(
        "highwater_source_batches_total",
        SourceCounter(|meter| meter.batches.get()),
        "Polls of a source that brought records, by connector and task",
    ),
    Family(
        "highwater_sink_records_total",
        SinkCounter(|meter| meter.records.get()),
        "Records that a sink has accepted, those among them that it reported as bad, by connector and task",
    ),
    Family(
        "highwater_sink_bytes_total",
        SinkCounter(|meter| meter.bytes.get()),
        "Bytes of keys, values and headers that a sink has accepted, by connector and task",
    ),
    Family(
        "highwater_sink_batches_total",
        SinkCounter(|meter| meter.batches.get()),
        "Times that a sink has accepted records that it was given, by connector and task",
    ),
    Family(
        "highwater_sink_lag_records",
        Gauge(|meter| meter.lag_records.get().map(|records| records as f64)),
        "Offsets between what a sink has accepted and the end of its partitions, by connector and task; not shown while it is not known",
    ),
    Family(
        "highwater_task_lag_seconds",
        Gauge(|meter| seconds(meter.lag.get())),
        "Of a source: from the commit at the source to the log's acknowledgement, of the newest record whose commit time is known. Of a sink: age of the oldest record that was read and that it has not accepted, 0 where none waits. By connector and task; not shown while it is not known",
    ),
    Family(
        "highwater_task_last_record_time_seconds",
        Gauge(|meter| seconds(meter.last_record.get())),
        "When the log acknowledged a record of a source, or a sink accepted one, last, as Unix time, by connector and task; not shown before the first",
    ),
    Family(
        "highwater_task_turn_time_seconds",
        Gauge(|meter| seconds(meter.turned.get())),
        "When the loop of a task that runs came round last, as Unix time, by connector and task: it does several times a second, with or without records",
    ),
    Family(
        "highwater_task_commit_seconds",
        Commits,
        "Time that storing an offset took, of a source with its transaction, of a sink with what it says is durable, by connector and task",
    ),
    Family(
        "highwater_task_commit_failures_total",
        Counter(|meter| meter.commit_failures.get()),
        "Offsets that could not be stored, by connector and task",
    ),
    Family(
        "highwater_task_failures_total",
        Counter(|meter| meter.failures.get()),
        "Times that a task ended with an error, tried again or not, by connector and task",
    ),
    Family(
        "highwater_task_retries_total",
        Counter(|meter| meter.retries.get()),
        "Operations on records that failed and were tried again, by connector and task",
    ),
    Family(
        "highwater_task_record_failures_total",
        Counter(|meter| meter.record_failures.get()),
        "Records, or batches of a sink, that could not be handled, by connector and task; those skipped are among them",
    ),
    Family(
        "highwater_source_records_skipped_total",
        SourceCounter(|meter| meter.skipped.get()),
        "Bad records that a source's task went on without, by connector and task",
    ),
    Family(
        "highwater_sink_records_skipped_total",
        SinkCounter(|meter| meter.skipped.get()),
        "Bad records that a sink went on without, by connector and task",
    ),
    Family(
        "highwater_sink_dead_letters_total",
        SinkCounter(|meter| meter.dead_letters.get()),
        "Bad records of a sink that were sent to its dead-letter topic, by connector and task",
    ),
    Family(
        "highwater_sink_dead_letter_failures_total",
        SinkCounter(|meter| meter.dead_letter_failures.get()),
        "Times that the dead-letter topic did not take what was sent, by connector and task",
    ),
    Family(
        "highwater_sink_moves_total",
        SinkCounter(|meter| meter.moves.get()),
        "Times that the log no longer had where a sink was to read on, by connector and task",
    ),
];

/// Tells the recorder what the numbers mean.
pub(crate) fn describe() {
    for Family(name, shows, meaning) in &FAMILIES {
        match shows {
            Counter(_) | SourceCounter(_) | SinkCounter(_) => describe_counter!(*name, *meaning),
            Gauge(_) => describe_gauge!(*name, *meaning),
            Commits => describe_histogram!(*name, *meaning),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_series_of_a_task_end_with_it() {
        let meters = Meters::default();
        assert_eq!(meters.text(), "");
        let (one, other) = (meters.begin("a", 0), meters.begin("a", 1));
        one.moved_on(3);
        other.is_sink.store(true, Ordering::Relaxed);
        other.lag_records.set(Some(7));
        let text = meters.text();
        for line in [
            "# TYPE highwater_source_records_total counter",
            "highwater_source_records_total{connector=\"a\",task=\"0\"} 3",
            "highwater_sink_records_total{connector=\"a\",task=\"1\"} 0",
            "highwater_sink_lag_records{connector=\"a\",task=\"1\"} 7",
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line} is not in {text}");
        }
        assert!(!text.contains("highwater_sink_records_total{connector=\"a\",task=\"0\""));
        meters.end("a", 0, &one);
        assert!(!meters.text().contains("task=\"0\""));
        let next = meters.begin("a", 1);
        meters.end("a", 1, &other);
        assert!(meters.text().contains("task=\"1\""), "it is another's by now");
        meters.end("a", 1, &next);
        assert_eq!(meters.text(), "");
    }

    #[test]
    fn a_name_breaks_no_line() {
        let meters = Meters::default();
        let _meter = meters.begin("a\"b\\c\nd", 0);
        let label = "{connector=\"a\\\"b\\\\c\\nd\",task=\"0\"}";
        assert!(meters.text().contains(&format!("highwater_task_failures_total{label} 0\n")));
    }

    #[test]
    fn a_histogram_is_cumulative_and_whole() {
        let meters = Meters::default();
        let meter = meters.begin("a", 0);
        meter.commits.took(Duration::from_millis(3));
        meter.commits.took(Duration::from_mins(1));
        let text = meters.text();
        for line in [
            "highwater_task_commit_seconds_bucket{connector=\"a\",task=\"0\",le=\"0.001\"} 0",
            "highwater_task_commit_seconds_bucket{connector=\"a\",task=\"0\",le=\"0.005\"} 1",
            "highwater_task_commit_seconds_bucket{connector=\"a\",task=\"0\",le=\"+Inf\"} 2",
            "highwater_task_commit_seconds_sum{connector=\"a\",task=\"0\"} 60.003",
            "highwater_task_commit_seconds_count{connector=\"a\",task=\"0\"} 2",
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line} is not in {text}");
        }
    }
}
