//! The kind of source.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use highwater_connector::{
    AllowedPaths, Config, ConfigDef, ConfigKey, ConnectorError, ErrorKind, ExactlyOnce, Importance,
    KeyType, OffsetChange, OffsetVerdict, Problem, RecordForm, Routing, SourceConnector,
    SourceOffset, SourcePartition, SourceTask, Topics,
};
use serde_json::Map;

use crate::error;
use crate::reader::{Bounds, begins_line};
use crate::source_task::FileSourceTask;

pub(crate) const FILE: &str = "file";
const TOPIC: &str = "topic";
const NO_INPUT: &str = "standard input is not read by a server";
const BATCH: &str = "batch.size";
const LONGEST: &str = "line.max.bytes";

/// Fields of the offset and its partition, as Kafka Connect's file source names them.
const FILENAME: &str = "filename";
const POSITION: &str = "position";

/// The file source: each line of a file becomes a record of a topic, as it is appended.
pub struct FileSourceConnector {
    allowed: AllowedPaths,
    def: ConfigDef,
}

impl FileSourceConnector {
    /// A file source that reads below `allowed` only.
    pub fn new(allowed: AllowedPaths) -> Self {
        Self { allowed, def: ConfigDef::new(keys()) }
    }
}

fn keys() -> Vec<ConfigKey> {
    use Importance::{High, Low};
    vec![
        ConfigKey::new(
            FILE,
            KeyType::String,
            None,
            High,
            "File to read, line by line; it may come later. It must lie below the server's worker.allowed_paths. The server has no standard input, which Kafka Connect reads without this key.",
        ),
        ConfigKey::new(
            TOPIC,
            KeyType::String,
            None,
            High,
            "Topic that the lines go to; made when it is not there.",
        ),
        ConfigKey::new(
            BATCH,
            KeyType::Int { min: 1, max: 1_000_000 },
            Some("2000"),
            Low,
            "Lines read at once.",
        ),
        ConfigKey::new(
            LONGEST,
            KeyType::Int { min: 1, max: 1 << 30 },
            Some("10485760"),
            Low,
            "Longest line in bytes. The task stops at a longer one.",
        ),
    ]
}

/// The position in an offset.
///
/// # Errors
/// `FILE_OFFSET_INVALID` when there is none.
pub(crate) fn position_of(offset: &SourceOffset) -> Result<u64, ConnectorError> {
    let position = offset.number(POSITION).and_then(|position| u64::try_from(position).ok());
    position.ok_or_else(|| error::offset_invalid(&offset.to_string()))
}

/// The offset of a position.
pub(crate) fn offset_of(position: u64) -> SourceOffset {
    let mut offset = SourceOffset::default();
    offset.set(POSITION, position);
    offset
}

/// Why a connector may not open this file; `none` says why it must name one.
pub(crate) fn file_problem(allowed: &AllowedPaths, file: &str, none: &str) -> Option<Problem> {
    let problem = |message: String| Some(Problem::new(FILE, message));
    if file.trim().is_empty() {
        return problem(format!("is empty; {none}"));
    }
    match allowed.resolve(Path::new(file)) {
        Ok(_) => None,
        Err(error) => problem(format!("may not be opened: {error}")),
    }
}

fn required<'a>(config: &'a Config, key: &str, why: &str) -> Result<&'a str, ConnectorError> {
    let value = config.text(key);
    if !value.trim().is_empty() {
        return Ok(value);
    }
    let what = format!("{key} is empty; {why}");
    Err(ConnectorError::stop(
        "CONFIG_INVALID",
        ErrorKind::Configuration,
        what,
        format!("set {key}"),
    ))
}

