//! One connection: pumps records until it has to end, and says why it ends.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocket;
use tokio::sync::watch;

use crate::batch::Batch;
use crate::closing::Ending;
use crate::config::Limits;
use crate::feed::View;
use crate::opening::Start;
use crate::peer::{self, Liveness};
use crate::pump::Pump;
use crate::qos::OnGone;
use crate::registry::{Admission, Notice};
use crate::tables::Descriptions;
use crate::trail::Log;

/// Everything that a connection needs once it is accepted.
pub(crate) struct Session {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) descriptions: Arc<Descriptions>,
    pub(crate) limits: Limits,
    pub(crate) admission: Admission,
    pub(crate) view: View,
    pub(crate) start: Start,
    pub(crate) on_gone: OnGone,
}

impl Session {
    /// Serves the connection until it ends.
    pub(crate) async fn run(self, socket: WebSocket) {
        let (peer, mut inbox) = peer::split(socket);
        let stream = &self.admission.stream;
        let mut notice = stream.notice();
        let silence = Duration::from_secs(stream.resource.tcp_keep_alive_timeout);
        let ping_every = self.limits.ping_every.min(silence / 3);
        let ending = tokio::select! {
            biased;
            ending = told(&mut notice, &stream.name) => ending,
            ending = inbox.listen(&peer, Liveness { ping_every, silence }) => ending,
            ending = Pump::new(&self, &peer).run() => ending,
        };
        self.note(&ending);
        if let Ending::Closed { close, code, .. } = &ending {
            let mut last = Batch::default();
            ending.record(&self.view.encoding).iter().for_each(|record| last.add(record));
            let text = last.take().map(|message| message.text);
            inbox.finish(&peer, text, *close, code, self.limits.close_wait).await;
        }
    }

    fn note(&self, ending: &Ending) {
        let (code, what) = match ending {
            Ending::Left => ("client_left", "the client closed the connection"),
            Ending::Closed { code, what, .. } => (*code, what.as_str()),
        };
        let stream = &self.admission.stream.name;
        tracing::info!(stream, session = self.admission.status.id, code, what, "connection ends");
        metrics::counter!("highwater_stream_closes_total", "stream" => stream.clone(), "code" => code)
            .increment(1);
    }
}

/// Waits until the stream tells its connections to end.
async fn told(notice: &mut watch::Receiver<Notice>, stream: &str) -> Ending {
    match notice.wait_for(|notice| *notice != Notice::Open).await.as_deref() {
        Ok(Notice::Stopping) | Err(_) => Ending::shutdown(),
        Ok(Notice::Deleted) => Ending::deleted(stream),
        Ok(Notice::Open | Notice::Reconfigured) => Ending::reconfigured(stream),
    }
}
