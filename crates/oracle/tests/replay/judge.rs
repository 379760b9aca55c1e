//! Holds what was delivered against the books of the database.

use std::collections::{BTreeMap, HashSet};

use highwater_connector::SourceRecord;
use highwater_oracle::{Code, OracleError, Verb};
use highwater_oracle_sim::{CommittedChange, Quirk, RowImage};
use serde_json::Value;

use crate::life::{Plan, Restart, Run};
use crate::settings;

/// A change by its place: lane, position of its commit, index.
type Identity = (String, String, u64);

/// What is wrong with a run, if anything is.
pub(crate) fn judge(run: &Run, plan: &Plan) -> Result<(), String> {
    judge_lanes(run, plan).map_err(|wrong| format!("{wrong}\n  {}", books(run)))
}

/// The commits of the books, for a person.
fn books(run: &Run) -> String {
    let commits = run.simulation.history().into_iter().flat_map(|history| history.transactions);
    let commits = commits.map(|it| {
        let address = it.commit.address.map(|address| address.to_string()).unwrap_or_default();
        format!(
            "{} {} scn {} at {address}, {} changes",
            it.commit.thread,
            it.key,
            it.commit.scn,
            it.changes.len()
        )
    });
    let commits: Vec<_> = commits.take(120).collect();
    format!(
        "before {:?}, starts {:?}, commits:\n  {}",
        run.before,
        run.starts,
        commits.join("\n  ")
    )
}

/// Whether an engine may stop for good: where redo is not known to be of a captured table, or not in
/// which layout. What it delivered before is judged all the same.
fn may_stop(failure: &OracleError, plan: &Plan) -> bool {
    let has_definitions =
        [Quirk::Partitions, Quirk::Ddl].iter().any(|quirk| plan.settings.quirks.contains(quirk));
    // A column that was added and dropped again before either DDL was read leaves no version.
    let is_unseen_column = failure.code == Code::Decode && failure.what.contains("names column");
    has_definitions && (failure.code == Code::DictionaryUnavailable || is_unseen_column)
}

fn judge_lanes(run: &Run, plan: &Plan) -> Result<(), String> {
    if let Some(failure) = run.failure.as_ref().filter(|failure| !may_stop(failure, plan)) {
        return Err(format!("the engine failed: {failure}"));
    }
    repeats(run)?;
    for (lane, delivered) in delivered(run) {
        let thread: u32 = lane.parse().map_err(|_| format!("lane {lane} is no thread"))?;
        let expected = expected(run, thread);
        compare(thread, &delivered, &expected)?;
        if run.failure.is_none() {
            same_length(thread, &delivered, &expected)?;
        }
    }
    if run.failure.is_some() {
        return Ok(());
    }
    let lanes = delivered(run);
    for history in run.simulation.history() {
        let is_empty = expected(run, history.thread.0).is_empty();
        if !is_empty && !lanes.contains_key(&history.thread.to_string()) {
            return Err(format!("nothing of thread {} was delivered", history.thread));
        }
    }
    Ok(())
}

/// Changes of rows in the order in which each came first, by lane.
fn delivered(run: &Run) -> BTreeMap<String, Vec<&SourceRecord>> {
    let mut seen = HashSet::new();
    let mut lanes: BTreeMap<String, Vec<&SourceRecord>> = BTreeMap::new();
    for record in &run.log {
        let Some(identity) = identity(record) else { continue };
        if seen.insert(identity.clone()) && is_row(record) {
            lanes.entry(identity.0).or_default().push(record);
        }
    }
    lanes
}

fn identity(record: &SourceRecord) -> Option<Identity> {
    let hw = record.hw.as_ref()?;
    // A commit without an address is in no lane; its thread is told all the same.
    let thread = || value(record)["source"]["redo_thread"].to_string();
    let lane = hw.lane.clone().unwrap_or_else(thread);
    Some((lane, format!("{} {:?}", hw.position, hw.xid), hw.index))
}

fn is_row(record: &SourceRecord) -> bool {
    matches!(value(record)["op"].as_str(), Some("c" | "u" | "d"))
}

fn value(record: &SourceRecord) -> Value {
    record.value.as_ref().map_or(Value::Null, |value| serde_json::from_slice(value).unwrap())
}

