//! Bodies of HTTP requests, gathered before anybody looks at them: whole, bounded and in time.
//! The parts behind have no bound of their own, beside the 2 MiB that their library brings.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::StreamExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::guard::Refusal;

/// A configuration is never larger.
const LARGEST: usize = 1 << 20;
/// What a body may take without asking; the number of connections bounds the sum.
const FREE: usize = 16 << 10;
/// What all larger bodies together may take.
const MEMORY: usize = 32 << 20;
/// How long a body may take to come whole.
const PATIENCE: Duration = Duration::from_secs(30);

/// Memory for the bodies of all connections.
#[derive(Clone)]
pub(crate) struct Bodies(Arc<Semaphore>);

/// A body, and its part of the memory until dropped.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) bytes: Bytes,
    pub(crate) share: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MEMORY / FREE)))
    }

    /// Waits for the whole body.
    pub(crate) async fn gather(&self, body: Body) -> Result<Gathered, Refusal> {
        timeout(PATIENCE, self.read(body)).await.map_err(|_| Refusal::BodySlow)?
    }

    async fn read(&self, body: Body) -> Result<Gathered, Refusal> {
        let mut chunks = body.into_data_stream();
        let mut bytes = Vec::new();
        let mut share = None;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| Refusal::BodyCut)?;
            if bytes.len() + chunk.len() > LARGEST {
                return Err(Refusal::BodyTooLarge);
            }
            self.cover(&mut share, bytes.len() + chunk.len())?;
            bytes.extend_from_slice(&chunk);
        }
        Ok(Gathered { bytes: bytes.into(), share })
    }

    fn cover(&self, share: &mut Option<OwnedSemaphorePermit>, bytes: usize) -> Result<(), Refusal> {
        let held = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = (bytes / FREE).saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let more = Arc::clone(&self.0).try_acquire_many_owned(missing);
        let more = more.map_err(|_| Refusal::Busy)?;
        match share {
            Some(share) => share.merge(more),
            None => *share = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn gather(bodies: &Bodies, size: usize) -> Result<Gathered, Refusal> {
        bodies.gather(Body::from(vec![b'x'; size])).await
    }

    #[tokio::test]
    async fn a_body_has_a_bound() {
        let bodies = Bodies::new();
        assert_eq!(gather(&bodies, LARGEST).await.unwrap().bytes.len(), LARGEST);
        assert_eq!(gather(&bodies, LARGEST + 1).await.unwrap_err(), Refusal::BodyTooLarge);
    }

    #[tokio::test]
    async fn all_bodies_together_have_a_bound_that_small_ones_do_not_feel() {
        let bodies = Bodies::new();
        let mut held = Vec::new();
        while let Ok(body) = gather(&bodies, LARGEST).await {
            held.push(body);
        }
        assert_eq!(held.len(), MEMORY / LARGEST);
        assert_eq!(gather(&bodies, FREE).await.unwrap_err(), Refusal::Busy);
        assert!(gather(&bodies, FREE - 1).await.is_ok());
        held.pop();
        assert!(gather(&bodies, LARGEST).await.is_ok());
    }
}
