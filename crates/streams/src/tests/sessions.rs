//! Whole connections: their order of records, their limits, their ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Server, config, log};
use super::trails::{TRAIL, describe, envelope, hw, insert, orders, record, row};
use highwater_connector::{Hw, TableDescription};

/// A trail of rows with the ids 1 to `count`.
pub(crate) fn rows(count: u64) -> std::sync::Arc<super::memory::MemoryLog> {
    let log = log();
    for id in 1..=count {
        log.append(TRAIL, row(id));
    }
    log
}

pub(crate) fn pos(record: &Value) -> &str {
    record["pos"].as_str().unwrap()
}

#[tokio::test]
async fn a_connection_opens_with_its_preamble_and_describes_tables_before_rows() {
    let log = rows(2);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    let mut kinds = Vec::new();
    for _ in 0..8 {
        let record = client.next().await.unwrap();
        let kind = record.get("op_type").unwrap_or(&record["id"]);
        kinds.push(kind.as_str().unwrap().to_owned());
    }
    assert_eq!(
        kinds,
        [
            "/services/v2/stream/orders/stream-metadata",
            "/services/v2/stream/orders/object-metadata",
            "/services/v2/stream/orders/ddl",
            "STREAM_METADATA",
            "/services/v2/stream/orders/table/public.orders/1",
            "OBJECT_METADATA",
            "INSERT",
            "INSERT",
        ]
    );
}

#[tokio::test]
async fn a_new_version_of_a_table_is_described_again_and_waited_for() {
    let log = rows(1);
    let mut config = config();
    config.limits.table_wait = Duration::from_secs(20);
    let server = Server::start(&log, config).await;
    let body = json!({"source": {"trail": TRAIL}, "encoding": {"json": {"includeJSONSchemaRecord": false}}});
    server.send("POST", "/services/v2/stream/orders", &body).await;
    let mut client = server.connect("orders").await;
    client.data().await;
    log.append(TRAIL, record(&Hw { table_version: Some(2), ..hw(2, 0) }, &insert(2)));
    tokio::task::yield_now().await;
    describe(&log, &orders(2));
    let metadata = client.next().await.unwrap();
    assert_eq!(metadata["op_type"], "OBJECT_METADATA");
    assert_eq!(metadata["version"], 2);
    assert!(metadata["columns"].get("note").is_some());
    assert_eq!(client.next().await.unwrap()["after"]["id"], 2);
}

#[tokio::test]
async fn a_table_that_is_never_described_ends_the_connection_behind_what_was_whole() {
    let log = rows(1);
    log.append(TRAIL, record(&Hw { table_version: Some(9), ..hw(2, 0) }, &insert(2)));
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    assert_eq!(client.ids(1).await, [1]);
    let (records, closed) = client.rest().await;
    assert_eq!(closed.code, 4020);
    assert_eq!(records.last().unwrap()["code"], "table_description_missing");
}

#[tokio::test]
async fn earliest_now_and_every_position() {
    let log = rows(5);
    let server = Server::with_stream(&log, json!({})).await;
    let mut now = server.connect("orders?begin=now").await;
    let mut earliest = server.connect("orders?begin=earliest").await;
    let mut positions = Vec::new();
    for id in 1..=5 {
        let record = earliest.data().await;
        assert_eq!(record["after"]["id"], id);
        positions.push(pos(&record).to_owned());
    }
    // The position of the last record shows that `now` has come to rest behind it.
    assert_eq!(now.next().await.unwrap()["op_type"], Value::Null);
    log.append(TRAIL, row(6));
    assert_eq!(now.ids(1).await, [6]);
    for (position, id) in positions.iter().zip(1..) {
        let mut client = server.connect(&format!("orders?begin={position}")).await;
        let wanted: Vec<u64> = (id + 1..=6).collect();
        assert_eq!(client.ids(wanted.len()).await, wanted);
    }
}

#[tokio::test]
async fn a_position_is_the_same_on_every_server_and_goes_on_after_a_restart() {
    let log = rows(3);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    let first = client.data().await;
    let second = client.data().await;
    server.streams.shutdown().await;
    let (records, closed) = client.rest().await;
    assert_eq!((closed.code, closed.reason.as_str()), (1001, "server_stopping"));
    assert_eq!(records.last().unwrap()["code"], "server_stopping");
    // Who comes back at once does not keep the server from ending.
    let (status, body) = server.refused("orders").await;
    assert_eq!((status, body["code"].as_str()), (503, Some("server_stopping")));
    drop(server);
    let server = Server::start(&log, config()).await;
    let mut client = server.connect(&format!("orders?begin={}", pos(&first))).await;
    assert_eq!(client.data().await, second);
    assert_eq!(client.ids(1).await, [3]);
}

