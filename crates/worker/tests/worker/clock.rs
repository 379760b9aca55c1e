//! Time that goes as fast as a test says, however slow the machine is: it stands while nothing else of
//! the test can go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{advance, sleep};

const TICK: Duration = Duration::from_millis(1);

/// How much faster than real time it goes in [`Clock::pass`].
const FAST: u32 = 10;

/// Moves the time of a runtime of one thread, which was started with it paused.
pub(crate) struct Clock(Arc<AtomicU32>);

impl Clock {
    pub(crate) fn start() -> Self {
        let speed = Arc::new(AtomicU32::new(1));
        let (ticks, mut ticked) = mpsc::channel(1);
        // As long as this thread lives, time does not leap to the next timer by itself.
        tokio::task::spawn_blocking(move || {
            while ticks.blocking_send(()).is_ok() {
                std::thread::sleep(TICK);
            }
        });
        let read = Arc::clone(&speed);
        tokio::spawn(async move {
            while ticked.recv().await.is_some() {
                advance(TICK * read.load(Ordering::Relaxed)).await;
            }
        });
        Self(speed)
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        self.0.store(FAST, Ordering::Relaxed);
        sleep(time).await;
        self.0.store(1, Ordering::Relaxed);
    }
}
