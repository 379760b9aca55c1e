//! Looks at the server now and then while its changes are read: what the slot holds, and whether
//! the publication still is what the capture began with.
//!
//! Each look has a connection of its own: one that stayed open would keep a smart shutdown of the
//! server waiting for ever.

use std::collections::HashSet;
use std::sync::Arc;

use highwater_connector::{ConnectorError, Fact, Hold};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::catalog::Catalog;
use crate::holding::{Holding, Place};
use crate::preflight::Published;
use crate::publication_change;
use crate::settings::Settings;

/// What was seen last.
#[derive(Clone, Debug, Default)]
struct Seen {
    holding: Option<Holding>,
    /// Since when the slot holds too much.
    above: Option<Instant>,
    trouble: Option<ConnectorError>,
}

/// See the module. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    settings: Arc<Settings>,
    seen: watch::Receiver<Seen>,
    work: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Watch {
    /// Begins to look; `captured` are the captured tables of the publication.
    pub(crate) fn spawn(settings: Arc<Settings>, captured: Vec<Published>) -> Self {
        let (sender, seen) = watch::channel(Seen::default());
        let looking = Arc::clone(&settings);
        let work = tokio::spawn(async move {
            loop {
                // A server that cannot be asked is what the stream tells of.
                let bound = looking.login.connect_timeout * 2;
                match timeout(bound, look(&looking, &captured)).await {
                    Ok(Ok((holding, trouble))) => sender.send_modify(|seen| {
                        let above = holding.presses(looking.wal_warn);
                        seen.above = above.then(|| seen.above.unwrap_or_else(Instant::now));
                        (seen.holding, seen.trouble) = (Some(holding), trouble);
                    }),
                    Ok(Err(error)) => tracing::debug!(%error, "the server could not be looked at"),
                    Err(_) => tracing::debug!("the server did not answer in time"),
                }
                tokio::time::sleep(looking.watch_interval).await;
            }
        });
        Self { settings, seen, work }
    }

    /// What keeps changes from coming, without a word in the stream.
    pub(crate) fn trouble(&self) -> Option<ConnectorError> {
        self.seen.borrow().trouble.clone()
    }

    /// What the slot holds.
    pub(crate) fn hold(&self) -> Option<Hold> {
        let Seen { holding, above, .. } = &*self.seen.borrow();
        let above = above.map(|since| since.elapsed().as_secs());
        let settings = &self.settings;
        Some(holding.as_ref()?.hold(settings.place(), settings.wal_warn, above))
    }

    /// How far behind the end of the server's log the confirmed position is, bytes.
    pub(crate) fn behind(&self) -> Option<u64> {
        self.seen.borrow().holding.as_ref()?.behind
    }

    /// The numbers.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let seen = self.seen.borrow();
        seen.holding.as_ref().map(|holding| holding.facts(&self.settings.slot)).unwrap_or_default()
    }
}

async fn look(
    settings: &Settings,
    captured: &[Published],
) -> Result<(Holding, Option<ConnectorError>), ConnectorError> {
    let catalog = Catalog::connect(&settings.login).await?;
    let holding = catalog.holding(&settings.slot).await?.unwrap_or_default();
    let publication = catalog.publication(&settings.publication).await?;
    let published = publication.iter().flat_map(|publication| &publication.tables);
    let published: HashSet<u32> = published.map(|table| table.oid).collect();
    // All tables are read only to tell one that was taken out from one that was dropped.
    let complete = captured.iter().all(|table| published.contains(&table.oid));
    let tables = if complete { Vec::new() } else { catalog.tables().await? };
    let trouble = publication_change::trouble(settings, captured, publication.as_ref(), &tables);
    Ok((holding, trouble))
}

impl Settings {
    /// Where the slot is.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { slot: &self.slot, host: &self.login.host, port: self.login.port }
    }
}