#[tokio::test]
async fn duplicates_are_suppressed_across_reconnects_unless_asked_for() {
    let log = rows(4);
    let server = Server::with_stream(&log, json!({"qualityOfService": "atLeastOnce"})).await;
    let mut client = server.connect("orders?qualityOfService=exactlyOnce").await;
    assert_eq!(client.ids(3).await, [1, 2, 3]);
    let fourth = client.data().await;
    drop(client);
    for id in [2, 3, 4, 5] {
        log.append(TRAIL, row(id));
    }
    let begin = format!("orders?begin={}", pos(&fourth));
    let mut strict = server.connect(&format!("{begin}&qualityOfService=exactlyOnce")).await;
    assert_eq!(strict.ids(1).await, [5]);
    let mut tolerant = server.connect(&begin).await;
    assert_eq!(tolerant.ids(4).await, [2, 3, 4, 5]);
    let generation = highwater_connector::Generation::from_bits(8);
    log.append(TRAIL, record(&Hw { generation, ..hw(2, 0) }, &insert(2)));
    assert_eq!(strict.ids(1).await, [2]);
}

#[tokio::test]
async fn a_log_that_is_away_is_said_before_the_upgrade_and_ridden_out_after_it() {
    let log = rows(1);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    client.ids(1).await;
    log.set_away(true);
    let (status, answer) = server.refused("orders").await;
    assert_eq!((status, &answer["code"]), (503, &json!("log_unavailable")));
    log.append(TRAIL, row(2));
    tokio::time::sleep(Duration::from_millis(20)).await;
    log.set_away(false);
    assert_eq!(client.ids(1).await, [2]);
    log.set_away(true);
    log.append(TRAIL, row(3));
    let (records, closed) = client.rest().await;
    assert_eq!(closed.code, 4020);
    assert_eq!(records.last().unwrap()["retry"], "later");
    log.set_away(false);
    log.delete(TRAIL);
    let (status, answer) = server.refused("orders").await;
    assert_eq!((status, &answer["code"]), (503, &json!("trail_missing")));
}

#[tokio::test]
async fn a_changed_or_deleted_stream_tells_its_connections() {
    let log = rows(1);
    let server = Server::with_stream(&log, json!({})).await;
    let path = "/services/v2/stream/orders";
    let mut client = server.connect("orders").await;
    client.ids(1).await;
    server.send("PATCH", path, &json!({"bufferSize": 1_048_576})).await;
    log.append(TRAIL, row(2));
    assert_eq!(client.ids(1).await, [2], "a patch that changes nothing ends nothing");
    server.send("PATCH", path, &json!({"bufferSize": 200_000})).await;
    let (records, closed) = client.rest().await;
    assert_eq!((closed.code, records.last().unwrap()["retry"].as_str()), (4012, Some("now")));
    let mut client = server.connect("orders").await;
    client.ids(2).await;
    server.send("DELETE", path, &Value::Null).await;
    let (_, closed) = client.rest().await;
    assert_eq!((closed.code, closed.reason.as_str()), (4012, "stream_deleted"));
}

#[tokio::test]
async fn a_client_that_speaks_breaks_the_protocol() {
    let log = rows(1);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    client.ids(1).await;
    client.say("hello").await;
    let (records, closed) = client.rest().await;
    assert_eq!(closed.code, 4002);
    assert_eq!(records.last().unwrap()["code"], "message_unexpected");
}

