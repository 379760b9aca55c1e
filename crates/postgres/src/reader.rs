//! Reads the stream in the background: keepalives are answered whatever the task is doing.
//!
//! The status that goes out repeats the last stored position and nothing else (rule P1).

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use highwater_connector::{ConnectorError, ErrorKind};
use postgres_protocol::message::frontend;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::cursor::Cursor;
use crate::envelope::now_us;
use crate::error::{begin_again, code, connection, sqlstate, unreadable};
use crate::frame::Frame;
use crate::lsn::Lsn;
use crate::pgoutput::PgTime;
use crate::session::{Session, server_error};
use crate::settings::Settings;

/// Batches that wait for the task at most: while one does, the next grows with what is read.
const WAITING: usize = 1;

/// Bytes of messages in a batch from which on no more is read into it.
const BATCH: usize = 512 * 1024;

/// A stream that flows is read no more often than this. The server sends each message by itself,
/// and to wake up for each costs both sides more than the message.
const BREATH: Duration = Duration::from_millis(1);

/// A read that gave so many bytes has more behind it.
const PLENTY: usize = 64 * 1024;

/// Silence beyond some status intervals and this means that the server is gone: it is asked for
/// a sign of life with every status.
const SILENCE: Duration = Duration::from_secs(30);

/// What the server sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wal {
    /// One message of the plugin, which stands at this LSN.
    Data { lsn: Lsn, payload: Bytes },
    /// The beginning of one above the bound.
    Cut { size: usize, prefix: Bytes },
    /// Everything below this LSN was sent.
    Reached(Lsn),
}

/// The task's end of the reader.
#[derive(Debug)]
pub(crate) struct Reader {
    batches: mpsc::Receiver<Result<Vec<Wal>, ConnectorError>>,
    stored: watch::Sender<Lsn>,
    work: JoinHandle<()>,
}

impl Reader {
    /// Reads a session that streams. `stored` is what is safe already.
    pub(crate) fn spawn(session: Session, stored: Lsn, settings: Arc<Settings>) -> Self {
        let (sender, batches) = mpsc::channel(WAITING);
        let (stored, receiver) = watch::channel(stored);
        let work = tokio::spawn(async move {
            let (heard, batch) = (Instant::now(), Batch::default());
            let mut pump = Pump { session, stored: receiver, settings, heard, batch };
            if let Err(error) = pump.run(&sender).await {
                // Nobody listens any more when the task is gone.
                let _ = sender.send(Err(error)).await;
            }
        });
        Self { batches, stored, work }
    }

    /// The next batch, or nothing when none came in time.
    ///
    /// # Errors
    /// When the stream ended.
    pub(crate) async fn next(&mut self, wait: Duration) -> Result<Vec<Wal>, ConnectorError> {
        match timeout(wait, self.batches.recv()).await {
            Err(_) => Ok(Vec::new()),
            Ok(Some(batch)) => batch,
            Ok(None) => Err(connection("the replication stream has ended")),
        }
    }

    /// A batch that waits already.
    ///
    /// # Errors
    /// When the stream ended.
    pub(crate) fn waiting(&mut self) -> Result<Option<Vec<Wal>>, ConnectorError> {
        self.batches.try_recv().ok().transpose()
    }

    /// Tells the server that everything below `lsn` is stored. Never goes back.
    pub(crate) fn acknowledge(&self, lsn: Lsn) {
        self.stored.send_if_modified(|stored| {
            let forward = lsn > *stored;
            *stored = lsn.max(*stored);
            forward
        });
    }

    /// Ends the stream in order and waits a moment until the server has let go of the slot.
    pub(crate) async fn stop(self) {
        let Self { batches, stored, mut work } = self;
        drop((batches, stored));
        if timeout(Duration::from_secs(2), &mut work).await.is_err() {
            work.abort();
        }
    }
}

struct Pump {
    session: Session,
    stored: watch::Receiver<Lsn>,
    settings: Arc<Settings>,
    heard: Instant,
    batch: Batch,
}

/// What was read and the task has not taken.
#[derive(Default)]
struct Batch {
    messages: Vec<Wal>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, message: Wal) {
        let payload = match &message {
            Wal::Data { payload, .. } => payload.len(),
            Wal::Cut { prefix, .. } => prefix.len(),
            Wal::Reached(_) => 0,
        };
        self.bytes += payload + size_of::<Wal>();
        self.messages.push(message);
    }

    const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    const fn is_full(&self) -> bool {
        self.bytes >= BATCH
    }

    fn take(&mut self) -> Vec<Wal> {
        std::mem::take(self).messages
    }
}

type Batches = mpsc::Sender<Result<Vec<Wal>, ConnectorError>>;

impl Pump {
    async fn run(&mut self, batches: &Batches) -> Result<(), ConnectorError> {
        // The answer that began the stream may have brought more with it.
        self.collect().await?;
        let mut tick = tokio::time::interval(self.settings.status_interval);
        let mut breath = Instant::now();
        loop {
            tokio::select! {
                read = read_after(&mut self.session, breath), if !self.batch.is_full() => {
                    let (read, now) = (read?, Instant::now());
                    let flows = now < self.heard + 2 * BREATH && read < PLENTY;
                    breath = if flows { now + BREATH } else { now };
                    self.heard = now;
                    self.collect().await?;
                }
                permit = batches.reserve(), if !self.batch.is_empty() => match permit {
                    Ok(permit) => permit.send(Ok(self.batch.take())),
                    Err(_) => return self.end().await,
                },
                changed = self.stored.changed() => match changed {
                    Ok(()) => self.report(false).await?,
                    Err(_) => return self.end().await,
                },
                _ = tick.tick() => {
                    self.check_silence(!self.batch.is_full())?;
                    self.report(true).await?;
                }
            }
        }
    }

