//! Coming back: what is refused, what is passed over, and what ends an open connection.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, Server, config};
use super::memory::MemoryLog;
use super::sessions::{pos, rows};
use super::trails::{TRAIL, row};

#[tokio::test]
async fn a_purged_position_is_gone_with_the_bounds_that_help() {
    let log = rows(6);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    let first = client.data().await;
    let second = client.data().await;
    drop(client);
    log.purge(TRAIL, 2);
    let (status, answer) = server.refused(&format!("orders?begin={}", pos(&first))).await;
    assert_eq!((status, &answer["code"]), (410, &json!("position_gone")));
    let what = answer["what"].as_str().unwrap();
    assert!(what.ends_with("the oldest is 2"), "{what}");
    let positions = &answer["positions"];
    assert_eq!(positions["generation"], "0000000000000007");
    assert_eq!(positions["oldest"]["offset"], "2");
    assert_eq!(positions["oldest"]["begin"], "earliest");
    assert_eq!(positions["oldest"]["time"], "2026-10-26T07:33:20.123456Z");
    assert_eq!(positions["newest"]["offset"], "5");
    let newest = pos(&positions["newest"]).to_owned();
    let oldest = pos(&positions["oldest"]).to_owned();
    let mut client = server.connect(&format!("orders?begin={oldest}")).await;
    assert_eq!(client.ids(3).await, [4, 5, 6]);
    log.append(TRAIL, row(7));
    let mut client = server.connect(&format!("orders?begin={newest}")).await;
    assert_eq!(client.ids(1).await, [7]);
    // Behind the second record nothing is missing.
    let mut client = server.connect(&format!("orders?begin={}", pos(&second))).await;
    assert_eq!(client.ids(1).await, [3]);
}

/// The records up to the next one with a position.
async fn until_data(client: &mut Client) -> Vec<Value> {
    let mut records = Vec::new();
    loop {
        records.push(client.next().await.unwrap());
        if records.last().unwrap().get("pos").is_some() {
            return records;
        }
    }
}

