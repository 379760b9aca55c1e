//! The runners of the connectors of which this worker has a part, and which part of the work that is:
//! both change behind one lock, so that nothing is started that was taken away a moment before.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connector_runner::{ConnectorWish, Handle, Here};
use crate::runner::Shared;
use crate::standing::{Portion, Standing};
use crate::status::Status;

/// How tasks stand, by their ids.
pub(crate) type TaskStatuses = BTreeMap<u32, Status>;

/// See the module's text.
pub(crate) struct Runners {
    shared: Arc<Shared>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    running: BTreeMap<String, Handle>,
    /// Of connectors that have gone elsewhere or are deleted, and have not ended. Who is made under
    /// such a name next waits for it.
    leaving: BTreeMap<String, JoinHandle<()>>,
}

impl Runners {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), kept: Mutex::default() }
    }

    /// Says which part of the work is this worker's from now on.
    pub(crate) fn stand(&self, standing: Standing) {
        let _kept = self.kept.lock();
        self.shared.standing.send_replace(standing);
    }

    /// Tells a connector's runner what is wanted of this worker's part, starting it where there is none.
    /// One that has no part here any more leaves.
    pub(crate) fn steer(&self, name: &str, wish: impl FnOnce(Portion) -> ConnectorWish) {
        let mut kept = self.kept.lock();
        let portion = self.shared.standing.borrow().portion(name);
        if portion.is_empty() {
            kept.leave(name, Handle::leave);
            return;
        }
        let wish = wish(portion);
        match kept.running.get(name) {
            Some(handle) => handle.send(wish),
            None => {
                let predecessor = kept.leaving.remove(name);
                let handle = Handle::spawn(name, wish, Arc::clone(&self.shared), predecessor);
                kept.running.insert(name.to_owned(), handle);
            }
        }
    }

    /// Has the runner of a connector that is deleted end.
    pub(crate) fn vanish(&self, name: &str) {
        self.kept.lock().leave(name, Handle::vanish);
    }

    /// Drains all tasks, and waits until they have ended.
    pub(crate) async fn end_all(&self) {
        let Kept { running, leaving } = std::mem::take(&mut *self.kept.lock());
        let ending: Vec<_> = running.into_values().map(Handle::leave).collect();
        for ended in ending.into_iter().chain(leaving.into_values()) {
            drop(ended.await);
        }
    }

    /// Waits until those have ended of whose connector this worker has no part.
    pub(crate) async fn have_left(&self) {
        let gone: Vec<_> = {
            let mut kept = self.kept.lock();
            let standing = self.shared.standing.borrow().clone();
            let (here, gone) = std::mem::take(&mut kept.leaving)
                .into_iter()
                .partition(|(name, _)| !standing.portion(name).is_empty());
            kept.leaving = here;
            BTreeMap::into_values(gone).collect()
        };
        for ended in gone {
            drop(ended.await);
        }
    }

    /// What of each connector is here from now on, and which part of it is this worker's.
    pub(crate) fn portions(&self) -> Vec<(String, watch::Receiver<Here>, Portion)> {
        let (kept, standing) = (self.kept.lock(), self.shared.standing.borrow());
        let portion = |(name, handle): (&String, &Handle)| {
            (name.clone(), handle.watch_here(), standing.portion(name))
        };
        kept.running.iter().map(portion).collect()
    }

    /// How a connector itself and its tasks stand that are here, and what this worker has of the work.
    pub(crate) fn statuses(&self, name: &str) -> (Option<(Status, TaskStatuses)>, Standing) {
        let kept = self.kept.lock();
        let here = kept.running.get(name).map(|handle| (handle.status(), handle.tasks()));
        (here, self.shared.standing.borrow().clone())
    }

    /// How the tasks of all connectors stand that are here.
    pub(crate) fn tasks(&self) -> BTreeMap<String, TaskStatuses> {
        let kept = self.kept.lock();
        kept.running.iter().map(|(name, handle)| (name.clone(), handle.tasks())).collect()
    }

    /// Whether any task of a connector is here.
    pub(crate) fn has_tasks_of(&self, name: &str) -> bool {
        let kept = self.kept.lock();
        kept.running.get(name).is_some_and(|handle| handle.watch_here().borrow().has_tasks())
    }

    /// Sees how a connector itself stands from now on; its end is that of the runner.
    pub(crate) fn watch(&self, name: &str) -> Option<watch::Receiver<Status>> {
        self.kept.lock().running.get(name).map(Handle::watch)
    }

    /// Restarts these of a connector's tasks, as far as they are here; whether any is.
    pub(crate) fn restart(&self, name: &str, which: impl Fn(u32, &Status) -> bool) -> bool {
        let kept = self.kept.lock();
        kept.running.get(name).is_some_and(|handle| handle.restart(which))
    }
}

impl Kept {
    fn leave(&mut self, name: &str, how: impl FnOnce(Handle) -> JoinHandle<()>) {
        if let Some(handle) = self.running.remove(name) {
            self.leaving.insert(name.to_owned(), how(handle));
        }
    }
}
