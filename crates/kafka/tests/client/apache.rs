//! A node of Apache Kafka, by `testing/kafka/kafka.sh`, as long as the test lives.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use highwater_kafka::{Bootstrap, Security};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/kafka/kafka.sh");

pub(crate) struct Apache {
    pub(crate) address: SocketAddr,
    pub(crate) dir: PathBuf,
    /// Stops the node when its standard input ends.
    _holder: Child,
}

impl Apache {
    pub(crate) async fn start(options: &[&str]) -> Self {
        let mut holder = Command::new(SCRIPT)
            .arg("hold")
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(holder.stdout.take().unwrap()).lines();
        let line = said.next_line().await.unwrap().expect("Apache Kafka did not start");
        let (address, dir) = line.split_once(' ').unwrap();
        Self { address: address.parse().unwrap(), dir: dir.into(), _holder: holder }
    }

    /// As the user whom the node's own settings for clients name.
    pub(crate) fn bootstrap(&self) -> Bootstrap {
        let security = Security::load(&self.dir.join("client.properties")).unwrap();
        Bootstrap::new(self.address.to_string()).with(security)
    }

    pub(crate) async fn kill(&self) {
        control("kill", &self.dir).await;
    }

    pub(crate) async fn resume(&self) {
        control("resume", &self.dir).await;
    }
}

async fn control(what: &str, dir: &Path) {
    let mut command = Command::new(SCRIPT);
    command.arg(what).arg(dir).stdout(Stdio::null());
    assert!(command.status().await.unwrap().success(), "kafka.sh {what} failed");
}
