//! An answer that may take a while.

use tokio::sync::oneshot;

/// An answer to come.
#[derive(Debug)]
pub struct Waiting<T>(oneshot::Receiver<T>);

impl<T> Waiting<T> {
    /// One that is there.
    pub(crate) fn ready(answer: T) -> Self {
        let (sender, waiting) = Self::channel();
        let _ = sender.send(answer);
        waiting
    }

    pub(crate) fn channel() -> (oneshot::Sender<T>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(receiver))
    }

    /// Waits for it. None if the coordinator has stopped.
    pub async fn answer(self) -> Option<T> {
        self.0.await.ok()
    }
}
