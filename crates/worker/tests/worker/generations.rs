//! Rule P4 at start: when a generation goes on, and when one is minted and stored.

use highwater_connector::{GENERATION_HEADER, Generation, GenerationMark};
use highwater_kafka::{OutgoingRecord, WriterSettings, at_least_once};
use serde_json::json;

use crate::bench::{Bench, Life, PATIENCE, config};
use crate::gate::Gate;
use crate::source::{CLASS, Place, Server};
use crate::trail;

async fn told(bench: &Bench) {
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
}

/// A connector that has delivered `transactions` and is stopped.
async fn stopped(bench: &Bench) -> (Life, Generation) {
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    told(bench).await;
    life.api.put("/connectors/a/stop").await.expect(204);
    (life, bench.server.last_start().generation)
}

async fn resumed(bench: &Bench, life: &Life) -> crate::source::Started {
    let before = bench.server.state().starts.len();
    bench.server.state().told.clear();
    life.api.put("/connectors/a/resume").await.expect(202);
    life.api.until_task("a", "RUNNING").await;
    assert_eq!(bench.server.state().starts.len(), before + 1);
    bench.server.last_start()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generation_is_stored_before_the_source_is_even_opened() {
    let bench = Bench::start(Server::new(3, 7)).await;
    let (gate, writers) = Gate::after(0);
    let mut settings = bench.config();
    settings.writers = writers;
    let doomed = bench.doomed(settings).await;
    doomed.api().create("a", config("shop")).await.expect(201);
    tokio::time::timeout(PATIENCE, gate.reached()).await.unwrap();
    assert!(bench.server.state().starts.is_empty());
    assert!(trail::rows(&bench.reader, "shop").await.is_empty());
    doomed.crash();

    let life = bench.life().await;
    told(&bench).await;
    let offsets = trail::offset_rows(&bench.reader).await;
    let first = offsets[0].clone();
    assert_eq!(first.key, r#"["a",{"server":"shop"}]"#);
    assert_eq!(first.offset.map(|offset| offset.to_string()), Some("{}".to_owned()));
    let generation = first.mark.unwrap().generation;
    assert!(
        trail::rows(&bench.reader, "shop").await.iter().all(|row| row.generation == generation)
    );
    assert_eq!(bench.server.last_start().offset, None);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_offset_record_bears_the_generation_and_the_tail() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let (life, generation) = stopped(&bench).await;
    let offsets = trail::offset_rows(&bench.reader).await;
    assert!(offsets.iter().all(|row| row.mark.as_ref().unwrap().generation == generation));
    let rows = trail::rows(&bench.reader, "shop").await;
    let last = offsets.last().unwrap().tail.clone().unwrap();
    let entry = last.0.iter().find(|entry| entry.topic == "shop").unwrap();
    let row = rows.last().unwrap();
    assert_eq!((entry.offset, entry.id.as_str()), (row.offset, row.id.as_str()));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_and_a_clean_change_of_tables_keep_the_generation() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let (life, generation) = stopped(&bench).await;
    assert_eq!(resumed(&bench, &life).await.generation, generation);

    life.api.put("/connectors/a/stop").await.expect(204);
    let other = json!({ "connector.class": CLASS, "topic.prefix": "shop", "tables": "t,u" });
    life.api.call(reqwest::Method::PUT, "/connectors/a/config", Some(other)).await.expect(200);
    assert_eq!(resumed(&bench, &life).await.generation, generation);
    let mark = trail::offset_rows(&bench.reader).await.last().unwrap().mark.clone().unwrap();
    assert_eq!(mark, GenerationMark { generation, fingerprint: "t,u".to_owned() });
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partly_acknowledged_transaction_comes_again_whole_under_another_fingerprint() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let (life, generation) = stopped(&bench).await;
    let inside = Place { tx: 3, event: 1 };
    write_offset(&bench, inside, GenerationMark { generation, fingerprint: "old".to_owned() })
        .await;

    let start = resumed(&bench, &life).await;
    assert_ne!(start.generation, generation);
    let whole = Place { event: 0, ..inside };
    assert_eq!(start.offset, Some(whole.offset()));
    told(&bench).await;
    let rows = trail::rows(&bench.reader, "shop").await;
    let again = rows.iter().find(|row| row.generation == start.generation).unwrap();
    assert_eq!(again.place, whole);
    life.worker.shutdown().await;
}

async fn write_offset(bench: &Bench, place: Place, mark: GenerationMark) {
    let mut writer = at_least_once(&WriterSettings::new(&bench.bootstrap)).unwrap();
    let record = OutgoingRecord {
        topic: "highwater.offsets".into(),
        partition: None,
        key: Some(bytes::Bytes::from_static(br#"["a",{"server":"shop"}]"#)),
        value: Some(place.offset().to_string().into()),
        headers: vec![(GENERATION_HEADER.into(), mark.encode().into())],
    };
    writer.begin().await.unwrap();
    writer.offsets(vec![record]).await.unwrap();
    writer.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_operator_delivers_again_arrives_under_a_new_generation() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let (life, generation) = stopped(&bench).await;
    let back = Place { tx: 2, event: 0 };
    let body =
        json!({ "offsets": [{ "partition": { "server": "shop" }, "offset": back.offset() }] });
    let path = "/connectors/a/offsets?reason=replay%20it";
    life.api.call(reqwest::Method::PATCH, path, Some(body)).await.expect(200);
    let edited = trail::offset_rows(&bench.reader).await.last().unwrap().clone();
    assert_eq!((edited.mark, edited.tail), (None, None));
    assert_eq!(edited.headers, [("hw.reason".to_owned(), b"replay it".to_vec())]);

    let start = resumed(&bench, &life).await;
    assert_ne!(start.generation, generation);
    assert_eq!(start.offset, Some(back.offset()));
    told(&bench).await;
    life.worker.shutdown().await;
}
