//! The metrics reference: its table is written from what the parts tell the recorder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::measures;
use crate::reference::{holds, with_section};

/// Keeps the descriptions: kind and meaning, by name.
#[derive(Default)]
struct Described(Mutex<BTreeMap<String, (&'static str, String)>>);

impl Described {
    fn note(&self, kind: &'static str, name: &KeyName, meaning: &SharedString) {
        let entry = (kind, meaning.to_string());
        let before = self.0.lock().unwrap().insert(name.as_str().to_owned(), entry);
        assert!(before.is_none(), "{} is described twice", name.as_str());
    }
}

impl Recorder for Described {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.note("counter", &name, &meaning);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.note("gauge", &name, &meaning);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.note("histogram", &name, &meaning);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// A metric as the reference has it.
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) meaning: String,
}

/// All of them, in the order of their names.
pub(crate) fn described() -> Vec<Metric> {
    let described = Described::default();
    metrics::with_local_recorder(&described, measures::describe);
    let all = described.0.into_inner().unwrap().into_iter();
    all.map(|(name, (kind, meaning))| Metric { name, kind, meaning }).collect()
}

#[test]
fn the_metrics_reference_says_what_the_code_says() {
    let rows: String = described()
        .iter()
        .map(|Metric { name, kind, meaning }| format!("| `{name}` | {kind} | {meaning} |\n"))
        .collect();
    let table = format!("| metric | kind | meaning |\n|---|---|---|\n{rows}");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    holds(&path, &with_section(&page, "metrics", &table));
}
