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

    /// Lets `share` cover up to `bytes`; less rather than waiting.
    pub(crate) fn extend(&self, share: &mut Share, bytes: usize) {
        let missing = (bytes / UNIT).saturating_sub(share.units());
        let mut wanted = missing.min(self.0.available_permits());
        while wanted > 0 {
            let units = u32::try_from(wanted).unwrap_or(u32::MAX);
            if let Ok(permit) = Arc::clone(&self.0).try_acquire_many_owned(units) {
                return share.add(permit);
            }
            // Another one was faster.
            wanted /= 2;
        }
    }
}

impl Share {
    fn units(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Bytes that are covered; never less than the unit of account.
    pub(crate) fn bytes(&self) -> usize {
        UNIT.saturating_mul(self.units()).max(UNIT)
    }

    fn add(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.0 {
            Some(held) => held.merge(permit),
            None => self.0 = Some(permit),
        }
    }

    /// Gives back what `bytes` do not need.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.units().saturating_sub(bytes.div_ceil(UNIT));
        if let Some(held) = &mut self.0 {
            drop(held.split(surplus));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(budget: &Budget) -> usize {
        let mut share = Share::default();
        budget.extend(&mut share, usize::MAX);
        share.units()
    }

    #[tokio::test]
    async fn a_share_is_given_back() {
        let budget = Budget::new(4 * UNIT);
        let mut share = Share::default();
        budget.cover(&mut share, 3 * UNIT).await;
        assert_eq!(left(&budget), 1);
        share.shrink_to(UNIT);
        assert_eq!(left(&budget), 3);
        drop(share);
        assert_eq!(left(&budget), 4);
    }

    #[tokio::test]
    async fn a_share_takes_what_is_left() {
        let budget = Budget::new(4 * UNIT);
        let (mut first, mut second) = (Share::default(), Share::default());
        budget.extend(&mut first, 3 * UNIT);
        budget.extend(&mut second, 3 * UNIT);
        assert_eq!((first.bytes(), second.bytes()), (3 * UNIT, UNIT));
    }

    #[tokio::test]
    async fn what_is_small_is_not_counted() {
        let budget = Budget::new(UNIT);
        let mut share = Share::default();
        budget.cover(&mut share, UNIT - 1).await;
        assert_eq!(share.units(), 0);
    }
}