fn gaps(records: &[Value]) -> Vec<(&str, &str)> {
    let gaps = records.iter().filter(|record| record["op_type"] == "GAP");
    gaps.map(|gap| (gap["after_offset"].as_str().unwrap(), gap["until_offset"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_gap_that_is_passed_over_is_told() {
    let log = rows(4);
    let server = Server::with_stream(&log, json!({"qualityOfService": "atMostOnce"})).await;
    let mut client = server.connect("orders").await;
    let first = pos(&client.data().await).to_owned();
    drop(client);
    // The source delivers 1 again, behind the gap.
    log.append(TRAIL, row(1));
    log.append(TRAIL, row(5));
    log.purge(TRAIL, 4);
    for (query, id) in [("", 5), ("&onGone=next", 5), ("&onGone=earliest", 1)] {
        let mut client = server.connect(&format!("orders?begin={first}{query}")).await;
        let records = until_data(&mut client).await;
        assert_eq!(gaps(&records), [("0", "4")], "{query}");
        assert_eq!(records.last().unwrap()["after"]["id"], id, "{query}");
    }
    let fail = server.refused(&format!("orders?begin={first}&onGone=fail")).await;
    assert_eq!(fail.0, 410);
    let strict = format!("orders?begin={first}&qualityOfService=exactlyOnce");
    assert_eq!(server.refused(&strict).await.0, 410);
}

/// Purges what an open connection has yet to read. The log is away meanwhile, so that it cannot
/// read it in time.
fn purge_below_a_connection(log: &MemoryLog) {
    log.set_away(true);
    for id in 2..=5 {
        log.append(TRAIL, row(id));
    }
    log.purge(TRAIL, 3);
    log.set_away(false);
}

#[tokio::test]
async fn a_purge_below_a_connection_ends_it_or_is_told() {
    let log = rows(1);
    let server = Server::with_stream(&log, json!({})).await;
    let mut strict = server.connect("orders").await;
    let mut lenient = server.connect("orders?onGone=next").await;
    assert_eq!((strict.ids(1).await, lenient.ids(1).await), (vec![1], vec![1]));
    purge_below_a_connection(&log);
    let (records, closed) = strict.rest().await;
    assert_eq!((closed.code, closed.reason.as_str()), (4014, "records_purged"));
    assert_eq!(records.last().unwrap()["close_code"], 4014);
    let records = until_data(&mut lenient).await;
    assert_eq!(gaps(&records), [("0", "3")]);
    assert_eq!(records.last().unwrap()["after"]["id"], 4);
}

#[tokio::test]
async fn a_position_of_a_cut_or_remade_log_is_another_history() {
    let log = rows(4);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    let mut positions = Vec::new();
    for _ in 0..4 {
        positions.push(pos(&client.data().await).to_owned());
    }
    drop(client);
    log.cut(TRAIL, 2);
    let ask = async |at: usize| {
        let (status, answer) = server.refused(&format!("orders?begin={}", positions[at])).await;
        (status, answer["code"].clone())
    };
    let changed = (409, json!("history_changed"));
    assert_eq!(ask(2).await, changed);
    assert_eq!(ask(3).await, changed);
    log.append(TRAIL, row(9));
    log.append(TRAIL, row(10));
    assert_eq!(ask(2).await, changed);
    assert_eq!(ask(3).await, changed);
    let mut client = server.connect(&format!("orders?begin={}", positions[1])).await;
    assert_eq!(client.ids(2).await, [9, 10]);
    log.make(TRAIL, 1);
    for id in 1..=4 {
        log.append(TRAIL, row(id));
    }
    assert_eq!(ask(1).await, changed);
}

#[tokio::test]
async fn a_cut_below_a_connection_ends_it() {
    let log = rows(3);
    let server = Server::with_stream(&log, json!({})).await;
    // Seen by the end that goes back, and, where the log has grown again, by the epoch.
    for grown in [0, 3] {
        let mut client = server.connect("orders").await;
        client.ids(3).await;
        log.cut(TRAIL, 2);
        for id in 0..grown {
            log.append(TRAIL, row(10 + id));
        }
        let (records, closed) = client.rest().await;
        assert_eq!(closed.code, 4015);
        assert!(records.iter().all(|record| record.get("pos").is_none()), "{records:?}");
        log.append(TRAIL, row(20));
    }
}

#[tokio::test]
async fn a_topic_made_anew_below_a_connection_ends_it() {
    let log = rows(3);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    client.ids(3).await;
    log.make(TRAIL, 1);
    for id in 1..=5 {
        log.append(TRAIL, row(id));
    }
    assert_eq!(client.rest().await.1.code, 4015);
}

#[tokio::test]
async fn a_position_ahead_of_the_log_is_held_and_then_refused() {
    let log = rows(3);
    let mut config = config();
    config.limits.hold_ahead = Duration::from_secs(20);
    let server = Server::with_stream(&log, json!({})).await;
    let patient = Server::start(&log, config).await;
    let mut client = server.connect("orders").await;
    client.ids(2).await;
    let third = pos(&client.data().await).to_owned();
    drop(client);
    let late = log.lag(TRAIL, 2);
    let (status, answer) = server.refused(&format!("orders?begin={third}")).await;
    assert_eq!((status, &answer["code"]), (409, &json!("ahead_of_log")));
    let query = format!("orders?begin={third}");
    let held = patient.connect(&query);
    let caught_up = async {
        while log.watchers(TRAIL) == 0 {
            tokio::task::yield_now().await;
        }
        for record in late {
            log.append(TRAIL, record);
        }
        log.append(TRAIL, row(4));
    };
    let (mut client, ()) = tokio::join!(held, caught_up);
    assert_eq!(client.ids(1).await, [4]);
}

#[tokio::test]
async fn a_compacted_record_still_resumes() {
    let log = rows(3);
    let server = Server::with_stream(&log, json!({})).await;
    let mut client = server.connect("orders").await;
    let first = pos(&client.data().await).to_owned();
    log.compact_away(TRAIL, 0);
    let mut client = server.connect(&format!("orders?begin={first}")).await;
    assert_eq!(client.ids(2).await, [2, 3]);
}

#[tokio::test]
async fn positions_of_elsewhere_are_refused_by_their_own_codes() {
    let log = rows(2);
    log.append("other", row(1));
    let server = Server::with_stream(&log, json!({})).await;
    let body = json!({"source": {"trail": TRAIL}});
    server.send("POST", "/services/v2/stream/second", &body).await;
    let mut client = server.connect("orders").await;
    let token = pos(&client.data().await).to_owned();
    let code = async |query: String| {
        let (status, answer) = server.refused(&query).await;
        for part in ["code", "what", "kept", "do"] {
            assert!(answer[part].as_str().is_some_and(|text| !text.is_empty()), "{part}: {answer}");
        }
        assert_eq!(status == 409, answer["positions"]["oldest"]["offset"] == "0", "{answer}");
        (status, answer["code"].as_str().unwrap().to_owned())
    };
    let is = |status, code: &str| (status, code.to_owned());
    assert_eq!(code(format!("second?begin={token}")).await, is(409, "wrong_stream"));
    let damaged = format!("orders?begin={}", &token[..token.len() - 1]);
    assert_eq!(code(damaged).await, is(409, "position_damaged"));
    assert_eq!(code("orders?begin=x%20y".to_owned()).await, is(400, "begin_malformed"));
    assert_eq!(code("orders?begin=2026-01-01T00:00:00Z".to_owned()).await.0, 400);
    let repeated = "orders?begin=now&begin=now".to_owned();
    assert_eq!(code(repeated).await, is(400, "parameter_repeated"));
    assert_eq!(code("nowhere".to_owned()).await, is(404, "stream_not_found"));

    let path = "/services/v2/stream/orders";
    let encoding = json!({"encoding": {"json": {"omitNullColumnValues": true}}});
    server.send("PATCH", path, &encoding).await;
    assert_eq!(code(format!("orders?begin={token}")).await, is(409, "contract_changed"));
    server.send("PATCH", path, &json!({"encoding": null, "source": {"trail": "other"}})).await;
    assert_eq!(code(format!("orders?begin={token}")).await, is(409, "wrong_topic"));
    server.send("PATCH", path, &json!({"source": {"trail": TRAIL}, "bufferSize": 131_072})).await;
    let mut client = server.connect(&format!("orders?begin={token}")).await;
    assert_eq!(client.ids(1).await, [2]);
}
