//! The kind of sink, and one running writer of it.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use highwater_connector::{
    AllowedPaths, Claim, Config, ConfigDef, ConfigKey, ConnectorError, ErrorKind, Fact, Importance,
    KeyType, LogRecord, Problem, SinkConnector, SinkContext, SinkOffsets, SinkRecord, SinkTask,
    Value, text,
};

use crate::error;
use crate::source::{FILE, file_problem};
use crate::writer::Writer;

const NO_OUTPUT: &str = "standard output is not written by a server";

/// The file sink: the value of each record becomes a line at the end of a file.
pub struct FileSinkConnector {
    allowed: AllowedPaths,
    def: ConfigDef,
}

impl FileSinkConnector {
    /// A file sink that writes below `allowed` only.
    pub fn new(allowed: AllowedPaths) -> Self {
        let file = ConfigKey::new(
            FILE,
            KeyType::String,
            None,
            Importance::High,
            "File to append to; made when it is not there. It must lie below the server's worker.allowed_paths. The server has no standard output, which Kafka Connect writes to without this key.",
        );
        Self { allowed, def: ConfigDef::new(vec![file]) }
    }

    fn path(config: &Config) -> PathBuf {
        PathBuf::from(config.text(FILE))
    }
}

#[async_trait]
impl SinkConnector for FileSinkConnector {
    fn classes(&self) -> &'static [&'static str] {
        &[
            "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "FileStreamSinkConnector",
            "FileStreamSink",
            "file-sink",
        ]
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn config(&self) -> &ConfigDef {
        &self.def
    }

    fn problems(&self, config: &Config) -> Vec<Problem> {
        let problem = file_problem(&self.allowed, config.text(FILE), NO_OUTPUT);
        problem.into_iter().collect()
    }

    fn claims(&self, config: &Config) -> Vec<Claim> {
        let path = Self::path(config);
        let place = self.allowed.resolve(&path).unwrap_or(path);
        vec![Claim { key: FILE, what: format!("the end of file {}", place.display()) }]
    }

    fn task(&self, config: &Config) -> Result<Box<dyn SinkTask>, ConnectorError> {
        let path = Self::path(config);
        if config.text(FILE).trim().is_empty() {
            let what = format!("file is empty; {NO_OUTPUT}");
            let kind = ErrorKind::Configuration;
            return Err(ConnectorError::stop("CONFIG_INVALID", kind, what, "set file"));
        }
        self.allowed.resolve(&path).map_err(|error| error::failed(&path, "written", &error))?;
        let allowed = self.allowed.clone();
        Ok(Box::new(FileSinkTask { path, allowed, writer: None, context: None, lines: 0 }))
    }
}

struct FileSinkTask {
    path: PathBuf,
    allowed: AllowedPaths,
    /// The open file; none while a thread writes to it, and after that thread has failed.
    writer: Option<Writer>,
    context: Option<Arc<dyn SinkContext>>,
    /// Lines appended in this run.
    lines: u64,
}

impl FileSinkTask {
    /// Has a thread of its own do something with the file.
    async fn with_file(
        &mut self,
        act: impl FnOnce(&mut Writer) -> Result<(), ConnectorError> + Send + 'static,
    ) -> Result<(), ConnectorError> {
        let (writer, path, allowed) = (self.writer.take(), self.path.clone(), self.allowed.clone());
        let act = move || {
            let mut writer = match writer {
                Some(writer) => writer,
                None => match Writer::open(&path, &allowed) {
                    Ok(writer) => writer,
                    Err(error) => return (None, Err(error)),
                },
            };
            let done = act(&mut writer);
            (Some(writer), done)
        };
        let (writer, done) = tokio::task::spawn_blocking(act).await.map_err(|error| {
            ConnectorError::again("FILE_FAILED", ErrorKind::Source, error.to_string())
        })?;
        self.writer = writer;
        done
    }