    /// A server that is read from and says nothing, though it is asked, is gone.
    fn check_silence(&mut self, listening: bool) -> Result<(), ConnectorError> {
        if !listening {
            self.heard = Instant::now();
        }
        let silent = self.heard.elapsed();
        if silent > SILENCE + 3 * self.settings.status_interval {
            return Err(connection(format!("the server is silent for {} s", silent.as_secs())));
        }
        Ok(())
    }

    async fn collect(&mut self) -> Result<(), ConnectorError> {
        while let Some(frame) = self.session.arrived()? {
            match frame {
                Frame::Whole { tag: b'd', body } => {
                    let (wal, asked) = copy_data(body)?;
                    self.batch.push(wal);
                    if asked {
                        self.report(false).await?;
                    }
                }
                Frame::Whole { tag: b'E', body } => {
                    return Err(self.refused(body));
                }
                Frame::Whole { tag: b'N' | b'S', .. } => {}
                Frame::Whole { tag: b'c' | b'C' | b'Z', .. } => {
                    return Err(connection("the server ended the replication stream"));
                }
                Frame::Whole { tag, .. } => {
                    let tag = char::from(tag);
                    return Err(unreadable(format!(
                        "the server sent message {tag:?} in the stream"
                    )));
                }
                Frame::Cut { size, prefix, .. } => self.batch.push(cut(size, prefix)?),
            }
        }
        Ok(())
    }

    /// Nothing but the publication is looked up while changes are read: as of the time of each
    /// change, so that one which was made later is not there, however often it is tried.
    fn refused(&self, body: Bytes) -> ConnectorError {
        let error = server_error("streaming", body);
        if error.sqlstate != sqlstate::UNDEFINED_OBJECT {
            return error.into();
        }
        ConnectorError::stop(
            code::PUBLICATION,
            ErrorKind::Source,
            format!(
                "publication {} was not there when the next changes were made: {}",
                self.settings.publication, error.message
            ),
            begin_again(Some(&self.settings.slot)),
        )
    }

    async fn report(&mut self, ask: bool) -> Result<(), ConnectorError> {
        let stored = *self.stored.borrow_and_update();
        self.session.send(&status_update(stored, ask)).await
    }

    /// Says good-bye, and nothing that was not said before.
    async fn end(&mut self) -> Result<(), ConnectorError> {
        let mut out = BytesMut::new();
        frontend::copy_done(&mut out);
        frontend::terminate(&mut out);
        self.session.send(&out).await?;
        // The server closes once it has let go of the slot.
        let closing = async {
            while self.session.read().await.is_ok() {
                while let Ok(Some(_)) = self.session.arrived() {}
            }
        };
        let _ = timeout(Duration::from_secs(1), closing).await;
        Ok(())
    }
}

/// Reads once it is time; may be dropped without losing a byte.
async fn read_after(session: &mut Session, breath: Instant) -> Result<usize, ConnectorError> {
    if Instant::now() < breath {
        tokio::time::sleep_until(breath).await;
    }
    session.read().await
}

/// "XLogData (B)" and "Primary keepalive message (B)" of the manual's replication protocol, and
/// whether an answer is asked for.
pub(crate) fn copy_data(body: Bytes) -> Result<(Wal, bool), ConnectorError> {
    let mut cursor = Cursor::new(body);
    match cursor.u8("message kind")? {
        b'w' => {
            let lsn = cursor.lsn("WAL start")?;
            cursor.take(16, "WAL end and time")?;
            Ok((Wal::Data { lsn, payload: cursor.rest() }, false))
        }
        b'k' => {
            let reached = cursor.lsn("WAL end")?;
            cursor.take(8, "time")?;
            Ok((Wal::Reached(reached), cursor.u8("reply requested")? == 1))
        }
        other => {
            let other = char::from(other);
            Err(unreadable(format!("the stream holds a message of unknown kind {other:?}")))
        }
    }
}

pub(crate) fn cut(size: usize, prefix: Bytes) -> Result<Wal, ConnectorError> {
    let mut cursor = Cursor::new(prefix);
    cursor.take(25, "XLogData header")?;
    Ok(Wal::Cut { size: size.saturating_sub(25), prefix: cursor.rest() })
}

/// "Standby status update (F)": written, flushed and applied are all what is stored.
fn status_update(stored: Lsn, ask: bool) -> BytesMut {
    let mut out = BytesMut::with_capacity(39);
    out.put_u8(b'd');
    out.put_u32(38);
    out.put_u8(b'r');
    for _ in 0..3 {
        out.put_u64(stored.0);
    }
    out.put_i64(PgTime::from_unix_us(now_us()).0);
    out.put_u8(u8::from(ask));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_repeats_the_stored_position_three_times() {
        let status = status_update(Lsn(0x0102), true);
        assert_eq!((status.len(), status[0], status[5]), (39, b'd', b'r'));
        assert_eq!(u32::from_be_bytes(status[1..5].try_into().unwrap()), 38);
        for start in [6, 14, 22] {
            assert_eq!(&status[start..start + 8], &[0, 0, 0, 0, 0, 0, 1, 2]);
        }
        assert_eq!(status[38], 1);
    }

    #[test]
    fn an_acknowledgement_never_goes_back() {
        let (stored, receiver) = watch::channel(Lsn(5));
        let (_sender, batches) = mpsc::channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _guard = runtime.enter();
        let reader = Reader { batches, stored, work: tokio::spawn(async {}) };
        reader.acknowledge(Lsn(9));
        reader.acknowledge(Lsn(7));
        assert_eq!(*receiver.borrow(), Lsn(9));
    }
}
