//! The threads that work by themselves, and how they are ended out of whatever wait.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::LogError;

/// The longest that a thread sleeps at once; a sleep is not to end behind the end of time.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether a thread is to end, and the call to wake it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Ends who waits on it, now and later.
    pub(crate) fn stop(&self) {
        let (stopped, wake) = &*self.0;
        *stopped.lock() = true;
        wake.notify_all();
    }

    /// Waits so long; false as soon as the thread is to end.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        self.pause_until(Instant::now() + time.min(LONGEST_PAUSE))
    }

    /// As [`Stop::pause`], until then.
    pub(crate) fn pause_until(&self, until: Instant) -> bool {
        let (stopped, wake) = &*self.0;
        let mut stopped = stopped.lock();
        while !*stopped && until > Instant::now() {
            wake.wait_until(&mut stopped, until);
        }
        !*stopped
    }
}

/// The threads of a log.
#[derive(Debug, Default)]
pub(crate) struct Background {
    stop: Stop,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Background {
    /// Starts one more. It has to end once it is told to stop.
    pub(crate) fn start(
        &self,
        name: &str,
        work: impl FnOnce(&Stop) + Send + 'static,
    ) -> Result<(), LogError> {
        let stop = self.stop.clone();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&stop))
            .map_err(LogError::io("start a thread", name.as_ref()))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Ends them all and waits for that; not for the caller's own.
    pub(crate) fn end(&self) {
        self.stop.stop();
        let me = thread::current().id();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if thread.thread().id() != me && thread.join().is_err() {
                tracing::error!(name, "a thread of the log ended by a panic");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_ended_out_of_its_wait() {
        let background = Background::default();
        let (told, hears) = std::sync::mpsc::channel();
        background
            .start("waits", move |stop| {
                told.send(stop.pause(Duration::ZERO)).unwrap();
                told.send(stop.pause(Duration::from_secs(30))).unwrap();
                told.send(stop.pause(Duration::MAX)).unwrap();
            })
            .unwrap();
        assert_eq!(hears.recv(), Ok(true), "nobody ended it yet");
        let began = Instant::now();
        background.end();
        assert_eq!((hears.recv(), hears.recv()), (Ok(false), Ok(false)));
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
