//! What goes on behind the requests, and ends with the coordinator.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Tasks that end when this is dropped.
#[derive(Debug)]
pub(crate) struct Tasks(Mutex<Option<JoinSet<()>>>);

/// Starts tasks as long as their owner is there. A task may hold one: it does not keep itself alive.
#[derive(Clone, Debug)]
pub(crate) struct Spawner(Weak<Tasks>);

impl Tasks {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(JoinSet::new()))))
    }

    /// Ends all tasks where they are, and starts no more.
    pub(crate) async fn shutdown(&self) {
        let tasks = self.0.lock().take();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }

    pub(crate) fn spawner(self: &Arc<Self>) -> Spawner {
        Spawner(Arc::downgrade(self))
    }
}

impl Spawner {
    /// Starts a task, if its owner is still there.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(tasks) = self.0.upgrade() else { return };
        let mut tasks = tasks.0.lock();
        let Some(tasks) = tasks.as_mut() else { return };
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a task of the coordinator ended badly");
            }
        }
        tasks.spawn(task);
    }

    /// Does work to its end also if nobody waits for it any more: a client that goes away in the middle
    /// leaves no half-done change. None: the coordinator is gone.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = oneshot::channel();
        self.spawn(async move {
            let _ = tell.send(work.await);
        });
        told.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_finished_when_nobody_waits_and_ends_with_its_owner() {
        let tasks = Tasks::new();
        let spawner = tasks.spawner();
        let (tell, told) = oneshot::channel();
        let started = spawner.clone();
        let waiting = tokio::spawn(async move {
            let work = started.finish(async move {
                tokio::task::yield_now().await;
                let _ = tell.send(());
            });
            work.await
        });
        tokio::task::yield_now().await;
        waiting.abort();
        assert_eq!(told.await, Ok(()));

        let (tell, told) = oneshot::channel::<()>();
        spawner.spawn(async move {
            std::future::pending::<()>().await;
            drop(tell);
        });
        drop(tasks);
        assert!(told.await.is_err(), "its owner is gone, and so is it");
        assert_eq!(spawner.finish(async {}).await, None);
    }
}
