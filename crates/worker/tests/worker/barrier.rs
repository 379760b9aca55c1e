//! A place where whoever comes waits while it is closed, so that a test orders what happens.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::bench::PATIENCE;

#[derive(Clone, Default)]
pub(crate) struct Barrier(Arc<watch::Sender<State>>);

#[derive(Default)]
struct State {
    closed: bool,
    waiting: usize,
}

impl Barrier {
    pub(crate) fn close(&self) {
        self.0.send_modify(|state| state.closed = true);
    }

    pub(crate) fn open(&self) {
        self.0.send_modify(|state| state.closed = false);
    }

    /// Waits until somebody waits.
    pub(crate) async fn reached(&self) {
        self.reached_by(1).await;
    }

    /// Waits until so many wait at once.
    pub(crate) async fn reached_by(&self, number: usize) {
        let mut state = self.0.subscribe();
        let reached = state.wait_for(|state| state.waiting >= number);
        timeout(PATIENCE, reached).await.unwrap().unwrap();
    }

    pub(crate) async fn pass(&self) {
        let mut state = self.0.subscribe();
        if state.borrow().closed {
            self.0.send_modify(|state| state.waiting += 1);
            state.wait_for(|state| !state.closed).await.unwrap();
            self.0.send_modify(|state| state.waiting -= 1);
        }
    }

    /// [`Self::pass`] for code that blocks its thread.
    pub(crate) fn pass_blocking(&self) {
        if self.0.borrow().closed {
            Handle::current().block_on(self.pass());
        }
    }
}
