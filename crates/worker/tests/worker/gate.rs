//! A writer that stands still at a chosen offset write, as a process does that is about to be
//! killed there, or before what it writes of configurations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use highwater_kafka::{Acknowledgement, KafkaError, OutgoingRecord, Writer, at_least_once};
use highwater_worker::WriterFactory;
use tokio::sync::watch;

use crate::barrier::Barrier;

/// Lets a number of offset writes through.
#[derive(Clone)]
pub(crate) struct Gate {
    /// Before the topic of configurations.
    pub(crate) configs: Barrier,
    left: Arc<AtomicUsize>,
    reached: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// The gate, and the writers to give to a worker.
    pub(crate) fn after(offset_writes: usize) -> (Self, WriterFactory) {
        let gate = Self {
            configs: Barrier::default(),
            left: Arc::new(AtomicUsize::new(offset_writes)),
            reached: Arc::new(watch::Sender::new(false)),
        };
        let factory = gate.clone();
        let writers: WriterFactory = Arc::new(move |settings| {
            let inner = at_least_once(settings)?;
            Ok(Box::new(Gated { inner, gate: factory.clone() }))
        });
        (gate, writers)
    }

    /// Lets no further offset write through.
    pub(crate) fn close(&self) {
        self.left.store(0, Ordering::SeqCst);
    }

    /// Waits until a writer stands still.
    pub(crate) async fn reached(&self) {
        self.reached.subscribe().wait_for(|reached| *reached).await.unwrap();
    }

    async fn pass(&self) {
        let one_less = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_err() {
            self.reached.send_replace(true);
            std::future::pending::<()>().await;
        }
    }
}

struct Gated {
    inner: Box<dyn Writer>,
    gate: Gate,
}

#[async_trait]
impl Writer for Gated {
    async fn begin(&mut self) -> Result<(), KafkaError> {
        self.inner.begin().await
    }

    async fn send(&mut self, record: OutgoingRecord) -> Result<u64, KafkaError> {
        if &*record.topic == "highwater.configs" {
            self.gate.configs.pass().await;
        }
        self.inner.send(record).await
    }

    fn acknowledged(&mut self) -> Result<Vec<Acknowledgement>, KafkaError> {
        self.inner.acknowledged()
    }

    async fn ready(&mut self) -> Result<(), KafkaError> {
        self.inner.ready().await
    }

    async fn offsets(&mut self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError> {
        self.gate.pass().await;
        self.inner.offsets(records).await
    }

    async fn commit(&mut self) -> Result<(), KafkaError> {
        self.inner.commit().await
    }
}
