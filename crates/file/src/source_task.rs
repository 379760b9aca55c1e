//! One running reader of a file.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use highwater_connector::{
    ConnectorError, ErrorKind, Fact, Position, Schema, SchemaAndValue, SourceItem, SourceOffset,
    SourceTask, Start, TaskStore, Type, Value, ValueRecord,
};

use crate::reader::{Bounds, Line, Reader};
use crate::source::{offset_of, position_of};

/// How long a poll waits at the end of the file, and for a file that is not there.
const PAUSE: Duration = Duration::from_millis(100);

/// A place in the file.
#[derive(Debug)]
struct Place(u64);

impl Position for Place {
    fn offset(&self) -> SourceOffset {
        offset_of(self.0)
    }
}

/// See the module's text.
pub(crate) struct FileSourceTask {
    bounds: Bounds,
    topic: Arc<str>,
    /// That of a line: the same for all, so that what is made of it is remembered.
    schema: Schema,
    /// The next byte to read.
    position: u64,
    /// The open file; none while it is not there, and while a thread reads it.
    reader: Option<Reader>,
    at_end: bool,
}

impl FileSourceTask {
    pub(crate) fn new(bounds: Bounds, topic: &str) -> Self {
        let schema = Schema::new(Type::String);
        Self { bounds, topic: topic.into(), schema, position: 0, reader: None, at_end: false }
    }

    /// Reads in a thread of its own: a file can lie on a disk that does not answer.
    async fn read(&mut self) -> Result<Option<Vec<Line>>, ConnectorError> {
        let (reader, bounds, position) = (self.reader.take(), self.bounds.clone(), self.position);
        let read = move || {
            let reader = match reader {
                Some(reader) => Some(reader),
                None => Reader::open(bounds, position)?,
            };
            let Some(mut reader) = reader else { return Ok(None) };
            let lines = reader.read()?;
            Ok(Some((reader, lines)))
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(|error| {
            ConnectorError::again("FILE_FAILED", ErrorKind::Source, error.to_string())
        })?;
        let Some((reader, lines)) = read? else { return Ok(None) };
        self.reader = Some(reader);
        Ok(Some(lines))
    }

    /// A line as Kafka Connect's file source yields it, read at this time.
    fn item(&self, (line, position): Line, now: Option<i64>) -> SourceItem {
        SourceItem::Values(ValueRecord {
            topic: Arc::clone(&self.topic),
            partition: None,
            key: SchemaAndValue::default(),
            value: SchemaAndValue::of(self.schema.clone(), Value::String(line)),
            headers: Vec::new(),
            timestamp: now,
            position: Arc::new(Place(position)),
            boundary: true,
        })
    }
}

#[async_trait]
impl SourceTask for FileSourceTask {
    async fn start(&mut self, start: Start, _: Arc<dyn TaskStore>) -> Result<(), ConnectorError> {
        self.position = start.offset.as_ref().map_or(Ok(0), position_of)?;
        Ok(())
    }

    async fn poll(&mut self) -> Result<Vec<SourceItem>, ConnectorError> {
        let lines = self.read().await?.unwrap_or_default();
        self.at_end = lines.is_empty();
        if let Some((_, position)) = lines.last() {
            self.position = *position;
        } else {
            tokio::time::sleep(PAUSE).await;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let now = now.and_then(|since| i64::try_from(since.as_millis()).ok());
        Ok(lines.into_iter().map(|line| self.item(line, now)).collect())
    }

    /// A file is told nothing.
    async fn committed(&mut self, _: &dyn Position) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn stop(&mut self) {
        self.reader = None;
    }

    fn activity(&self) -> String {
        let (path, position) = (self.bounds.path.display(), self.position);
        match &self.reader {
            None => format!("Waits for {path} to be there"),
            Some(_) if self.at_end => format!("Waits for more of {path}, at byte {position}"),
            Some(_) => format!("Reads {path}, at byte {position}"),
        }
    }

    fn facts(&self) -> Vec<Fact> {
        vec![("position", self.position.to_string())]
    }
}
