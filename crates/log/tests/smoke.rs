//! The whole on a real file system.
#![allow(missing_docs)]

use std::sync::Arc;

use highwater_log::*;
use highwater_protocol::records::{BatchBuilder, Compression};

#[tokio::test]
async fn append_wait_read_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Log::open(Arc::new(RealFileSystem), dir.path(), LogConfig::default()).unwrap();
    let log = open();
    log.create_topic("t", 1, TopicConfig::default()).unwrap();
    let partition = log.partition("t", 0).unwrap();
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(5, Some(b"k"), Some(b"v"), &[]);
    let appended = partition.append(builder.build().unwrap(), AppendOptions { now_ms: 9 }).unwrap();
    partition.durable(&appended).await.unwrap();
    let read = partition.read(0, 1000, true, Visible::HighWatermark).unwrap();
    assert!(!read.is_empty());
    assert!(matches!(
        Log::open(Arc::new(RealFileSystem), dir.path(), LogConfig::default()),
        Err(LogError::Locked { .. })
    ));
    log.close().unwrap();
    drop(log);
    let log = open();
    let again = log.partition("t", 0).unwrap();
    assert_eq!(again.read(0, 1000, true, Visible::HighWatermark).unwrap(), read);
    drop(log);
    let log = open();
    let again = log.partition("t", 0).unwrap();
    assert_eq!(again.watermarks_now().high_watermark, 1);
}