#[async_trait]
impl SourceConnector for FileSourceConnector {
    fn classes(&self) -> &'static [&'static str] {
        &[
            "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "FileStreamSourceConnector",
            "FileStreamSource",
            "file-source",
        ]
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn config(&self) -> &ConfigDef {
        &self.def
    }

    fn problems(&self, config: &Config) -> Vec<Problem> {
        let problem = file_problem(&self.allowed, config.text(FILE), NO_INPUT);
        problem.into_iter().collect()
    }

    fn partition(&self, config: &Config) -> SourcePartition {
        let file = config.text(FILE).to_owned();
        SourcePartition(Map::from_iter([(FILENAME.to_owned(), file.into())]))
    }

    /// A stored offset is the place in the file behind the last line that was delivered.
    fn exactly_once(&self, _config: &Config) -> ExactlyOnce {
        ExactlyOnce::Supported
    }

    fn topics(&self, config: &Config) -> Topics {
        Topics {
            routing: Routing::Topic(config.text(TOPIC).to_owned()),
            schema: None,
            side: Vec::new(),
        }
    }

    fn form(&self) -> RecordForm {
        RecordForm::Values
    }

    fn fingerprint(&self, config: &Config) -> String {
        config.text(FILE).to_owned()
    }

    /// Lines are not bound together.
    fn before_open_transaction(&self, _: &SourceOffset) -> Option<SourceOffset> {
        None
    }

    async fn check_offset_change(
        &self,
        config: &Config,
        change: &OffsetChange,
    ) -> Result<OffsetVerdict, ConnectorError> {
        let Some(wanted) = &change.wanted else { return Ok(OffsetVerdict::Accepted(None)) };
        let refused = |what: String, remedy: &str| {
            Ok(OffsetVerdict::Refused { what, remedy: remedy.to_owned() })
        };
        let right = "give {\"position\": BYTES}";
        if let Some(stray) = wanted.stray_field(&[POSITION], change.current.as_ref()) {
            return refused(stray, right);
        }
        let position = match position_of(wanted) {
            Ok(position) => position,
            Err(error) => return refused(error.what, right),
        };
        let path = PathBuf::from(config.text(FILE));
        let length = tokio::fs::metadata(&path).await.map_or(u64::MAX, |found| found.len());
        if position > length {
            let what = format!("{} holds {length} bytes, not {position}", path.display());
            return refused(what, "give a position within the file");
        }
        let (at, allowed) = (path.clone(), self.allowed.clone());
        let begins =
            tokio::task::spawn_blocking(move || begins_line(&at, &allowed, position)).await;
        // A file that cannot be read now may be there, and right, when the connector runs.
        if let Ok(Ok(false)) = begins {
            let what = format!("byte {position} of {} is inside a line", path.display());
            return refused(what, "give the position behind the end of a line, or 0");
        }
        let current = change.current.as_ref().and_then(|current| position_of(current).ok());
        match current {
            Some(current) if position > current && !change.allow_skip => refused(
                format!(
                    "position {position} lies ahead of {current}: the lines between are skipped"
                ),
                "give --allow-skip, over REST ?allowSkip=true, if that is meant",
            ),
            _ => Ok(OffsetVerdict::Accepted(Some(wanted.clone()))),
        }
    }

    fn task(&self, config: &Config) -> Result<Box<dyn SourceTask>, ConnectorError> {
        let file = required(config, FILE, NO_INPUT)?;
        let topic = required(config, TOPIC, "the lines must go somewhere")?;
        let path = PathBuf::from(file);
        self.allowed.resolve(&path).map_err(|error| error::failed(&path, "read", &error))?;
        let size = |key| usize::try_from(config.int(key)).unwrap_or(1);
        let bounds = Bounds {
            path,
            allowed: self.allowed.clone(),
            batch: size(BATCH),
            longest: size(LONGEST),
            longest_key: LONGEST,
        };
        Ok(Box::new(FileSourceTask::new(bounds, topic)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(dir: &tempfile::TempDir, more: &[(&str, &str)]) -> Config {
        let file = dir.path().join("lines").display().to_string();
        let own = [(FILE, file.as_str()), (TOPIC, "t")];
        let pairs = own.iter().chain(more).map(|(key, value)| ((*key).into(), (*value).into()));
        ConfigDef::new(keys()).parse(&pairs.collect(), &[]).unwrap()
    }

    fn connector(dir: &tempfile::TempDir) -> FileSourceConnector {
        FileSourceConnector::new(AllowedPaths::new("the.setting", [dir.path().to_owned()]))
    }

    #[test]
    fn offsets_are_those_of_kafka_connects_file_source() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(&dir, &[]);
        let partition = serde_json::to_string(&connector(&dir).partition(&config)).unwrap();
        assert_eq!(partition, format!("{{\"filename\":\"{}\"}}", config.text(FILE)));
        assert_eq!(offset_of(7).to_string(), r#"{"position":7}"#);
        assert_eq!(position_of(&offset_of(u64::from(u32::MAX))).unwrap(), u64::from(u32::MAX));
        for wrong in [r#"{"position":-1}"#, r#"{"position":"x"}"#, "{}"] {
            let offset: SourceOffset = serde_json::from_str(wrong).unwrap();
            assert_eq!(position_of(&offset).unwrap_err().code, "FILE_OFFSET_INVALID");
        }
    }

    #[test]
    fn standard_input_and_what_is_not_allowed_are_refused_before_anything_runs() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |more: &[(&str, &str)]| match connector(&dir).task(&config(&dir, more)) {
            Err(error) => error.what,
            Ok(_) => String::new(),
        };
        assert_eq!(refused(&[]), "");
        assert!(refused(&[(FILE, "")]).contains("standard input is not read"));
        assert!(refused(&[(TOPIC, " ")]).contains("topic is empty"));
        assert!(refused(&[(FILE, "/etc/passwd")]).contains("the.setting"));
    }

    #[tokio::test]
    async fn an_offset_goes_forward_only_when_that_is_asked_for_and_never_beyond_the_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("lines"), "123\n\n67\n").unwrap();
        let config = config(&dir, &[]);
        let connector = connector(&dir);
        let asked = async |wanted: u64, allow_skip| {
            let (current, wanted) = (Some(offset_of(4)), Some(offset_of(wanted)));
            let change = OffsetChange { current, wanted, allow_skip };
            connector.check_offset_change(&config, &change).await.unwrap()
        };
        let accepted = async |wanted, allow_skip| {
            matches!(asked(wanted, allow_skip).await, OffsetVerdict::Accepted(_))
        };
        assert!(accepted(0, false).await && accepted(4, false).await);
        assert!(!accepted(5, false).await && accepted(5, true).await);
        assert!(accepted(8, true).await && !accepted(9, true).await);
        let OffsetVerdict::Refused { remedy, .. } = asked(5, false).await else {
            panic!("it skips")
        };
        assert!(remedy.contains("--allow-skip") && remedy.contains("?allowSkip=true"), "{remedy}");
    }

    #[tokio::test]
    async fn an_offset_inside_a_line_is_refused_where_the_file_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let (config, connector) = (config(&dir, &[]), connector(&dir));
        let asked = async |wanted: u64| {
            let change =
                OffsetChange { current: None, wanted: Some(offset_of(wanted)), allow_skip: false };
            connector.check_offset_change(&config, &change).await.unwrap()
        };
        let accepted = async |wanted| matches!(asked(wanted).await, OffsetVerdict::Accepted(_));
        assert!(accepted(2).await, "there is no file yet");
        std::fs::write(dir.path().join("lines"), "ab\r\nc\rd\nrest").unwrap();
        for (position, begins) in
            [(0, true), (1, false), (3, false), (4, true), (6, true), (8, true), (12, false)]
        {
            assert_eq!(accepted(position).await, begins, "{position}");
        }
        let OffsetVerdict::Refused { what, .. } = asked(3).await else { panic!("it tears") };
        assert!(what.starts_with("byte 3 of "), "{what}");
    }

    #[tokio::test]
    async fn a_field_that_nobody_reads_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = serde_json::from_str(r#"{"position":0,"pos":3}"#).unwrap();
        let change =
            OffsetChange { current: Some(offset_of(4)), wanted: Some(wanted), allow_skip: true };
        let (connector, config) = (connector(&dir), config(&dir, &[]));
        let verdict = connector.check_offset_change(&config, &change).await;
        let OffsetVerdict::Refused { what, .. } = verdict.unwrap() else { panic!("it is taken") };
        assert!(what.starts_with("pos is not known"), "{what}");
    }
}
