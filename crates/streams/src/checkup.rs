//! What an operator should know of the streams, for `highwater doctor`.

use highwater_connector::{Finding, Severity};

use crate::refusal::Refusal;
use crate::service::Service;
use crate::trail::TopicPartition;

/// Every stream must be readable, and have the topic that it reads.
pub(crate) async fn examine(service: &Service) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stream in service.registry.all() {
        let TopicPartition { topic: trail, .. } = stream.resource.source();
        let finding = match service.log.topic(&trail).await {
            Ok(Some(_)) => continue,
            Ok(None) => Finding::new(
                Severity::Error,
                "trail_missing",
                format!("it reads topic {trail}, which does not exist"),
                "nobody can connect to it, and no saved position can be resumed",
                "start the connector that writes it: highwater connector list".to_owned(),
            ),
            Err(error) => Finding::new(
                Severity::Error,
                "log_unavailable",
                format!("topic {trail} cannot be looked up: {error}"),
                "nobody can read the stream meanwhile",
                "try again in a few seconds: highwater doctor",
            ),
        };
        findings.push(finding.about(format!("stream {}", stream.name)));
    }
    findings.extend(service.registry.unreadable().iter().map(|unreadable| {
        let Refusal { code, what, remedy, .. } = Refusal::stream_unreadable(unreadable);
        let effect = "nobody can connect to it; all other streams work";
        Finding::new(Severity::Error, code, what, effect, remedy)
            .about(format!("stream {}", unreadable.stream))
    }));
    findings
}
