//! `/highwater/v1/backup` and `/highwater/v1/restore`: copies of the log, made by the server one at a time.
//!
//! The server writes and reads there with its own rights, whoever asks; so it does only below `backup.dir`
//! (rule A4), and restores from `archive.dir` as well. HTTP knows no login yet: copies are made for who asks
//! from this machine, wherever the listener lies.

use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use highwater_log::{BackupSummary, CopyError, CopyProgress, Log, Restored};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::copies::failed;
use crate::kafka::time_text;

/// Code of what the server may not do for who asks.
const NOT_ALLOWED: &str = "BACKUP_NOT_ALLOWED";

/// What makes copies, and the last one of each kind.
pub(crate) struct CopyJobs {
    log: Log,
    /// Below which backups lie.
    backups: Option<PathBuf>,
    archive: Option<PathBuf>,
    jobs: Mutex<Jobs>,
}

#[derive(Default)]
struct Jobs {
    backup: Option<Job>,
    restore: Option<Job>,
}

/// A copy that is made or was made.
#[derive(Clone)]
struct Job {
    dir: PathBuf,
    progress: Arc<CopyProgress>,
    ended: Arc<Ended>,
}

/// How a job ended, once it has.
type Ended = OnceLock<Result<Value, CopyError>>;

/// The body of `POST /highwater/v1/backup`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Backup {
    dir: PathBuf,
}

/// The body of `POST /highwater/v1/restore`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Restore {
    dir: PathBuf,
    topic: String,
    #[serde(default, rename = "as")]
    name: Option<String>,
}

impl CopyJobs {
    pub(crate) fn new(log: Log, backups: Option<PathBuf>, archive: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self { log, backups, archive, jobs: Mutex::default() })
    }

    /// The routes.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/highwater/v1/backup", get(last_backup).post(backup))
            .route("/highwater/v1/restore", get(last_restore).post(restore))
            .layer(middleware::from_fn(only_from_here))
            .with_state(Arc::clone(self))
    }

    /// Ends what is under way; what was there before stands.
    pub(crate) async fn stop(&self) {
        let jobs = self.jobs.lock().await;
        for job in jobs.backup.iter().chain(&jobs.restore) {
            job.progress.stop();
        }
    }

    /// A folder that the server may use: below one of `roots`, relative to the first.
    fn resolve(&self, dir: &Path, roots: &[Option<&PathBuf>]) -> Result<PathBuf, Box<Response>> {
        let first = roots.iter().copied().flatten().next();
        let Some(first) = first else {
            return Err(Box::new(not_allowed("no backup.dir is set")));
        };
        let dir = first.join(dir);
        let plain = |part: Component<'_>| !matches!(part, Component::ParentDir);
        let below = |root: &PathBuf| dir.components().all(plain) && is_below(&dir, root);
        if roots.iter().copied().flatten().any(below) {
            return Ok(dir);
        }
        let what = format!("{} does not lie below {}", dir.display(), first.display());
        Err(Box::new(not_allowed(&what)))
    }

    /// Begins a job, unless one is under way.
    async fn begin(
        self: &Arc<Self>,
        dir: PathBuf,
        slot: fn(&mut Jobs) -> &mut Option<Job>,
        work: impl FnOnce(&Log, &Path, &CopyProgress) -> Result<Value, CopyError> + Send + 'static,
    ) -> Response {
        let mut jobs = self.jobs.lock().await;
        let running = |job: &&Job| job.ended.get().is_none();
        if let Some(job) = jobs.backup.iter().chain(&jobs.restore).find(running) {
            let what = format!("a copy in {} is under way", job.dir.display());
            let remedy = "wait until it is done: GET /highwater/v1/backup says how far it is";
            return refused(StatusCode::CONFLICT, "BACKUP_RUNNING", &what, remedy);
        }
        let job = Job { dir, progress: Arc::default(), ended: Arc::default() };
        *slot(&mut jobs) = Some(job.clone());
        drop(jobs);
        let (log, answer) = (self.log.clone(), (StatusCode::ACCEPTED, Json(job.json())));
        tokio::task::spawn_blocking(move || {
            let ended = work(&log, &job.dir, &job.progress);
            if let Err(error) = &ended {
                tracing::error!(dir = %job.dir.display(), code = error.code(), %error, "a copy of the log has failed");
            }
            // It ends once.
            let _ = job.ended.set(ended);
        });
        answer.into_response()
    }
}

impl Job {
    fn json(&self) -> Value {
        let mut document = json!({
            "dir": self.dir,
            "bytes_done": self.progress.done().to_string(),
            "bytes_total": self.progress.total().to_string(),
        });
        let (state, key, value) = match self.ended.get() {
            None => ("running", "result", Value::Null),
            Some(Ok(result)) => ("done", "result", result.clone()),
            Some(Err(error)) => ("failed", "error", json!(failed(error))),
        };
        document["state"] = json!(state);
        document[key] = value;
        document
    }
}

