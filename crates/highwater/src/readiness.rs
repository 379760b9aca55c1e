//! Whether the server is ready, part by part, and if not why (rule U4).

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use highwater_log::Opening;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// How far a server has come, in the order in which it starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Phase {
    /// The log is being opened.
    Log,
    /// The Kafka listeners are being opened.
    Kafka,
    /// The worker reads its topics.
    Worker,
    /// The streams read theirs.
    Streams,
    /// Everything runs.
    Ready,
    /// The server was asked to stop.
    Stopping,
}

/// What is known of the phase that a server is in. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Readiness {
    phase: watch::Sender<Phase>,
    opening: Arc<Opening>,
    /// What keeps a cluster that holds the log from being used; none with the embedded log.
    cluster: Arc<Mutex<Option<String>>>,
}

impl Readiness {
    /// Of a server that has just begun to start.
    pub(crate) fn new() -> Self {
        let phase = watch::Sender::new(Phase::Log);
        Self { phase, opening: Arc::default(), cluster: Arc::default() }
    }

    /// Counts how far the log has come.
    pub(crate) fn opening(&self) -> Arc<Opening> {
        Arc::clone(&self.opening)
    }

    /// The log is kept by a cluster, which is waited for: `why`.
    pub(crate) fn wait_for(&self, why: String) {
        *self.cluster.lock() = Some(why);
        self.enter(Phase::Kafka);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// One sentence about the whole.
    pub(crate) fn what(&self) -> String {
        match self.phase() {
            Phase::Ready => "the server is ready".to_owned(),
            Phase::Stopping => "the server is stopping".to_owned(),
            phase => {
                let waiting = self.parts().into_iter().find(|part| !part.ready);
                let (name, what) =
                    waiting.map_or(("", String::new()), |part| (part.name, part.what));
                debug_assert!(phase < Phase::Ready);
                format!("the server is starting: {name}: {what}")
            }
        }
    }

    fn parts(&self) -> [Part; 4] {
        match &*self.cluster.lock() {
            Some(why) => parts(self.phase(), "kept by Apache Kafka", why, "answers"),
            None => {
                let (opened, all) = (self.opening.opened(), self.opening.partitions());
                let log = log_text(self.phase(), opened, all);
                parts(self.phase(), &log, "opening the listeners", "listening")
            }
        }
    }

    /// Answers `GET /highwater/v1/health/ready`.
    pub(crate) fn answer(&self) -> Response {
        if self.phase() == Phase::Ready {
            let parts: Vec<Value> = self.parts().iter().map(Part::to_json).collect();
            return Json(json!({ "ready": true, "what": self.what(), "parts": parts }))
                .into_response();
        }
        self.refusal()
    }

    /// Answers whatever is asked of a server that is not ready. The members are those of Kafka
    /// Connect's health check (KIP-1017), of its errors, and of rule U3.
    pub(crate) fn refusal(&self) -> Response {
        let stopping = self.phase() == Phase::Stopping;
        let (status, code, remedy) = if stopping {
            ("stopping", "SERVER_SHUTTING_DOWN", "start it again: highwater server")
        } else {
            ("starting", "SERVER_STARTING", "try again in a few seconds")
        };
        let parts: Vec<Value> = self.parts().iter().map(Part::to_json).collect();
        let body = json!({
            "status": status,
            "error_code": StatusCode::SERVICE_UNAVAILABLE.as_u16(),
            "message": self.what(),
            "code": code,
            "what": self.what(),
            "kept": "everything in the log and all stored offsets",
            "do": remedy,
            "ready": false,
            "parts": parts,
        });
        let retry = [(header::RETRY_AFTER, HeaderValue::from_static("2"))];
        (StatusCode::SERVICE_UNAVAILABLE, retry, Json(body)).into_response()
    }
}

/// One part of the server.
#[derive(PartialEq, Eq, Debug)]
struct Part {
    name: &'static str,
    ready: bool,
    what: String,
}

impl Part {
    fn to_json(&self) -> Value {
        json!({ "part": self.name, "ready": self.ready, "what": self.what })
    }
}

/// How far the embedded log is.
fn log_text(phase: Phase, opened: usize, partitions: usize) -> String {
    match (phase, partitions) {
        (Phase::Log, 0) => "reading the data folder".to_owned(),
        (Phase::Log, all) => format!("recovering, {opened} of {all} partitions are open"),
        (_, all) => format!("{all} partitions were opened"),
    }
}

/// All parts, in the order in which they start.
fn parts(phase: Phase, log: &str, reaching: &str, reached: &str) -> [Part; 4] {
    let part = |name, own: Phase, waits: &str, at_it: &str, done: &str| {
        let what = match phase {
            Phase::Stopping => "stopping",
            phase if phase < own => waits,
            phase if phase == own => at_it,
            _ => done,
        };
        Part { name, ready: phase > own && phase != Phase::Stopping, what: what.to_owned() }
    };
    [
        part("log", Phase::Log, "", log, log),
        part("kafka", Phase::Kafka, "waits for the log", reaching, reached),
        part(
            "worker",
            Phase::Worker,
            "waits for the log",
            "reading its topics of configurations, offsets and statuses",
            "running",
        ),
        part(
            "streams",
            Phase::Streams,
            "waits for the worker",
            "reading its topic of streams",
            "running",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_says_what_it_does_or_waits_for() {
        let parts = parts(Phase::Log, &log_text(Phase::Log, 3, 17), "", "");
        assert_eq!(parts[0].what, "recovering, 3 of 17 partitions are open");
        assert_eq!(parts[2].what, "waits for the log");
        assert!(parts.iter().all(|part| !part.ready));
    }

    #[test]
    fn a_server_is_ready_when_all_its_parts_are() {
        for (phase, ready) in [
            (Phase::Worker, [true, true, false, false]),
            (Phase::Ready, [true; 4]),
            (Phase::Stopping, [false; 4]),
        ] {
            assert_eq!(parts(phase, "", "", "").map(|part| part.ready), ready, "{phase:?}");
        }
    }

    #[test]
    fn a_cluster_that_is_waited_for_is_named_with_the_reason() {
        let readiness = Readiness::new();
        readiness.wait_for("no broker at a:1 answered".to_owned());
        let what = readiness.what();
        assert_eq!(what, "the server is starting: kafka: no broker at a:1 answered");
        readiness.enter(Phase::Ready);
        assert_eq!(readiness.parts()[0].what, "kept by Apache Kafka");
        assert_eq!(readiness.parts()[1].what, "answers");
    }

    #[test]
    fn a_server_that_is_not_ready_refuses_with_the_reason() {
        let readiness = Readiness::new();
        assert_eq!(readiness.answer().status(), StatusCode::SERVICE_UNAVAILABLE);
        readiness.enter(Phase::Worker);
        assert!(readiness.what().contains("reading its topics"), "{}", readiness.what());
        readiness.enter(Phase::Ready);
        assert_eq!(readiness.answer().status(), StatusCode::OK);
    }
}