/// Nothing that a start's position covers comes again.
fn repeats(run: &Run) -> Result<(), String> {
    for (nth, Restart { covered, begins }) in run.starts.iter().enumerate() {
        let stored = covered.iter().cloned().flatten().filter_map(|at| identity(run.log.get(at)?));
        let stored: HashSet<_> = stored.collect();
        let ends = run.starts.get(nth + 1).map_or(run.log.len(), |next| next.begins);
        for record in run.log.get(*begins..ends).unwrap_or_default() {
            if let Some(again) = identity(record).filter(|identity| stored.contains(identity)) {
                let value = value(record);
                return Err(format!(
                    "start {nth} covers {covered:?}, and brings again {again:?}: {value}"
                ));
            }
        }
    }
    Ok(())
}

fn expected(run: &Run, thread: u32) -> Vec<CommittedChange> {
    let history = run.simulation.history();
    let mut transactions: Vec<_> = history
        .into_iter()
        .zip(&run.before)
        .filter(|(history, _)| history.thread.0 == thread)
        .flat_map(|(history, before)| history.transactions.into_iter().skip(*before))
        // The present SCN may still get redo, so that no step reads it.
        .filter(|transaction| transaction.commit.scn < run.simulation.scn())
        .collect();
    let changes =
        transactions.iter_mut().map(|transaction| std::mem::take(&mut transaction.changes));
    changes.flatten().collect()
}

fn compare(
    thread: u32,
    delivered: &[&SourceRecord],
    expected: &[CommittedChange],
) -> Result<(), String> {
    for (at, (record, change)) in delivered.iter().zip(expected).enumerate() {
        same(record, change).map_err(|wrong| {
            let hw = record.hw.as_ref().unwrap();
            format!(
                "change {at} of thread {thread}, at {} {}: {wrong}\n  expected {change:?}\n  came {}",
                hw.position,
                hw.index,
                value(record)
            )
        })?;
    }
    let more = delivered.get(expected.len()).map(|record| value(record));
    more.map_or(Ok(()), |more| Err(format!("thread {thread} delivered more than there is: {more}")))
}

fn same_length(
    thread: u32,
    delivered: &[&SourceRecord],
    expected: &[CommittedChange],
) -> Result<(), String> {
    if delivered.len() != expected.len() {
        let next = expected.get(delivered.len());
        return Err(format!(
            "thread {thread} delivered {} changes, and {} were committed; next {next:?}",
            delivered.len(),
            expected.len()
        ));
    }
    Ok(())
}

fn same(record: &SourceRecord, change: &CommittedChange) -> Result<(), String> {
    let came = value(record);
    let op = match change.verb {
        Verb::Insert => "c",
        Verb::Update => "u",
        Verb::Delete => "d",
    };
    if came["op"] != op || came["source"]["table"] != *change.table.table {
        return Err("another row".to_owned());
    }
    image(&came["before"], change.before.as_ref()).map_err(|wrong| format!("before: {wrong}"))?;
    image(&came["after"], change.after.as_ref()).map_err(|wrong| format!("after: {wrong}"))
}

fn image(came: &Value, expected: Option<&RowImage>) -> Result<(), String> {
    let Some(expected) = expected else {
        return if came.is_null() { Ok(()) } else { Err("there is one".to_owned()) };
    };
    for (column, text) in expected {
        let value = came.get(column).ok_or_else(|| format!("column {column} is absent"))?;
        let is_same = match (value, text) {
            (Value::Null, None) => true,
            (Value::String(value), Some(text)) => is_same_text(value, text),
            (Value::Number(value), Some(text)) => is_same_number(&value.to_string(), text),
            _ => false,
        };
        if !is_same {
            return Err(format!("column {column} is {value}, not {text:?}"));
        }
    }
    // A large object whose value the redo does not tell is shown by a word in its place.
    let is_told = |(column, value): &(&String, &Value)| {
        expected.contains_key(*column)
            || (*value != settings::UNAVAILABLE && *value != settings::UNAVAILABLE_BYTES)
    };
    let told = came.as_object().map_or(0, |came| came.iter().filter(is_told).count());
    if told == expected.len() { Ok(()) } else { Err(format!("it has {told} columns")) }
}

/// Forms of times and bytes are the business of other tests. Here text is the same, or the numbers in it
/// are, but for zeros at their ends; of bytes it is enough that there are some.
fn is_same_text(value: &str, text: &str) -> bool {
    let is_form = |text: &str| text.contains([':', '-', '+']);
    let is_bytes = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    value == text
        || (is_form(text) && numbers(value).eq(numbers(text)))
        || (is_bytes && !value.is_empty())
        || is_same_number(value, text)
}

fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    numbers.map(|number| number.trim_matches('0')).filter(|number| !number.is_empty())
}

fn is_same_number(value: &str, text: &str) -> bool {
    value.parse::<f64>().ok().zip(text.parse::<f64>().ok()).is_some_and(|(a, b)| a == b)
}
