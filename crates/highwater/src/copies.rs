//! `highwater backup`, `restore` and `topic restore`: by a running server, or on a folder that none holds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use highwater_log::{
    CopyError, CopyProgress, Log, LogConfig, LogError, Occupancy, RealFileSystem, look,
};
use serde_json::{Value, json};

use crate::api::Api;
use crate::cli::{BackupArguments, Cli, RestoreArguments, TopicRestore};
use crate::copy_jobs::{backed_up, restored};
use crate::failure::{Exit, Failure};
use crate::output::{self, Progress};

/// How often it is asked how far a copy is.
const ASK: Duration = Duration::from_millis(300);

/// `highwater backup`.
pub(crate) async fn backup(cli: &Cli, asked: &BackupArguments) -> Result<(), Failure> {
    let result = match &asked.data_dir {
        None => by_server(cli, "backup", &json!({ "dir": asked.dir })).await?,
        Some(data_dir) => {
            let (data_dir, dir) = (data_dir.clone(), asked.dir.clone());
            here(move |progress| {
                let log = open(&data_dir)?;
                let done = log.backup(&dir, progress)?;
                log.close()?;
                Ok(backed_up(&dir, &done))
            })
            .await?
        }
    };
    let plain = |key: &str| output::plain(&result[key]);
    let text = format!(
        "backed up {} topics with {} partitions into {}: {} bytes, of which {} were copied now",
        plain("topics"),
        plain("partitions"),
        plain("dir"),
        plain("bytes"),
        plain("bytes_copied"),
    );
    Ok(output::result(cli.output, &result, &text)?)
}

/// `highwater restore`.
pub(crate) async fn restore(cli: &Cli, asked: &RestoreArguments) -> Result<(), Failure> {
    let (dir, data_dir) = (asked.dir.clone(), asked.data_dir.clone());
    let result = here(move |progress| {
        let fs = Arc::new(RealFileSystem);
        Ok(restored(&highwater_log::restore(fs, &dir, &data_dir, progress)?))
    })
    .await?;
    let topics = result["topics"].as_array().map_or(0, Vec::len);
    let data_dir = asked.data_dir.display();
    let text = format!(
        "restored {topics} topics into {data_dir}; start with: highwater server --data-dir {data_dir}"
    );
    Ok(output::result(cli.output, &result, &text)?)
}

/// `highwater topic restore`.
pub(crate) async fn restore_topic(cli: &Cli, asked: &TopicRestore) -> Result<(), Failure> {
    let TopicRestore { dir, topic, name, data_dir } = asked;
    let result = match data_dir {
        None => {
            let body = json!({ "dir": dir, "topic": topic, "as": name });
            by_server(cli, "restore", &body).await?
        }
        Some(data_dir) => {
            let (data_dir, dir) = (data_dir.clone(), dir.clone());
            let (topic, name) = (topic.clone(), name.clone());
            here(move |progress| {
                let log = open(&data_dir)?;
                let done = log.restore_topic(&dir, &topic, name.as_deref(), progress)?;
                log.close()?;
                Ok(restored(&done))
            })
            .await?
        }
    };
    let id = result["new_id"].as_str().map_or_else(String::new, |id| {
        format!(", with the new id {id}, since another topic has the old one")
    });
    let name = output::plain(&result["topics"][0]);
    let text = format!("restored topic {name}: {} bytes{id}", output::plain(&result["bytes"]));
    Ok(output::result(cli.output, &result, &text)?)
}

/// Opens a folder that no server holds, as a start does.
fn open(data_dir: &Path) -> Result<Log, CopyError> {
    let fs = Arc::new(RealFileSystem);
    if look(fs.as_ref(), data_dir)? == Occupancy::Missing {
        return Err(CopyError::Missing { path: data_dir.to_owned() });
    }
    let config = LogConfig { flush_threads: 0, housekeeping: None, ..LogConfig::default() };
    Ok(Log::open(fs, data_dir, config)?)
}

