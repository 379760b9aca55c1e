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
use crate::publication_change::{self, Capture};
use crate::settings::Settings;

/// What was seen last.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// None without a slot, of which nothing is known.
    holding: Option<Holding>,
    /// Since when the slot holds too much.
    above: Option<Instant>,
    trouble: Option<ConnectorError>,
}

impl Seen {
    fn takes(&mut self, holding: Option<Holding>, warn: u64) {
        let above = holding.as_ref().is_some_and(|holding| holding.presses(warn));
        self.above = above.then(|| self.above.unwrap_or_else(Instant::now));
        self.holding = holding;
    }

    fn hold(&self, place: Place<'_>, warn: u64) -> Option<Hold> {
        let above = self.above.map(|since| since.elapsed().as_secs());
        Some(self.holding.as_ref()?.hold(place, warn, above))
    }
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
    /// Begins to look at what becomes of `capture`.
    pub(crate) fn spawn(settings: Arc<Settings>, capture: Capture) -> Self {
        let (sender, seen) = watch::channel(Seen::default());
        let looking = Arc::clone(&settings);
        let work = tokio::spawn(async move {
            loop {
                // A server that cannot be asked is what the stream, or the snapshot, tells of.
                let bound = looking.login.connect_timeout * 2;
                match timeout(bound, look(&looking, &capture)).await {
                    Ok(Ok((holding, trouble))) => sender.send_modify(|seen| {
                        seen.takes(holding, looking.wal_warn);
                        seen.trouble = trouble;
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
        self.seen.borrow().hold(self.settings.place(), self.settings.wal_warn)
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
    capture: &Capture,
) -> Result<(Option<Holding>, Option<ConnectorError>), ConnectorError> {
    let catalog = Catalog::connect(&settings.login).await?;
    let holding = catalog.holding(&settings.slot).await?;
    let publication = catalog.publication(&settings.publication).await?;
    let published = publication.iter().flat_map(|publication| &publication.tables);
    let published: HashSet<u32> = published.map(|table| table.oid).collect();
    // All tables are read only to tell one that was taken out from one that was dropped.
    let complete = capture.tables.iter().all(|table| published.contains(&table.oid));
    let tables = if complete { Vec::new() } else { catalog.tables().await? };
    let trouble = publication_change::trouble(settings, capture, publication.as_ref(), &tables);
    Ok((holding, trouble))
}

impl Settings {
    /// Where the slot is.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { slot: &self.slot, host: &self.login.host, port: self.login.port }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_slot_that_is_not_there_nothing_is_said() {
        let place = Place { slot: "shop", host: "db", port: 5432 };
        let mut seen = Seen::default();
        seen.takes(Some(Holding { held: Some(9), ..Holding::default() }), 8);
        let hold = seen.hold(place, 8).unwrap();
        assert!(hold.pressing && hold.says.contains("sets no bound"), "{}", hold.says);
        // While it is made, or once it was dropped: that there is no bound is not known either.
        seen.takes(None, 8);
        assert_eq!((seen.hold(place, 8), seen.above), (None, None));
    }
}
