//! The coordinator of groups, running.

use std::sync::Arc;

use highwater_log::Log;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::group_settings::GroupSettings;
use crate::groups::Groups;
use crate::loading::Loaded;

/// The coordinator of a log's groups. Clones share it; it ends with the last one, or when it is told to.
/// A log has one, which all brokers in front of it share.
#[derive(Clone, Debug)]
pub struct GroupCoordinator {
    running: Arc<Running>,
}

#[derive(Debug)]
struct Running {
    groups: Arc<Groups>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl GroupCoordinator {
    /// Begins to read back what stands in the log, and coordinates from then on. Needs a runtime.
    pub fn start(log: Log, settings: GroupSettings) -> Self {
        let (groups, writer) = Groups::new(log, settings, Clock::start());
        let is_new = groups.topic.existing().is_none();
        if is_new {
            // There is nothing to wait for.
            groups.install(Loaded::default());
        }
        let loading = Arc::clone(&groups);
        let writing = async move {
            if !is_new {
                loading.load().await;
            }
            drop(loading);
            writer.run().await;
        };
        let tasks = vec![
            tokio::spawn(writing),
            tokio::spawn(Arc::clone(&groups).keep_time()),
            tokio::spawn(Arc::clone(&groups).keep_expiring()),
        ];
        Self { running: Arc::new(Running { groups, tasks: Mutex::new(tasks) }) }
    }

    /// The groups.
    pub fn groups(&self) -> &Arc<Groups> {
        &self.running.groups
    }

    /// Ends. Whoever waits for an answer gets none; what was answered is safe.
    pub async fn shutdown(&self) {
        let tasks = std::mem::take(&mut *self.running.tasks.lock());
        for task in tasks {
            task.abort();
            // It was told to end.
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.get_mut().iter().for_each(JoinHandle::abort);
    }
}
