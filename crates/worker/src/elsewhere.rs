//! What this worker knows of parts that others run: what they have said last, and whether they are there.

use highwater_connector::{Finding, Severity};
use serde_json::{Map, Value, json};

use crate::checkup::NOT_RUNNING;
use crate::scrub::Scrub;
use crate::status::State;
use crate::statuses::StoredStatus;
use crate::trace::{self, Told};
use crate::undone::Undone;

/// Where another worker is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whereabouts {
    /// In the group, reached at this URL.
    At(String),
    /// In the group no more, or never.
    Gone,
    /// Nobody has said who is in the group.
    Unknown,
}

/// A part of another worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Elsewhere {
    /// What was said of it last.
    pub(crate) said: StoredStatus,
    /// Where who said it is.
    pub(crate) worker: Whereabouts,
}

/// Of a part that has said no more than its state.
const KNOWN_THERE: &str = "What it does is known to its worker";

impl Elsewhere {
    /// What Kafka Connect shows of it, and ours.
    pub(crate) fn json(&self) -> Map<String, Value> {
        let StoredStatus { state, trace, worker_id, version, .. } = &self.said;
        let mut object = Map::new();
        object.insert("state".to_owned(), json!(state.name()));
        object.insert("worker_id".to_owned(), json!(worker_id));
        object.extend(trace.as_ref().map(|trace| ("trace".to_owned(), json!(trace))));
        object.extend(version.as_ref().map(|version| ("version".to_owned(), json!(version))));
        let mut ours = json!({ "activity": self.activity() });
        if let Some(told) = self.told() {
            ours["error"] = told.json();
        }
        object.insert("highwater".to_owned(), ours);
        object
    }

    /// The error that its worker has told.
    fn told(&self) -> Option<Told> {
        trace::told(self.said.trace.as_deref()?)
    }

    /// What is wrong: what happened, where its worker is one of ours, or the first line of what it says.
    fn what(&self) -> Option<String> {
        self.told().map(|told| told.what).or_else(|| self.headline())
    }

    /// The first line of what its worker says.
    fn headline(&self) -> Option<String> {
        Some(trace::headline(self.said.trace.as_deref()?))
    }

    /// One sentence: what is wrong with it, or who knows what it does.
    pub(crate) fn activity(&self) -> String {
        let id = &self.said.worker_id;
        match (&self.worker, self.what()) {
            (Whereabouts::Gone, _) => {
                format!("{id}, which had it, is in the group no more: another takes it over")
            }
            (_, Some(what)) => what,
            (Whereabouts::At(url), None) => format!("{KNOWN_THERE} (ask {id} with --url {url})"),
            (Whereabouts::Unknown, None) => format!("{KNOWN_THERE} (ask {id})"),
        }
    }

    /// What an operator should know of it. `scrub` takes the connector's secrets out of what a worker
    /// wrote that does not do so itself.
    pub(crate) fn finding(&self, group: &str, scrub: &Scrub, undone: Undone) -> Option<Finding> {
        let StoredStatus { state, worker_id, .. } = &self.said;
        if self.worker == Whereabouts::Gone {
            return Some(self.gone(group, scrub));
        }
        let told = self.told().unwrap_or_else(|| self.untold(scrub));
        let Told { code, what, kept, remedy } = told;
        match state {
            State::Failed => Some(Finding::new(
                Severity::Error,
                code,
                format!("on {worker_id}: {what}"),
                format!("{}; kept: {kept}", undone.failed),
                remedy,
            )),
            State::Restarting => Some(Finding::new(
                Severity::Warning,
                code,
                format!("on {worker_id} it is tried again: {what}"),
                undone.retried,
                remedy,
            )),
            State::Paused | State::Stopped => Some(Finding::new(
                Severity::Warning,
                NOT_RUNNING,
                format!("it is {}, as {worker_id} has said", state.name().to_lowercase()),
                undone.at_rest,
                format!("highwater connector resume {}", highwater_connector::CONNECTOR_NAME),
            )),
            State::Unassigned | State::Running => None,
        }
    }

    /// An error without the parts that ours have.
    fn untold(&self, scrub: &Scrub) -> Told {
        let headline = self.headline().unwrap_or_else(|| "it has not said why".to_owned());
        Told {
            code: "TASK_FAILED_ELSEWHERE".to_owned(),
            what: scrub.text(&headline),
            kept: "the stored position and everything already in the log".to_owned(),
            remedy: format!(
                "see to what it says, then highwater connector restart {}",
                highwater_connector::CONNECTOR_NAME
            ),
        }
    }