/// Does it in this process, saying how far it is.
async fn here(
    work: impl FnOnce(&CopyProgress) -> Result<Value, CopyError> + Send + 'static,
) -> Result<Value, Failure> {
    let progress = Arc::new(CopyProgress::default());
    let copied = Arc::clone(&progress);
    let mut working = tokio::task::spawn_blocking(move || work(&copied));
    let mut shown = Progress::new();
    loop {
        tokio::select! {
            done = &mut working => {
                shown.end();
                let done = done.map_err(|error| Failure::new(Exit::Failed, "PANIC", error.to_string()))?;
                return done.map_err(|error| failed(&error));
            }
            () = tokio::time::sleep(ASK) => shown.say(&how_far(progress.done(), progress.total())),
        }
    }
}

/// Has the server do it, and waits.
async fn by_server(cli: &Cli, what: &str, body: &Value) -> Result<Value, Failure> {
    let (api, path) = (Api::of(cli)?, format!("/highwater/v1/{what}"));
    api.call(Method::POST, &path, Some(body)).await?;
    let mut shown = Progress::new();
    loop {
        tokio::time::sleep(ASK).await;
        let job = api.get(&path).await?;
        let bytes = |key: &str| job[key].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
        match job["state"].as_str() {
            Some("running") => shown.say(&how_far(bytes("bytes_done"), bytes("bytes_total"))),
            Some("done") => return Ok(job["result"].clone()),
            _ => {
                let part = |name: &str| output::plain(&job["error"][name]);
                let exit = exit_of(&part("code"));
                return Err(Failure::new(exit, &part("code"), part("what"))
                    .kept(part("kept"))
                    .remedy(part("do")));
            }
        }
    }
}

fn how_far(done: u64, total: u64) -> String {
    const MIB: u64 = 1 << 20;
    format!("{} of {} MiB", done / MIB, total / MIB)
}

/// A copy that failed, in the parts of rule U3.
pub(crate) fn failed(error: &CopyError) -> Failure {
    let code = error.code();
    Failure::new(exit_of(code), code, error.to_string()).kept(kept(error)).remedy(remedy(error))
}

fn exit_of(code: &str) -> Exit {
    match code {
        "BACKUP_NOT_FOUND" | "BACKUP_TOPIC_NOT_FOUND" => Exit::NotFound,
        "LOG_IO" | "LOG_NO_SPACE" | "BACKUP_STOPPED" => Exit::Failed,
        _ => Exit::Refused,
    }
}

fn kept(error: &CopyError) -> &'static str {
    match error {
        CopyError::Log(LogError::Io { .. } | LogError::NoSpace { .. }) | CopyError::Stopped => {
            "what was there before; what is half done is refused by name"
        }
        _ => "everything: nothing was changed",
    }
}

fn remedy(error: &CopyError) -> String {
    match error {
        CopyError::Log(LogError::Locked { .. }) => {
            "leave --data-dir out, so that the server that holds the folder does it".to_owned()
        }
        CopyError::Log(LogError::TopicExists { name }) => {
            format!("restore it beside: add --as {name}-restored; or delete the topic first")
        }
        CopyError::Log(_) => "do what the text says, then try again".to_owned(),
        CopyError::Damaged { .. } => {
            "take another backup to restore from; highwater backup into this folder copies a file anew that is missing or of another length"
                .to_owned()
        }
        CopyError::Unfinished { path } => {
            format!("finish it with highwater backup {}, or take another one", path.display())
        }
        CopyError::Missing { path } => format!("ls {} shows what is there", path.display()),
        CopyError::Foreign { .. } | CopyError::TargetNotEmpty { .. } => {
            "name a folder that is empty or not there".to_owned()
        }
        CopyError::OtherCluster { .. } => "give each cluster a folder of its own".to_owned(),
        CopyError::ArchiveGone { .. } => {
            "mount the volume, or name another archive.dir and restart".to_owned()
        }
        CopyError::Busy { .. } => "wait until that one is done".to_owned(),
        CopyError::TopicMissing { path, .. } => {
            format!("grep '\"topic\":' -r {} --include=*.json shows which there are", path.display())
        }
        CopyError::TopicAmbiguous { .. } => "name the topic by its id".to_owned(),
        CopyError::TopicInternal { .. } => {
            "leave --as out, on a stopped folder that has no such topic; or restore the whole backup into a new folder"
                .to_owned()
        }
        CopyError::Stopped => "begin it again".to_owned(),
    }
}