/// Lets pass what comes from this machine.
async fn only_from_here(
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    if is_here(peer.ip()) {
        return next.run(request).await;
    }
    let what = format!("{peer} does not ask over loopback, where alone copies are asked for");
    let remedy = "run the command where the server runs, with --url http://127.0.0.1:PORT";
    refused(StatusCode::FORBIDDEN, NOT_ALLOWED, &what, remedy)
}

/// Also where a listener of IPv6 takes IPv4.
fn is_here(peer: IpAddr) -> bool {
    peer.to_canonical().is_loopback()
}

async fn backup(State(jobs): State<Arc<CopyJobs>>, Json(asked): Json<Backup>) -> Response {
    match jobs.resolve(&asked.dir, &[jobs.backups.as_ref()]) {
        Err(refused) => *refused,
        Ok(dir) => {
            let work = |log: &Log, dir: &Path, progress: &CopyProgress| {
                log.backup(dir, progress).map(|done| backed_up(dir, &done))
            };
            jobs.begin(dir, |jobs| &mut jobs.backup, work).await
        }
    }
}

async fn restore(State(jobs): State<Arc<CopyJobs>>, Json(asked): Json<Restore>) -> Response {
    match jobs.resolve(&asked.dir, &[jobs.backups.as_ref(), jobs.archive.as_ref()]) {
        Err(refused) => *refused,
        Ok(dir) => {
            let work = move |log: &Log, dir: &Path, progress: &CopyProgress| {
                let name = asked.name.as_deref();
                log.restore_topic(dir, &asked.topic, name, progress).map(|done| restored(&done))
            };
            jobs.begin(dir, |jobs| &mut jobs.restore, work).await
        }
    }
}

async fn last_backup(State(jobs): State<Arc<CopyJobs>>) -> Response {
    last(jobs.jobs.lock().await.backup.as_ref())
}

async fn last_restore(State(jobs): State<Arc<CopyJobs>>) -> Response {
    last(jobs.jobs.lock().await.restore.as_ref())
}

fn last(job: Option<&Job>) -> Response {
    match job {
        Some(job) => Json(job.json()).into_response(),
        None => Json(json!({ "state": "none" })).into_response(),
    }
}

/// What a backup has done, in our own JSON.
pub(crate) fn backed_up(dir: &Path, done: &BackupSummary) -> Value {
    json!({
        "dir": dir,
        "topics": done.topics,
        "partitions": done.partitions,
        "bytes": done.bytes.to_string(),
        "bytes_copied": done.copied.to_string(),
        "made_at": time_text(done.made_at_ms),
    })
}

/// What was restored, in our own JSON.
pub(crate) fn restored(done: &Restored) -> Value {
    json!({
        "topics": done.topics,
        "bytes": done.bytes.to_string(),
        "new_id": done.new_id.map(|id| id.to_string()),
    })
}

/// Whether a folder that may not be there yet lies below another, wherever links lead.
fn is_below(dir: &Path, root: &Path) -> bool {
    let Ok(root) = root.canonicalize() else { return dir.starts_with(root) && dir != root };
    let there = dir.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    there.is_some_and(|(part, real)| {
        let rest = dir.strip_prefix(part).unwrap_or(Path::new(""));
        let real = real.join(rest);
        real.starts_with(&root)
    })
}

fn not_allowed(what: &str) -> Response {
    let remedy = "name a folder below backup.dir, which the server's settings say; or stop the server and run highwater backup DIR --data-dir …";
    refused(StatusCode::FORBIDDEN, NOT_ALLOWED, what, remedy)
}

fn refused(status: StatusCode, code: &str, what: &str, remedy: &str) -> Response {
    let body = json!({
        "error_code": status.as_u16(),
        "message": what,
        "code": code,
        "what": what,
        "kept": "everything: nothing was changed",
        "do": remedy,
    });
    (status, Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn copies_are_made_for_this_machine_alone() {
        use tower_service::Service as _;
        let mut router = Router::new()
            .route("/", get(async || "made"))
            .layer(middleware::from_fn(only_from_here));
        for (peer, here) in [
            ("127.0.0.1", true),
            ("127.8.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("0.0.0.0", false),
            ("fe80::1", false),
        ] {
            let peer = SocketAddr::new(peer.parse().unwrap(), 4711);
            let mut request = Request::get("/").body(axum::body::Body::empty()).unwrap();
            request.extensions_mut().insert(ConnectInfo(peer));
            let answer = router.call(request).await.unwrap();
            let expected = if here { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(answer.status(), expected, "{peer}");
        }
    }

    #[test]
    fn a_folder_lies_below_wherever_links_lead() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        assert!(is_below(&root.join("in"), &root) && is_below(&root.join("in/new/er"), &root));
        for out in ["link", "link/new"] {
            assert!(!is_below(&root.join(out), &root), "{out}");
        }
        assert!(!is_below(&outside, &root) && !is_below(Path::new("/"), &root));
        assert!(!is_below(&dir.path().join("rooter"), &root));
    }
}
