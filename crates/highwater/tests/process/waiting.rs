//! Waits for what a process does.

#![expect(unreachable_pub, reason = "shared by tests, each of which is a program")]

use std::time::{Duration, Instant};

/// After how long something does not come any more.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Looks again and again until there is something.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}