    fn gone(&self, group: &str, scrub: &Scrub) -> Finding {
        let StoredStatus { state, worker_id, .. } = &self.said;
        let why = self.headline().map(|headline| format!(": {}", scrub.text(&headline)));
        Finding::new(
            Severity::Warning,
            "WORKER_GONE",
            format!(
                "{worker_id}, which had it, is no member of group {group} any more; it said last {}{}",
                state.name(),
                why.unwrap_or_default()
            ),
            "it is run by nobody until another server has taken it over",
            "nothing yet: the others take it over by themselves; if that lasts, see their log lines",
        )
    }
}

#[cfg(test)]
mod tests {
    use highwater_connector::{ConnectorError, ErrorKind};

    use super::*;
    use crate::status::Seen;

    const JAVA: &str = "org.apache.kafka.connect.errors.ConnectException: no login with s3cret word\n\tat a.B.c(D.java:1)";

    fn at() -> Whereabouts {
        Whereabouts::At("https://w2.example:8083".to_owned())
    }

    fn part(state: State, trace: Option<&str>, worker: Whereabouts) -> Elsewhere {
        let said = StoredStatus {
            state,
            trace: trace.map(str::to_owned),
            worker_id: "w2.example:8083".to_owned(),
            generation: 3,
            version: None,
        };
        Elsewhere { said, worker }
    }

    fn ours() -> String {
        ConnectorError::stop("X_1", ErrorKind::Data, "a row is odd", "mend it").to_string()
    }

    fn found(part: &Elsewhere) -> Option<(String, Severity, String)> {
        let finding = part.finding("g", &Scrub::of(["s3cret".to_owned()]), Undone::BY_SOURCE)?;
        Some((finding.code.into_owned(), finding.severity, finding.what))
    }

    #[test]
    fn an_error_of_another_worker_is_found_under_its_code_and_names_the_worker() {
        let failed = part(State::Failed, Some(&ours()), at());
        let (code, severity, what) = found(&failed).unwrap();
        assert_eq!((code.as_str(), severity), ("X_1", Severity::Error));
        assert_eq!(what, "on w2.example:8083: a row is odd");
        let (code, severity, what) = found(&part(State::Restarting, Some(&ours()), at())).unwrap();
        assert_eq!((code.as_str(), severity), ("X_1", Severity::Warning));
        assert_eq!(what, "on w2.example:8083 it is tried again: a row is odd");
        let (code, _, what) = found(&part(State::Paused, None, at())).unwrap();
        assert_eq!(
            (code.as_str(), what.as_str()),
            (NOT_RUNNING, "it is paused, as w2.example:8083 has said")
        );
        assert_eq!(found(&part(State::Running, None, at())), None);
    }

    #[test]
    fn of_an_exception_the_first_line_is_told_without_secrets() {
        let (code, severity, what) = found(&part(State::Failed, Some(JAVA), at())).unwrap();
        assert_eq!((code.as_str(), severity), ("TASK_FAILED_ELSEWHERE", Severity::Error));
        assert_eq!(
            what,
            "on w2.example:8083: org.apache.kafka.connect.errors.ConnectException: no login with ******** word"
        );
    }

    #[test]
    fn a_part_whose_worker_is_gone_is_found_in_each_state() {
        for state in [State::Running, State::Failed, State::Paused, State::Unassigned] {
            let (code, severity, what) =
                found(&part(state, Some(JAVA), Whereabouts::Gone)).unwrap();
            assert_eq!((code.as_str(), severity), ("WORKER_GONE", Severity::Warning));
            assert!(what.contains("no member of group g any more") && what.contains(state.name()));
            assert!(!what.contains("s3cret") && !what.contains("D.java"), "{what}");
        }
        assert_eq!(found(&part(State::Running, None, Whereabouts::Unknown)), None);
    }

    #[test]
    fn what_another_worker_said_is_shown_as_its_word_and_where_to_ask() {
        let failed = part(State::Failed, Some(&ours()), at());
        let shown = Value::Object(failed.json());
        assert_eq!(
            (&shown["state"], &shown["worker_id"]),
            (&json!("FAILED"), &json!("w2.example:8083"))
        );
        assert_eq!((&shown["trace"], shown.get("version")), (&json!(ours()), None));
        assert_eq!(shown["highwater"]["error"]["code"], "X_1");
        let says =
            |part: Elsewhere| part.json()["highwater"]["activity"].as_str().unwrap().to_owned();
        let runs = says(part(State::Running, None, at()));
        assert!(
            runs.ends_with("(ask w2.example:8083 with --url https://w2.example:8083)"),
            "{runs}"
        );
        assert_eq!(says(failed.clone()), "a row is odd", "the rest stands beside it");
        let java = says(part(State::Failed, Some(JAVA), at()));
        assert!(java.starts_with("org.apache.kafka") && !java.contains("(ask"), "{java}");
        assert!(
            says(part(State::Running, None, Whereabouts::Gone)).contains("in the group no more")
        );
        assert_eq!(Seen::Elsewhere(failed).restarting().state(), State::Restarting);
    }
}
