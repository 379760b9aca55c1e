//! What an operator should know of the streams, for `highwater doctor`.

use highwater_connector::{Finding, Severity};

use crate::service::Service;

/// Every stream must have the trail that it reads.
pub(crate) async fn examine(service: &Service) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stream in service.registry.all() {
        let trail = stream.resource.trail();
        let finding = match service.log.topic(trail).await {
            Ok(Some(_)) => continue,
            Ok(None) => Finding::new(
                Severity::Error,
                "trail_missing",
                format!("it reads topic {trail}, which does not exist"),
                "nobody can connect to it, and no saved position can be resumed",
                format!(
                    "start the connector whose topic.prefix is {trail}: highwater connector list"
                ),
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
    findings
}
