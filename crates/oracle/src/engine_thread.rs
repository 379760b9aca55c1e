//! An engine on a thread of its own, and the queue behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use highwater_connector::{Position, SourceItem, SourceOffset, SourceRecord, Start};
use tokio::sync::{mpsc, oneshot, watch};

use crate::engine::{Engine, EngineProgress, EngineStart, Stopped, Turn};
use crate::outlet::{Closed, Outlet};
use crate::sessions::{self, Sessions};
use crate::settings::Settings;

/// The shortest pause where there is no new redo.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// How long an engine may take to end before it is left alone: a call of the database that hangs ends with
/// its own time-out.
const PATIENCE: Duration = Duration::from_secs(5);

/// What comes out of an engine that runs.
pub(crate) struct EngineThread {
    /// What it delivers, in order; ends with it.
    pub(crate) items: mpsc::Receiver<SourceItem>,
    /// How far it is; `None` until its first turn.
    pub(crate) progress: watch::Receiver<Option<EngineProgress>>,
    opened: oneshot::Receiver<SourceOffset>,
    go: Option<oneshot::Sender<()>>,
    is_stopped: Arc<AtomicBool>,
    work: JoinHandle<Result<(), Stopped>>,
}

impl EngineThread {
    /// Begins to open an engine. It reads no redo before [`go`](Self::go).
    pub(crate) fn spawn(
        settings: Arc<Settings>,
        sessions: Arc<dyn Sessions>,
        start: Start,
    ) -> std::io::Result<Self> {
        let waiting = settings.poll_max_records.saturating_mul(4).max(1_000);
        let (sender, items) = mpsc::channel(waiting);
        let (said, progress) = watch::channel(None);
        let (opening, opened) = oneshot::channel();
        let (go, gone) = oneshot::channel();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let queue = Queue { items: sender, is_stopped: Arc::clone(&is_stopped) };
        let starting = Starting { settings, sessions, start, opening, gone, said };
        let name = format!("oracle-{}", starting.settings.records.prefix);
        let work = thread::Builder::new().name(name).spawn(move || starting.run(queue))?;
        Ok(Self { items, progress, opened, go: Some(go), is_stopped, work })
    }

    /// The position that it starts from; `None` if it could not be opened.
    pub(crate) async fn opened(&mut self) -> Option<SourceOffset> {
        (&mut self.opened).await.ok()
    }

    /// Lets it read redo.
    pub(crate) fn go(&mut self) {
        if let Some(go) = self.go.take() {
            // One that has ended says why when it is asked for items.
            let _ = go.send(());
        }
    }

    /// Ends it, and says why it ended: `None` where it was only told to, or takes too long to say.
    pub(crate) async fn end(mut self) -> Option<Stopped> {
        self.is_stopped.store(true, Ordering::Release);
        self.items.close();
        drop((self.items, self.go));
        self.work.thread().unpark();
        let joined = tokio::task::spawn_blocking(move || self.work.join());
        let Ok(joined) = tokio::time::timeout(PATIENCE, joined).await else { return None };
        match joined {
            Ok(Ok(ended)) => ended.err().filter(|why| !matches!(why, Stopped::Closed(_))),
            // The worker knows what to do about a task that panics.
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => None,
        }
    }
}

/// Puts an engine's records where the task takes them; waits where there is no room.
#[derive(Clone)]
struct Queue {
    items: mpsc::Sender<SourceItem>,
    is_stopped: Arc<AtomicBool>,
}

impl Queue {
    fn put_item(&self, item: SourceItem) -> Result<(), Closed> {
        self.items.blocking_send(item).map_err(|_| Closed)
    }
}

impl Outlet for Queue {
    fn put(&mut self, records: &mut Vec<SourceRecord>) -> Result<(), Closed> {
        records.drain(..).try_for_each(|record| self.put_item(SourceItem::Record(record)))
    }

    fn idle(&mut self, position: Arc<dyn Position>) -> Result<(), Closed> {
        self.put_item(SourceItem::Idle(position))
    }

    fn wait(&mut self, time: Duration) -> Result<(), Closed> {
        let end = Instant::now() + time;
        loop {
            if self.is_stopped.load(Ordering::Acquire) {
                return Err(Closed);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::park_timeout(left);
        }
    }
}

/// What the thread begins with.
struct Starting {
    settings: Arc<Settings>,
    sessions: Arc<dyn Sessions>,
    start: Start,
    opening: oneshot::Sender<SourceOffset>,
    gone: oneshot::Receiver<()>,
    said: watch::Sender<Option<EngineProgress>>,
}

impl Starting {
    fn run(self, queue: Queue) -> Result<(), Stopped> {
        let pause = self.settings.poll_linger.saturating_mul(2).max(SHORTEST_PAUSE);
        let mut pausing = queue.clone();
        let mut engine = self.settings.open(&*self.sessions, self.start, queue)?;
        if self.opening.send(engine.position()).is_err() || self.gone.blocking_recv().is_err() {
            return Err(Closed.into());
        }
        loop {
            let turn = engine.turn()?;
            self.said.send_replace(Some(engine.progress()));
            let pause = if turn == Turn::Idle { pause } else { Duration::ZERO };
            pausing.wait(pause)?;
        }
    }
}

impl Settings {
    fn open<O: Outlet>(
        &self,
        sessions: &dyn Sessions,
        start: Start,
        outlet: O,
    ) -> Result<Engine<O>, Stopped> {
        let (session, database) = sessions::ask(sessions, self, |session| session.database())?;
        let settings = self.engine(&database, start.generation)?;
        let Start { offset, tables, .. } = start;
        Engine::open(settings, session, EngineStart { offset, tables }, outlet)
    }
}
