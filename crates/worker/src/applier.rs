//! Keeps the connectors as a folder of files says, by the changes that operators ask for, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{Finding, Severity};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::connector_files::{Declaration, Look};
use crate::declared::{Change, Mark, changes};
use crate::herder::Herder;
use crate::rest_error::Refusal;

/// How long a look at the folder may take before that is said.
const LOOK_PATIENCE: Duration = Duration::from_secs(30);

/// After how long a change that was refused is tried again while its file stays as it is: what it
/// depends on may have changed.
const RETRY: Duration = Duration::from_secs(30);

/// What is known of the folder, for those who ask.
#[derive(Default)]
pub(crate) struct FolderState {
    /// The newest look; `None` before the first.
    look: Option<Look>,
    /// What is wrong, by file; of the folder itself under no name.
    wrong: BTreeMap<String, String>,
}

/// A folder of connector files; nothing where the server has none.
#[derive(Default)]
pub(crate) struct Folder {
    path: Option<PathBuf>,
    state: Mutex<FolderState>,
}

impl Folder {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, state: Mutex::default() }
    }

    /// Whether the folder has this file, as far as is known.
    fn has(&self, file: &str) -> bool {
        let state = self.state.lock();
        self.path.is_some() && state.look.as_ref().is_none_or(|look| look.files.contains_key(file))
    }

    /// What an operator should know of it.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let Some(folder) = &self.path else { return Vec::new() };
        let state = self.state.lock();
        state.wrong.iter().map(|(file, why)| finding(folder, file, why)).collect()
    }

    /// Says what is wrong now, each thing once.
    fn tell(&self, wrong: BTreeMap<String, String>) {
        let Some(folder) = &self.path else { return };
        let mut state = self.state.lock();
        for (file, why) in wrong.iter().filter(|(file, why)| state.wrong.get(*file) != Some(why)) {
            let file = place(folder, file).display().to_string();
            tracing::error!(file, why, "a connector file is not followed; what was there stays");
        }
        for file in state.wrong.keys().filter(|file| !wrong.contains_key(*file)) {
            let file = place(folder, file).display().to_string();
            tracing::info!(file, "the connector file is right again, or gone");
        }
        state.wrong = wrong;
    }
}

fn finding(folder: &Path, file: &str, why: &str) -> Finding {
    Finding::new(
        Severity::Error,
        "CONNECTOR_FILE",
        why,
        "its connectors stay as they were last",
        "correct it; it is looked at again every few seconds",
    )
    .about(format!("file {}", place(folder, file).display()))
}

/// Where something is wrong: a file, or the folder itself, which goes under no name.
fn place(folder: &Path, file: &str) -> PathBuf {
    if file.is_empty() { folder.to_owned() } else { folder.join(file) }
}

impl Herder {
    /// Refuses a change of a connector that a file wants.
    ///
    /// # Errors
    /// The file's name.
    pub(crate) fn check_undeclared(&self, name: &str) -> Result<(), Refusal> {
        let file = self.configs().mark(name).map(|mark| mark.file.clone());
        match file.filter(|file| self.folder.has(file)) {
            None => Ok(()),
            Some(file) => Err(Refusal::Declared { name: name.to_owned(), file }),
        }
    }
}

/// The task that follows the folder.
pub(crate) struct Applier {
    stop: watch::Sender<bool>,
    ended: JoinHandle<()>,
}

impl Applier {
    /// Follows the folder that the worker is configured with, where there is one.
    pub(crate) fn start(herder: &Arc<Herder>) -> Option<Self> {
        let folder = herder.folder.path.clone()?;
        let (stop, stopped) = watch::channel(false);
        let following = Following {
            herder: Arc::clone(herder),
            folder,
            before: None,
            refused: BTreeMap::new(),
        };
        Some(Self { stop, ended: tokio::spawn(following.run(stopped)) })
    }

    /// Ends it; a change that it has begun is done.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        // Its panic, if it had one, is in the log already.
        drop(self.ended.await);
    }
}

struct Following {
    herder: Arc<Herder>,
    folder: PathBuf,
    /// The look before; `None` before the first.
    before: Option<Look>,
    /// Changes that were refused, by file: which, why, and when.
    refused: BTreeMap<String, (Declaration, String, Instant)>,
}

