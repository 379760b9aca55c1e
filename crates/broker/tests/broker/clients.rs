//! Other people's clients, each driven by a script that installs it where it is missing.

use std::path::Path;
use std::process::Command;

use crate::server::Server;

/// Runs a script of `testing/clients` against a broker; it says by its exit code how it went.
async fn run(script: &str) {
    let server = Server::start().await;
    let address = server.broker.local_addr().to_string();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/clients");
    let mut command = Command::new(scripts.join(script));
    // cargo points the loader at the librdkafka that it has built; a client brings its own.
    command.arg(address).env_remove("LD_LIBRARY_PATH");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(
        output.status.success(),
        "{script} failed\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kcat() {
    run("kcat.sh").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confluent_kafka_python() {
    run("confluent-kafka-python.sh").await;
}
