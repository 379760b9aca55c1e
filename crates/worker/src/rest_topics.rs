//! `/connectors/{name}/topics` (KIP-558).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::rest::App;
use crate::rest_error::Refusal;
use crate::rest_request::Segments;
use crate::settings::TopicTracking;

/// A connector that does not exist uses none, as with Kafka Connect.
pub(crate) async fn list(
    State(herder): App,
    Segments(name): Segments<String>,
) -> Result<Json<Value>, Refusal> {
    if herder.config.topic_tracking == TopicTracking::Off {
        return Err(off("Topic tracking is disabled."));
    }
    let topics = herder.shared.active_topics.of(&name);
    Ok(Json(json!({ name: { "topics": topics } })))
}

pub(crate) async fn reset(
    State(herder): App,
    Segments(name): Segments<String>,
) -> Result<StatusCode, Refusal> {
    match herder.config.topic_tracking {
        TopicTracking::Off => Err(off("Topic tracking is disabled.")),
        TopicTracking::WithoutReset => Err(off("Topic tracking reset is disabled.")),
        TopicTracking::On => {
            herder.shared.active_topics.reset(&name).await.map_err(Refusal::Log)?;
            Ok(StatusCode::ACCEPTED)
        }
    }
}

fn off(text: &str) -> Refusal {
    Refusal::Http(StatusCode::FORBIDDEN, text.to_owned())
}