    /// The records as lines, and how many these are; records that are none are reported.
    async fn lines(&self, records: &[SinkRecord]) -> Result<(Vec<u8>, u64), ConnectorError> {
        let (mut lines, mut count) = (Vec::new(), 0);
        for record in records {
            match (append(&mut lines, record), &self.context) {
                (Ok(()), _) => count += 1,
                (Err(error), Some(context)) => context.report(record, error).await?,
                (Err(error), None) => return Err(error),
            }
        }
        Ok((lines, count))
    }
}

/// The value as Kafka Connect's file sink prints it: as Java's `toString` has it.
fn append(lines: &mut Vec<u8>, record: &SinkRecord) -> Result<(), ConnectorError> {
    if let Value::String(line) = &record.value.value {
        lines.extend_from_slice(line.as_bytes());
    } else {
        let line = text::java(&record.value.value).map_err(|why| {
            let LogRecord { from, offset, .. } = &record.original;
            error::not_a_line(&format!("{from}@{offset}"), &why.to_string())
        })?;
        lines.extend_from_slice(line.as_bytes());
    }
    lines.push(b'\n');
    Ok(())
}

#[async_trait]
impl SinkTask for FileSinkTask {
    async fn start(&mut self, context: Arc<dyn SinkContext>) -> Result<(), ConnectorError> {
        self.context = Some(context);
        self.with_file(|_| Ok(())).await
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<usize, ConnectorError> {
        let (lines, count) = self.lines(records).await?;
        if !lines.is_empty() {
            self.with_file(move |writer| writer.append(&lines)).await?;
        }
        self.lines += count;
        Ok(records.len())
    }

    /// What was appended is durable once the file is synced.
    async fn pre_commit(&mut self, accepted: &SinkOffsets) -> Result<SinkOffsets, ConnectorError> {
        self.with_file(Writer::sync).await?;
        Ok(accepted.clone())
    }

    async fn stop(&mut self) {
        self.writer = None;
    }

    fn activity(&self) -> String {
        format!("Writes to {}; {} lines in this run", self.path.display(), self.lines)
    }

    fn facts(&self) -> Vec<Fact> {
        vec![("lines", self.lines.to_string())]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use highwater_connector::{SchemaAndValue, TopicPartition};

    use super::*;

    /// Tolerates everything, and keeps the offset of what was reported last.
    #[derive(Default)]
    struct Tolerant(AtomicI64);

    #[async_trait]
    impl SinkContext for Tolerant {
        fn rewind(&self, _: &TopicPartition, _: i64) {}

        fn request_commit(&self) {}

        async fn report(&self, bad: &SinkRecord, _: ConnectorError) -> Result<(), ConnectorError> {
            self.0.store(bad.original.offset, Ordering::Relaxed);
            Ok(())
        }
    }

    fn record(offset: i64, value: Value) -> SinkRecord {
        let from = TopicPartition::new("lines", 0);
        let (topic, key) = (from.topic.clone(), SchemaAndValue::default());
        let (value, headers) = (SchemaAndValue::schemaless(value), Vec::new());
        let original =
            LogRecord { from, offset, timestamp: 0, key: None, value: None, headers: Vec::new() };
        SinkRecord { original, topic, key, value, headers }
    }

    #[tokio::test]
    async fn lines_that_it_did_not_write_are_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        let allowed = AllowedPaths::new("the.setting", [dir.path().to_owned()]);
        let mut task =
            FileSinkTask { path: path.clone(), allowed, writer: None, context: None, lines: 0 };
        let context = Arc::new(Tolerant::default());
        task.start(Arc::clone(&context) as _).await.unwrap();
        let records = [record(0, Value::text("a")), record(1, Value::Bytes("b".into()))];
        assert_eq!(task.put(&records).await.unwrap(), 2);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n");
        assert_eq!(context.0.load(Ordering::Relaxed), 1);
        assert!(task.activity().ends_with("; 1 lines in this run"), "{}", task.activity());
        assert_eq!(task.facts(), [("lines", "1".to_owned())]);
    }
}
