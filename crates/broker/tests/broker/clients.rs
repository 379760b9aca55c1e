//! Other people's clients, each driven by a script that installs it where it is missing.

use std::path::Path;
use std::process::Command;

use highwater_access::SubjectRules;
use highwater_broker::ClientCertificates;

use crate::certificates::{Authority, Folder};
use crate::server::Server;
use crate::users::TestUsers;

async fn run(script: &str) {
    run_against(&Server::start().await, script, &[]).await;
}

/// Runs a script of `testing/clients` against a broker; it says by its exit code how it went.
async fn run_against(server: &Server, script: &str, arguments: &[&Path]) {
    let address = server.broker.local_addr().to_string();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/clients");
    let mut command = Command::new(scripts.join(script));
    // cargo points the loader at the librdkafka that it has built; a client brings its own.
    command.arg(address).args(arguments).env_remove("LD_LIBRARY_PATH");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confluent_kafka_python_over_tls() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    let folder = Folder::new(&authority);
    folder.write("other-ca.pem", &other.pem());
    for (name, pair) in [("client", authority.client("svc")), ("expired", authority.expired("svc"))]
    {
        folder.write(&format!("{name}.pem"), &pair.cert);
        folder.write(&format!("{name}.key"), &pair.key);
    }
    let grants = ["all topic mine", "describe topic theirs", "read group ann"];
    let users = TestUsers::new().with("ann", &grants).with("svc", &grants);
    let server = users
        .server_with(|config| {
            config.tls = Some(folder.tls(ClientCertificates::Optional));
            config.subjects = SubjectRules::parse("RULE:CN=([a-z]+),O=test/$1/").unwrap();
        })
        .await;
    server.topic("mine");
    server.topic("theirs");
    let ca = folder.ca();
    run_against(&server, "confluent-kafka-python.sh", &[ca.parent().unwrap()]).await;
}
