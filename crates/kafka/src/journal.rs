//! Writing records of state, and waiting until the log holds them.

use tokio::sync::Mutex;

use crate::{KafkaError, OutgoingRecord, Writer};

type Make = Box<dyn Fn() -> Result<Box<dyn Writer>, KafkaError> + Send + Sync>;

/// The writer behind configurations, statuses, streams and edited offsets. One write at a time.
pub struct Journal {
    make: Make,
    writer: Mutex<Option<Box<dyn Writer>>>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Journal {
    /// A journal whose writer is made by `make` when first needed, and again after an error.
    pub fn new(
        make: impl Fn() -> Result<Box<dyn Writer>, KafkaError> + Send + Sync + 'static,
    ) -> Self {
        Self { make: Box::new(make), writer: Mutex::default() }
    }

    /// Writes `records` in order; on return the log holds all of them.
    ///
    /// # Errors
    /// The outcome is then unknown, and the next write uses a new writer.
    pub async fn write(&self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError> {
        let mut slot = self.writer.lock().await;
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => (self.make)()?,
        };
        writer.begin().await?;
        for record in records {
            writer.send(record).await?;
        }
        writer.commit().await?;
        // Nobody else takes them, and they must not pile up.
        writer.acknowledged()?;
        *slot = Some(writer);
        Ok(())
    }

    /// Closes the connection to the log. A write that comes later opens another one.
    pub async fn close(&self) {
        self.writer.lock().await.take();
    }
}
