//! The dashboard for Grafana names what the metrics reference names, and nothing else.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::metrics_reference::Metric;

/// Labels that a scrape adds.
const OF_THE_SCRAPE: [&str; 2] = ["job", "instance"];

/// What a histogram's series add to its name.
const PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];

fn dashboard() -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../packaging/grafana/highwater.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What an expression or a legend names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Named {
    metrics: BTreeSet<String>,
    labels: BTreeSet<String>,
}

/// The words of an expression outside of its texts, each with what stands before and behind it.
fn words(expression: &str) -> Vec<(String, String, String)> {
    let outside: String =
        expression.split('"').step_by(2).collect::<Vec<_>>().join("\u{1}").replace("[$", "[");
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut words = Vec::new();
    let mut rest = outside.as_str();
    let mut before = String::new();
    while let Some(begin) = rest.find(is_word) {
        let gap = &rest[..begin];
        rest = &rest[begin..];
        let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        before.push_str(gap.trim());
        words.push((word.to_owned(), std::mem::take(&mut before), behind.trim().to_owned()));
        rest = behind;
        before.clear();
    }
    words
}

fn named(expression: &str) -> Named {
    let mut named = Named::default();
    let mut in_by = false;
    for (word, before, behind) in words(expression) {
        in_by = if before.contains(')') { false } else { in_by };
        let is_metric = word.starts_with("highwater_") || word.starts_with("process_");
        let matches = ["=", "!"].iter().any(|operator| behind.starts_with(operator));
        if is_metric {
            named.metrics.insert(word);
        } else if in_by || (matches && (before.ends_with('{') || before.ends_with(','))) {
            named.labels.insert(word);
        } else if word == "by" {
            in_by = true;
        }
    }
    named
}

/// The labels in `{{label}}` of a legend.
fn in_legend(legend: &str) -> BTreeSet<String> {
    let pieces = legend.split("{{").skip(1).filter_map(|piece| piece.split_once("}}"));
    pieces.map(|(label, _)| label.trim().to_owned()).collect()
}

fn metric<'a>(all: &'a [Metric], name: &str) -> Option<&'a Metric> {
    all.iter().find(|metric| {
        let part = name.strip_prefix(metric.name.as_str());
        part == Some("")
            || (metric.kind == "histogram" && part.is_some_and(|part| PARTS.contains(&part)))
    })
}

/// What is wrong with the names of one target.
fn problems(all: &[Metric], expression: &str, legend: &str) -> Vec<String> {
    let Named { metrics, mut labels } = named(expression);
    labels.extend(in_legend(legend));
    let known: Vec<_> = metrics.iter().map(|name| (name, metric(all, name))).collect();
    let unknown = known.iter().filter(|(_, known)| known.is_none());
    let mut problems: Vec<String> = unknown.map(|(name, _)| format!("metric {name}")).collect();
    let has = |label: &str| {
        let known = known.iter().filter_map(|(_, known)| *known);
        OF_THE_SCRAPE.contains(&label)
            || known.into_iter().any(|metric| match label {
                "le" => metric.kind == "histogram",
                label => metric.meaning.split(|c: char| !c.is_alphanumeric()).any(|w| w == label),
            })
    };
    problems
        .extend(labels.iter().filter(|label| !has(label)).map(|label| format!("label {label}")));
    problems
}

#[test]
fn names_are_found_in_expressions() {
    let found = named(
        "sum by (connector, le) (rate(highwater_x_bucket{job=~\"a{b=1}\",state!=\"c\"}[$__rate_interval]))",
    );
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(found.metrics, set(&["highwater_x_bucket"]));
    assert_eq!(found.labels, set(&["connector", "le", "job", "state"]));
    assert_eq!(in_legend("{{connector}} of {{ task }}"), set(&["connector", "task"]));
}

#[test]
fn a_name_that_is_not_in_the_reference_is_told() {
    let all = crate::metrics_reference::described();
    let fine = "rate(highwater_task_commit_seconds_bucket{connector=\"a\"}[5m])";
    assert_eq!(problems(&all, fine, "{{le}} {{task}}"), Vec::<String>::new());
    assert_eq!(
        problems(&all, "highwater_task_failures_total{topic=\"a\"} + highwater_nothing", "{{le}}"),
        ["metric highwater_nothing", "label le", "label topic"]
    );
    assert_eq!(problems(&all, "highwater_task_failures_total_bucket", "").len(), 1);
}

#[test]
fn the_dashboard_names_only_what_the_reference_names() {
    let all = crate::metrics_reference::described();
    let board = dashboard();
    let panels = board["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut seen = 0;
    for target in targets {
        let text = |key: &str| target[key].as_str().unwrap();
        let (expression, legend) = (text("expr"), text("legendFormat"));
        assert!(!named(expression).metrics.is_empty(), "{expression}");
        assert_eq!(problems(&all, expression, legend), Vec::<String>::new(), "{expression}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
    for variable in board["templating"]["list"].as_array().unwrap() {
        let query = variable["definition"].as_str().unwrap_or_default();
        assert_eq!(problems(&all, query, ""), Vec::<String>::new(), "{query}");
    }
}

/// What Grafana needs to take a dashboard.
#[test]
fn the_dashboard_has_the_form_of_one() {
    let board = dashboard();
    assert!(board["id"].is_null(), "an id is the importing server's to give");
    assert!(board["uid"].is_string() && board["title"].is_string());
    assert!(board["schemaVersion"].as_u64() >= Some(36));
    let variables = board["templating"]["list"].as_array().unwrap();
    let variables: BTreeSet<_> =
        variables.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(variables, ["connector", "datasource", "job"].into());
    let panels = board["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "an id is given twice");
    let mut taken = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{title} is wider than the grid");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{title} lies over another");
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(["timeseries", "stat"].contains(&panel["type"].as_str().unwrap()), "{title}");
        let targets = panel["targets"].as_array().unwrap();
        let of = |target: &Value| target["refId"].as_str().unwrap().to_owned();
        assert_eq!(targets.iter().map(of).collect::<BTreeSet<_>>().len(), targets.len(), "{title}");
        for one in targets.iter().chain([panel]) {
            let source = &one["datasource"];
            assert_eq!(
                (&source["type"], &source["uid"]),
                (&"prometheus".into(), &"${datasource}".into())
            );
        }
    }
}
