//! Work that waits for the disk, kept off the threads that serve connections.

use tokio::task::spawn_blocking;

/// Does `work` on a thread that may block. A panic in it is a panic here.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that ends cancels blocking work, and it ends this future, too.
            Err(_) => std::future::pending().await,
        },
    }
}
