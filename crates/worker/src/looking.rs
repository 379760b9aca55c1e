//! Looks now and then at what a source keeps for a connector that does not run.

use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{ConnectorError, ErrorKind, Hold};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::WorkerConfig;
use crate::pipeline::Pipeline;
use crate::status::{Held, Status};

/// How often, and how long an answer may take.
#[derive(Clone, Debug)]
pub(crate) struct Looking {
    worker: WorkerConfig,
}

impl Looking {
    pub(crate) fn new(worker: &WorkerConfig) -> Self {
        Self { worker: worker.clone() }
    }

    /// Looks at once and then again and again, until it is dropped. A configuration that cannot be
    /// run leads to no source.
    pub(crate) async fn on(
        self,
        pipeline: Option<Arc<Pipeline>>,
        status: watch::Sender<Status>,
    ) -> std::convert::Infallible {
        let Some(pipeline) = pipeline else { return std::future::pending().await };
        loop {
            let hold = self.ask(&pipeline).await.map_err(|error| error.what);
            status.send_modify(|status| status.held = Some(Held::now(hold)));
            tokio::time::sleep(self.worker.hold_interval).await;
        }
    }

    async fn ask(&self, pipeline: &Arc<Pipeline>) -> Result<Option<Hold>, ConnectorError> {
        let limit = self.worker.source_timeout;
        let pipeline = pipeline.fresh(&self.worker).await?;
        let asked = pipeline.scrubbed(pipeline.connector.hold(&pipeline.config));
        match timeout(limit, asked).await {
            Ok(hold) => Ok(hold?.map(|hold| hold.of(&pipeline.name))),
            Err(_) => Err(silent("what it keeps", limit)),
        }
    }
}

/// The source did not answer in time.
pub(crate) fn silent(about: &str, timeout: Duration) -> ConnectorError {
    let what = format!("the source did not answer within {timeout:?} about {about}");
    ConnectorError {
        remedy: "see that the source runs and can be reached from here, then ask again".to_owned(),
        ..ConnectorError::again("SOURCE_SILENT", ErrorKind::Source, what)
    }
}
