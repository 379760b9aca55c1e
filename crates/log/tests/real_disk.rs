//! The real file system under a power loss: a preloaded library keeps what was synced, and nothing else.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

#[expect(unreachable_pub, reason = "shared with the test of the whole server")]
#[path = "../../../testing/power-loss/power_loss.rs"]
mod power_loss;
mod support;

use std::path::Path;
use std::process::Command;

use power_loss::Disk;
use support::{Put, batch, open, settings};

const CHILD: &str = "HW_REAL_DISK";

/// In a process of its own, which ends as by kill -9.
fn live(dir: &Path) -> ! {
    let log = open(dir).unwrap();
    log.create_topic("t", 1, settings(&[])).unwrap();
    log.partition("t", 0).unwrap().put(batch(&[1]));
    std::process::exit(0)
}

#[test]
fn what_was_synced_is_there() {
    if let Some(dir) = std::env::var_os(CHILD) {
        live(dir.as_ref());
    }
    let disk = Disk::new();
    let dir = disk.root().join("new").join("data");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "what_was_synced_is_there"]).env(CHILD, &dir);
    assert!(disk.attach(&mut child).status().unwrap().success());
    disk.lose_power();
    let log = open(&dir);
    let partition = log.as_ref().ok().and_then(|log| log.partition("t", 0));
    let log_end = partition.map(|partition| partition.watermarks_now().log_end);
    assert_eq!(log_end, Some(1), "{log:?}");
}
