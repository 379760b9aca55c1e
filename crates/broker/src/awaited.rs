//! Answers of a coordinator that may be long in coming.

use std::sync::Arc;

use highwater_coordinator::Waiting;

use crate::connection::stopped;
use crate::node::Node;

/// The answer, or `otherwise` where the broker stops first: a member may wait for others for minutes.
pub(crate) async fn awaited<T>(node: Arc<Node>, waiting: Waiting<T>, otherwise: T) -> T {
    let mut stopping = node.stopping.clone();
    let answer = tokio::select! {
        biased;
        answer = waiting.answer() => answer,
        () = stopped(&mut stopping) => None,
    };
    answer.unwrap_or(otherwise)
}