impl Following {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            let look = tokio::select! {
                look = self.look() => look,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            };
            self.follow(look, &stopped).await;
            let pause = tokio::time::sleep(self.herder.config.connectors_interval);
            tokio::select! {
                () = pause => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }

    /// Looks at the folder. One that does not answer has one look that waits, and no more.
    async fn look(&self) -> Result<Look, String> {
        let (folder, before) = (self.folder.clone(), self.before.clone().unwrap_or_default());
        let mut looking = tokio::task::spawn_blocking(move || Look::at(&folder, &before));
        loop {
            match timeout(LOOK_PATIENCE, &mut looking).await {
                Ok(Ok(look)) => return look.map_err(|error| format!("it cannot be read: {error}")),
                Ok(Err(error)) => return Err(format!("the look at it broke: {error}")),
                Err(_) => self.herder.folder.tell(BTreeMap::from([(
                    String::new(),
                    format!("it has not been read within {LOOK_PATIENCE:?}"),
                )])),
            }
        }
    }

    async fn follow(&mut self, look: Result<Look, String>, stopped: &watch::Receiver<bool>) {
        let look = match look {
            Ok(look) => look,
            Err(why) => return self.herder.folder.tell(BTreeMap::from([(String::new(), why)])),
        };
        self.herder.folder.state.lock().look = Some(look.clone());
        let wrong: BTreeMap<String, String> =
            look.wanted().wrong.into_iter().map(|(file, why)| (file.to_owned(), why)).collect();
        self.refused.retain(|file, _| look.files.contains_key(file) && !wrong.contains_key(file));
        if self.herder.leads() {
            let changes = changes(&self.herder.configs(), self.before.as_ref(), &look);
            for change in changes {
                if *stopped.borrow() {
                    return;
                }
                self.apply(change).await;
            }
        }
        let refused = self.refused.iter().map(|(file, (_, why, _))| (file.clone(), why.clone()));
        let empty = self.empty(&look).map(|why| (String::new(), why));
        self.herder.folder.tell(wrong.into_iter().chain(refused).chain(empty).collect());
        self.before = Some(look);
    }

    /// What is to be said of a folder that has lost everything.
    fn empty(&self, look: &Look) -> Option<String> {
        let configs = self.herder.configs();
        let made = configs.marks().keys().filter(|name| configs.properties(name).is_some()).count();
        (look.files.is_empty() && made > 0).then(|| {
            format!(
                "it has no connector file, and {made} connectors come from it: none is deleted while \
                 it looks like a folder that is not mounted. If they shall go: highwater connector \
                 delete NAME"
            )
        })
    }

    async fn apply(&mut self, change: Change) {
        let done = match change {
            Change::Put(declaration, mark) => return self.put(declaration, mark).await,
            Change::Delete(name) => {
                tracing::info!(connector = name, "its file is gone, and it goes");
                match self.herder.delete(&name).await {
                    Ok(()) | Err(Refusal::NotFound(_)) => self.herder.set_mark(&name, None).await,
                    Err(refusal) => Err(refusal),
                }
            }
            Change::Release(name) => self.herder.set_mark(&name, None).await,
        };
        if let Err(refusal) = done {
            tracing::warn!(why = refusal.message(), "a connector of a file that is gone is left");
        }
    }

    async fn put(&mut self, declaration: Declaration, mark: Mark) {
        let file = mark.file.clone();
        let tried = self.refused.get(&file).filter(|(same, ..)| *same == declaration);
        if tried.is_some_and(|(_, _, when)| when.elapsed() < RETRY) {
            return;
        }
        // Boxed: the whole of it is too deep for this one's type.
        match Box::pin(self.herder.declare(&declaration, &mark)).await {
            Ok(()) => {
                self.refused.remove(&file);
                let name = declaration.name.as_str();
                tracing::info!(connector = name, file, "it is as its file says");
            }
            Err(refusal) => {
                let why = refusal.message();
                self.refused.insert(file, (declaration, why, Instant::now()));
            }
        }
    }
}
