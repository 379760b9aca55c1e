//! The REST interface of the resources.

use serde_json::{Value, json};

use super::client::{Server, config, log};
use super::trails::{TRAIL, hw, record, row};
use crate::resource::{is_stream_name, merge};

const ORDERS: &str = "/services/v2/stream/orders";

#[tokio::test]
async fn a_stream_is_made_shown_changed_and_deleted() {
    let log = log();
    log.append(TRAIL, row(1));
    let server = Server::start(&log, config()).await;
    assert_eq!(server.get(ORDERS).await.0, 404);
    let body = json!({"source": {"trail": TRAIL}, "description": "for the ledger"});
    let (status, answer) = server.send("POST", ORDERS, &body).await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(answer["$schema"], "api:standardResponse");
    assert_eq!(answer["messages"], json!([]));
    let href = format!("http://{}{ORDERS}", server.address);
    assert_eq!(
        answer["links"][0],
        json!({"rel": "canonical", "href": href, "mediaType": "application/json"})
    );
    assert_eq!(answer["response"], defaults("for the ledger"));
    assert_eq!(server.send("POST", ORDERS, &body).await.1["code"], "stream_exists");

    let patch = json!({"qualityOfService": "atLeastOnce", "description": null});
    let (status, answer) = server.send("PATCH", ORDERS, &patch).await;
    assert_eq!((status, &answer["response"]["qualityOfService"]), (200, &json!("atLeastOnce")));
    let (status, shown) = server.get(ORDERS).await;
    assert_eq!((status, &shown), (200, &answer));
    assert_eq!(shown["response"].get("description"), None);

    let (_, listed) = server.get("/services/v2/stream").await;
    assert_eq!(listed["response"]["$schema"], "ogg:dataStreamCollection");
    assert_eq!(listed["response"]["items"][0]["name"], "orders");
    assert_eq!(listed["response"]["items"][0]["details"], shown["response"]);

    assert_eq!(server.send("DELETE", ORDERS, &Value::Null).await.0, 200);
    assert_eq!(server.send("DELETE", ORDERS, &Value::Null).await.0, 404);
    assert_eq!(server.get(ORDERS).await.1["code"], "stream_not_found");
}

fn defaults(description: &str) -> Value {
    json!({
        "$schema": "ogg:dataStream",
        "description": description,
        "source": {"trail": TRAIL},
        "qualityOfService": "exactlyOnce",
        "bufferSize": 1_048_576,
        "tcpKeepAliveTimeout": 120,
        "cloudEventsFormat": false,
        "encoding": {"json": {
            "$schema": "ogg:outputFormatJson",
            "model": "op",
            "beforeImageName": "before",
            "afterImageName": "after",
            "flatten": false,
            "omitNullColumnValues": false,
            "treatAllColumnsAsStrings": false,
            "operationStrings": {
                "insert": "INSERT", "update": "UPDATE", "delete": "DELETE",
                "truncate": "TRUNCATE", "upsert": "UPSERT", "ddl": "DDL",
            },
            "staticFields": {},
            "includeJSONSchemaRecord": true,
            "includeObjectMetadataRecords": true,
            "includeStreamMetadataRecord": true,
            "metaFields": {
                "opType": true, "qualifiedTable": true, "opTs": true, "pos": true, "xid": true,
                "csn": true, "opSeqno": true, "transInd": true, "recordId": true,
            },
        }},
    })
}

#[tokio::test]
async fn what_is_shown_can_be_sent_back() {
    let log = log();
    let server = Server::with_stream(&log, json!({})).await;
    let shown = server.get(ORDERS).await.1["response"].clone();
    let (status, answer) = server.send("PATCH", ORDERS, &shown).await;
    assert_eq!((status, &answer["response"]), (200, &shown));
    let (status, answer) = server.send("POST", "/services/v2/stream/copy", &shown).await;
    assert_eq!((status, &answer["response"]), (201, &shown));
}

#[tokio::test]
async fn streams_outlive_the_server() {
    let log = log();
    let server = Server::with_stream(&log, json!({"bufferSize": 200_000})).await;
    let body = json!({"source": {"trail": TRAIL}});
    assert_eq!(server.send("POST", "/services/v2/stream/gone", &body).await.0, 201);
    assert_eq!(server.send("DELETE", "/services/v2/stream/gone", &Value::Null).await.0, 200);
    let before = server.get(ORDERS).await.1["response"].clone();
    drop(server);
    let server = Server::start(&log, config()).await;
    assert_eq!(server.get(ORDERS).await.1["response"], before);
    assert_eq!(server.get("/services/v2/stream/gone").await.0, 404);
}

