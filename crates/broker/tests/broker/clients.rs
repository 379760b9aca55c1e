//! Somebody else's client over TLS, with each kind of login. In the clear they are all tried by `make compat`.

use std::process::Command;

use highwater_access::SubjectRules;
use highwater_broker::ClientCertificates;

use crate::certificates::{Authority, Folder};
use crate::users::TestUsers;

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
    let compat = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/compat/clients.py");
    let mut command = Command::new(compat);
    command.args(["confluent-kafka-python", "secure_confluent_kafka.py"]);
    command.arg(server.broker.local_addr().to_string()).arg(folder.ca().parent().unwrap());
    // cargo points the loader at the librdkafka that it has built; a client brings its own.
    command.env_remove("LD_LIBRARY_PATH");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
