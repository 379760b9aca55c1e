//! A node of Apache Kafka, by `testing/kafka/kafka.sh`, as long as the test lives.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/kafka/kafka.sh");

pub(crate) struct Apache {
    pub(crate) bootstrap: String,
    /// Stops the node when its standard input ends.
    _holder: Child,
}

impl Apache {
    pub(crate) async fn start() -> Self {
        let mut holder = Command::new(SCRIPT)
            .arg("hold")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(holder.stdout.take().unwrap()).lines();
        let line = said.next_line().await.unwrap().unwrap();
        let (address, _) = line.split_once(' ').unwrap();
        Self { bootstrap: address.to_owned(), _holder: holder }
    }
}