#[tokio::test]
async fn a_stored_stream_that_cannot_be_read_is_refused_alone_until_it_is_deleted() {
    let log = log();
    drop(Server::with_stream(&log, json!({})).await);
    let put = async |value: &[u8]| {
        let value = Some(value.to_vec());
        crate::trail::Log::put(log.as_ref(), "highwater.streams", "new", value).await.unwrap();
    };
    for (stored, detail) in
        [(&br#"{"v":2,"stream":{}}"#[..], "version 2"), (b"no JSON", "expected")]
    {
        put(stored).await;
        let server = Server::start(&log, config()).await;
        assert_eq!(server.get(ORDERS).await.0, 200);
        let path = "/services/v2/stream/new";
        for method in ["GET", "PATCH", "POST"] {
            let (status, body) =
                server.send(method, path, &json!({"source": {"trail": TRAIL}})).await;
            assert_eq!(status, 409, "{method} {body}");
            if method != "POST" {
                assert_eq!(body["code"], "stream_unreadable", "{method}");
                assert!(body["what"].as_str().unwrap().contains(detail), "{body}");
            }
        }
        let (_, listed) = server.get("/services/v2/stream").await;
        assert_eq!(listed["response"]["items"][1]["status"], "unreadable", "{listed}");
        let (_, listed) = server.get("/highwater/v1/streams").await;
        assert_eq!(listed["streams"][1]["error"]["code"], "stream_unreadable", "{listed}");
        assert_eq!(server.send("DELETE", path, &Value::Null).await.0, 200);
        assert_eq!(server.get(path).await.0, 404);
        drop(server);
        assert_eq!(Server::start(&log, config()).await.get(path).await.0, 404);
    }
}

async fn refusal(server: &Server, body: Value) -> (Value, String) {
    let (status, answer) = server.send("POST", ORDERS, &body).await;
    assert_eq!(status, 400, "{answer}");
    for part in ["code", "what", "kept", "do"] {
        assert!(answer[part].as_str().is_some_and(|text| !text.is_empty()), "{part}: {answer}");
    }
    (answer["code"].clone(), answer["what"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn what_cannot_be_is_refused_by_name() {
    let log = log();
    let server = Server::start(&log, config()).await;
    let trail = json!({"trail": TRAIL});
    for (body, attribute) in [
        (json!([]), "the body"),
        (json!({}), "source"),
        (json!({"source": {}}), "source.trail"),
        (json!({"source": {"trail": "a b"}}), "source.trail"),
        (json!({"source": trail, "bufferSize": 131_071}), "bufferSize"),
        (json!({"source": trail, "bufferSize": 1.5}), "bufferSize"),
        (json!({"source": trail, "tcpKeepAliveTimeout": 10_801}), "tcpKeepAliveTimeout"),
        (json!({"source": trail, "qualityOfService": "best"}), "qualityOfService"),
        (json!({"source": trail, "qualityofservice": "exactlyOnce"}), "qualityofservice"),
        (json!({"source": trail, "$schema": "ogg:other"}), "$schema"),
        (json!({"source": trail, "encoding": "xml"}), "encoding"),
        (json!({"source": trail, "encoding": {"xml": {}}}), "encoding.xml"),
        (json!({"source": trail, "encoding": {"json": {"model": "x"}}}), "encoding.json.model"),
        (
            json!({"source": trail, "encoding": {"json": {"afterImageName": ""}}}),
            "encoding.json.afterImageName",
        ),
        (
            json!({"source": trail, "encoding": {"json": {"afterImageName": "before"}}}),
            "two members named before",
        ),
        (
            json!({"source": trail, "encoding": {"json": {"staticFields": {"pos": 1}}}}),
            "two members named pos",
        ),
        (
            json!({"source": trail, "encoding": {"json": {"staticFields": {"a": []}}}}),
            "encoding.json.staticFields",
        ),
        (
            json!({"source": trail, "encoding": {"json": {"operationStrings": {"insert": "DDL"}}}}),
            "encoding.json.operationStrings",
        ),
        (
            json!({"source": trail, "encoding": {"json": {"metaFields": {"csn": 1}}}}),
            "encoding.json.metaFields.csn",
        ),
        (
            json!({"source": trail, "encoding": {"json": {"metaFields": {"x": true}}}}),
            "encoding.json.metaFields.x",
        ),
    ] {
        let (code, what) = refusal(&server, body.clone()).await;
        assert_eq!(code, "configuration_invalid", "{body}");
        assert!(what.contains(attribute), "{body}: {what}");
    }
}

#[tokio::test]
async fn what_comes_later_is_refused_and_never_ignored() {
    let log = log();
    let server = Server::start(&log, config()).await;
    let json = |attribute: &str, value: Value| json!({"source": {"trail": TRAIL}, "encoding": {"json": {attribute: value}}});
    for (body, attribute) in [
        (json!({"source": {"trail": TRAIL, "path": "x"}}), "source.path"),
        (json!({"source": {"trail": TRAIL}, "rules": [{}]}), "rules"),
        (json!({"source": {"trail": TRAIL}, "cloudEventsFormat": true}), "cloudEventsFormat"),
        (json!({"source": {"trail": TRAIL}, "cloudEventFormat": true}), "cloudEventFormat"),
        (json("model", json!("row")), "encoding.json.model"),
        (json("flatten", json!(true)), "encoding.json.flatten"),
        (json("maxLobSize", json!(64_000)), "encoding.json.maxLobSize"),
        (json("metaFields", json!({"primaryKeys": true})), "encoding.json.metaFields.primaryKeys"),
    ] {
        let (code, what) = refusal(&server, body).await;
        assert_eq!(code, "not_available_yet");
        assert!(what.contains(attribute), "{what}");
    }
    let (code, _) =
        refusal(&server, json!({"source": {"trail": TRAIL}, "rules": [], "x": 1})).await;
    assert_eq!(code, "configuration_invalid");
}

#[tokio::test]
async fn a_topic_that_is_no_trail_is_refused() {
    let log = log();
    log.make("wide", 3);
    log.append("foreign", record(&hw(1, 0), "no JSON"));
    log.append("spoilt", row(1));
    log.append("spoilt", highwater_kafka::ReadRecord { headers: Vec::new(), ..row(2) });
    let server = Server::start(&log, config()).await;
    for (topic, code) in [
        ("absent", "trail_missing"),
        ("wide", "trail_partitioned"),
        ("foreign", "trail_undecodable"),
        ("spoilt", "trail_undecodable"),
        ("shop.schema", "trail_undecodable"),
        ("highwater.streams", "trail_internal"),
    ] {
        let (refused, what) = refusal(&server, json!({"source": {"trail": topic}})).await;
        assert_eq!(refused, code, "{what}");
    }
    assert_eq!(server.get(ORDERS).await.0, 404);
}

#[tokio::test]
async fn a_change_that_is_refused_changes_nothing() {
    let log = log();
    let server = Server::with_stream(&log, json!({})).await;
    let before = server.get(ORDERS).await;
    for patch in [json!({"bufferSize": 1}), json!({"source": {"trail": "absent"}}), json!(7)] {
        assert_eq!(server.send("PATCH", ORDERS, &patch).await.0, 400, "{patch}");
    }
    log.set_away(true);
    let answer = server.send("PATCH", ORDERS, &json!({"bufferSize": 200_000})).await;
    assert_eq!((answer.0, &answer.1["code"]), (503, &json!("log_unavailable")));
    assert_eq!(server.send("DELETE", ORDERS, &Value::Null).await.0, 503);
    log.set_away(false);
    assert_eq!(server.get(ORDERS).await, before);
}

#[tokio::test]
async fn names_and_bodies_are_checked() {
    let log = log();
    let server = Server::start(&log, config()).await;
    let body = json!({"source": {"trail": TRAIL}});
    let bad = server.send("POST", "/services/v2/stream/9lives", &body).await;
    assert_eq!((bad.0, &bad.1["code"]), (400, &json!("stream_name_invalid")));
    for (content_type, text, status) in [
        ("text/plain", "{}", 415),
        ("application/json; charset=utf-8", "{", 400),
        ("application/JSON", "{}", 400),
    ] {
        let request = format!(
            "POST {ORDERS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        assert_eq!(server.ask(&request).await.0, status, "{content_type}");
    }
}

#[test]
fn stream_names() {
    for name in ["a", "A-b_c.9", &"x".repeat(32)] {
        assert!(is_stream_name(name), "{name}");
    }
    for name in ["", "9a", "-a", "a b", "a/b", "ä", &"x".repeat(33)] {
        assert!(!is_stream_name(name), "{name}");
    }
}

#[test]
fn a_merge_patch_is_that_of_rfc_7396() {
    let mut document = json!({"a": {"b": 1, "c": 2}, "d": [1]});
    merge(&mut document, &json!({"a": {"b": null, "e": {"f": null}}, "d": 3}));
    assert_eq!(document, json!({"a": {"c": 2, "e": {}}, "d": 3}));
}
