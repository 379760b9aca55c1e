//! How the streams are doing: `/highwater/v1/streams`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::registry::{SessionStatus, Stream};
use crate::service::Service;
use crate::trail::TopicPartition;

/// All streams in short.
pub(crate) async fn list(State(service): State<Arc<Service>>) -> Json<Value> {
    let mut streams: Vec<Value> =
        service.registry.all().iter().map(|stream| brief(stream)).collect();
    streams.extend(service.registry.unreadable().iter().map(|unreadable| {
        json!({
            "name": unreadable.stream,
            "activity": "refused: what is stored of it cannot be read",
            "error": Refusal::stream_unreadable(unreadable).to_json(),
        })
    }));
    Json(json!({"streams": streams}))
}

/// One stream with its connections.
pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let stream = service.registry.get(&name)?;
    let mut status = brief(&stream);
    let sessions = stream.sessions();
    status["sessions"] = sessions.iter().map(|session| describe(session)).collect();
    status["trail"] = trail(&service, &stream.resource.source()).await;
    Ok(Json(status))
}

fn brief(stream: &Stream) -> Value {
    let sessions = stream.sessions();
    let source = stream.resource.source();
    json!({
        "name": stream.name,
        "topic": source.topic,
        "partition": source.partition,
        "contract": stream.resource.contract().to_string(),
        "qualityOfService": stream.resource.quality_of_service,
        "connections": sessions.len(),
        "activity": activity(&sessions),
    })
}

/// One sentence (rule U4).
fn activity(sessions: &[Arc<SessionStatus>]) -> String {
    let lags: Vec<Option<i64>> = sessions.iter().map(|session| session.lag()).collect();
    let behind = lags.iter().filter(|lag| lag.is_some_and(|lag| lag > 0)).count();
    let unknown = lags.iter().filter(|lag| lag.is_none()).count();
    match (sessions.len(), behind, unknown) {
        (0, _, _) => "nobody is connected".to_owned(),
        (all, 0, 0) => format!("{all} connected, all of them at the end of the trail"),
        (all, _, 0) => format!("{all} connected, {behind} of them behind the end of the trail"),
        (all, _, _) => {
            format!("{all} connected, {behind} behind the end of the trail, {unknown} unknown")
        }
    }
}

/// 64-bit numbers stand as texts (rule U1).
fn describe(session: &SessionStatus) -> Value {
    let progress = *session.progress.lock();
    json!({
        "id": session.id.to_string(),
        "since": session.since,
        "begin": session.begin,
        "qualityOfService": session.quality_of_service,
        "last_sent_offset": progress.last_sent.map(|offset| offset.to_string()),
        "next_offset": progress.next.to_string(),
        "lag": session.lag().map(|lag| lag.to_string()),
        "records_sent": progress.records.to_string(),
        "bytes_sent": progress.bytes.to_string(),
        "duplicates_suppressed": progress.suppressed.to_string(),
    })
}

/// The edges of the trail, or why they are not known.
async fn trail(service: &Service, source: &TopicPartition) -> Value {
    match service.log.watch(source).await {
        Ok(edges) => {
            let edges = *edges.borrow();
            json!({
                "log_start": edges.log_start.to_string(),
                "high_watermark": edges.high_watermark.to_string(),
                "last_stable": edges.last_stable.to_string(),
            })
        }
        Err(error) => json!({"unknown": error.to_string()}),
    }
}