#[tokio::test]
async fn a_record_that_is_none_ends_the_connection_behind_what_was_whole() {
    let log = rows(1);
    let server = Server::with_stream(&log, json!({})).await;
    log.append(TRAIL, record(&hw(2, 0), &envelope(r#""op":"x""#)));
    let mut client = server.connect("orders").await;
    assert_eq!(client.ids(1).await, [1]);
    let (records, closed) = client.rest().await;
    assert_eq!((closed.code, closed.reason.as_str()), (4016, "record_undecodable"));
    assert!(records.last().unwrap()["what"].as_str().unwrap().contains("offset 1"));
}

#[tokio::test]
async fn connections_are_limited_and_given_back() {
    let log = rows(1);
    for (sessions, sessions_per_stream) in [(1, 9), (9, 1)] {
        let mut config = config();
        config.limits.sessions = sessions;
        config.limits.sessions_per_stream = sessions_per_stream;
        let server = Server::start(&log, config).await;
        let body = json!({"source": {"trail": TRAIL}});
        server.send("POST", "/services/v2/stream/orders", &body).await;
        for _ in 0..2 {
            let mut client = server.connect("orders").await;
            client.ids(1).await;
            let (status, answer) = server.refused("orders").await;
            assert_eq!((status, &answer["code"]), (429, &json!("too_many_connections")));
            client.socket.close(None).await.unwrap();
            server.status_once("orders", |status| status["connections"] == 0).await;
        }
        server.send("DELETE", "/services/v2/stream/orders", &Value::Null).await;
    }
}

#[tokio::test]
async fn the_status_says_who_is_connected_and_how_far() {
    let log = rows(3);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    client.ids(3).await;
    log.append(TRAIL, row(1));
    log.append(TRAIL, row(4));
    client.ids(1).await;
    let sent = |status: &Value| status["sessions"][0]["last_sent_offset"] == "4";
    let status = server.status_once("orders", sent).await;
    let session = &status["sessions"][0];
    assert_eq!(session["lag"], "0");
    assert_eq!(session["next_offset"], "5");
    assert_eq!(session["duplicates_suppressed"], "1");
    assert_eq!(session["begin"], "earliest");
    assert_eq!(status["trail"]["last_stable"], "5");
    assert_eq!(status["activity"], "1 connected, all of them at the end of the trail");
    let (_, all) = server.get("/highwater/v1/streams").await;
    assert_eq!(all["streams"][0]["name"], "orders");
    assert_eq!(server.get("/highwater/v1/streams/none").await.0, 404);
}

/// A row whose value has about this many bytes.
fn large(id: u64, bytes: usize) -> highwater_kafka::ReadRecord {
    let text = "x".repeat(bytes);
    let rest = format!(r#""op":"c","before":null,"after":{{"id":{id},"total":"{text}"}}"#);
    record(&Hw { count: Some(1), ..hw(id, 0) }, &envelope(&rest))
}

#[tokio::test]
async fn a_slow_client_gets_everything_while_the_server_holds_little() {
    let log = log();
    const ROWS: u64 = 2_000;
    for id in 1..=ROWS {
        log.append(TRAIL, large(id, 20_000));
    }
    let server = Server::with_stream(&log, json!({"bufferSize": 131_072})).await;
    let mut client = server.connect("orders").await;
    assert_eq!(client.ids(1).await, [1]);
    // While the client reads nothing, the server comes to rest long before the end.
    let next = async || {
        let (_, status) = server.get("/highwater/v1/streams/orders").await;
        status["sessions"][0]["next_offset"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let mut rested = 0;
    let mut at = next().await;
    while rested < 10 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = next().await;
        rested = if now == at { rested + 1 } else { 0 };
        at = now;
    }
    assert!(at < ROWS / 2, "{at}");
    assert!(log.largest_fetch.load(Ordering::SeqCst) <= 131_072 + 20_200);
    let rest: Vec<u64> = (2..=ROWS).collect();
    assert_eq!(client.ids(rest.len()).await, rest);
}

#[tokio::test]
async fn messages_are_bounded_by_the_buffer_and_one_record() {
    use futures_util::StreamExt;
    const ROWS: usize = 2_000;
    let log = log();
    // Small rows grow on the way out: one fetch gives more than one message.
    for id in 2..=ROWS as u64 {
        log.append(TRAIL, row(id));
    }
    log.append(TRAIL, large(9_999, 300_000));
    let server = Server::with_stream(&log, json!({"bufferSize": 131_072})).await;
    let mut client = server.connect("orders").await;
    let (mut sizes, mut data) = (Vec::new(), 0);
    let reading = async {
        while data < ROWS {
            let message = client.socket.next().await.unwrap().unwrap();
            if !message.is_text() {
                continue;
            }
            let text = message.to_text().unwrap();
            let records: Vec<Value> = serde_json::from_str(text).unwrap();
            data += records.iter().filter(|record| record.get("pos").is_some()).count();
            sizes.push(text.len());
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap();
    let last = sizes.pop().unwrap();
    assert!(sizes.iter().all(|size| *size < 131_072 + 1_000), "{sizes:?}");
    assert!(last < 131_072 + 301_000, "{last}");
}

#[tokio::test]
async fn a_client_that_does_not_live_is_left() {
    let log = rows(1);
    let server = Server::with_stream(&log, json!({"tcpKeepAliveTimeout": 1})).await;
    let mut client = server.connect("orders").await;
    client.ids(1).await;
    // A client that is not polled does not answer pings.
    tokio::time::sleep(Duration::from_millis(1_700)).await;
    let (records, closed) = client.rest().await;
    assert_eq!((closed.code, closed.reason.as_str()), (4004, "client_silent"));
    assert_eq!(records.last().unwrap()["retry"], "now");
    // One that only answers pings stays.
    let mut client = server.connect("orders").await;
    client.ids(1).await;
    let quiet = tokio::time::timeout(Duration::from_millis(2_500), client.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}

#[tokio::test]
async fn a_name_with_a_dot_or_a_quote_is_quoted_as_in_its_description() {
    let log = rows(0);
    let orders = orders(1);
    describe(&log, &TableDescription { table: r#"public."Order.""Items""#.to_owned(), ..orders });
    let value = insert(1).replace(r#""table":"orders""#, r#""table":"Order.\"Items""#);
    log.append(TRAIL, record(&hw(1, 0), &value));
    let server = Server::with_stream(&log, json!({})).await;
    let data = server.connect("orders").await.data().await;
    assert_eq!(data["qual_table"], r#"public."Order.""Items""#);
}
