//! Memory that large requests and responses of all connections share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of account: what is smaller is not counted, the number of connections bounds it.
const UNIT: usize = 64 << 10;

/// Memory that may be held, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

/// A part of a [`Budget`], given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Share(Option<OwnedSemaphorePermit>);

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits until `share` covers `bytes`.
    pub(crate) async fn cover(&self, share: &mut Share, bytes: usize) {
        let missing = (bytes / UNIT).saturating_sub(share.units());
        if missing == 0 {
            return;
        }
        let wanted = u32::try_from(missing).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(&self.0).acquire_many_owned(wanted).await {
            share.add(permit);
        }
    }
}

impl Share {
    fn units(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    fn add(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.0 {
            Some(held) => held.merge(permit),
            None => self.0 = Some(permit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_share_is_given_back() {
        let budget = Budget::new(4 * UNIT);
        let mut share = Share::default();
        budget.cover(&mut share, UNIT).await;
        budget.cover(&mut share, 3 * UNIT).await;
        assert_eq!(budget.0.available_permits(), 1);
        drop(share);
        assert_eq!(budget.0.available_permits(), 4);
    }

    #[tokio::test]
    async fn what_is_small_is_not_counted() {
        let budget = Budget::new(UNIT);
        let mut share = Share::default();
        budget.cover(&mut share, UNIT - 1).await;
        assert_eq!(share.units(), 0);
    }
}
