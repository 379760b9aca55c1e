//! The REST interface of the resources, and the upgrade to a connection.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, Query, State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use crate::begin::ConnectionRequest;
use crate::feed::View;
use crate::fields::Problem;
use crate::opening::Opening;
use crate::refusal::Refusal;
use crate::registry::Stream;
use crate::resource::{Resource, is_stream_name, merge};
use crate::service::Service;
use crate::session::Session;
use crate::trail::TopicPartition;
use crate::{state, status, vetting};

const BASE: &str = "/services/v2/stream";
/// Largest message taken from a client, which has none to send.
const LARGEST_MESSAGE: usize = 64 << 10;
/// What a client sends is read in pieces of this size; control frames are smaller.
const READ_BUFFER: usize = 4 << 10;

type Pairs = Query<Vec<(String, String)>>;

pub(crate) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route(BASE, get(list))
        .route(
            &format!("{BASE}/{{name}}"),
            get(show_or_connect).post(create).patch(change).delete(remove),
        )
        .route("/highwater/v1/streams", get(status::list))
        .route("/highwater/v1/streams/{name}", get(status::show))
        .with_state(service)
}

async fn list(State(service): State<Arc<Service>>, headers: HeaderMap) -> Response {
    let base = base_url(&headers);
    let item = |name: &str, status: &str, details: Value| {
        json!({
            "$schema": "ogg:collectionItem",
            "name": name,
            "status": status,
            "links": links(&base, name, &["canonical", "self"]),
            "details": details,
        })
    };
    let streams = service.registry.all();
    let readable =
        streams.iter().map(|stream| item(&stream.name, "running", stream.resource.to_json()));
    let unreadable = service.registry.unreadable();
    let unreadable = unreadable.iter().map(|unreadable| {
        let details = Refusal::stream_unreadable(unreadable).to_json();
        item(&unreadable.stream, "unreadable", details)
    });
    let items: Vec<Value> = readable.chain(unreadable).collect();
    let document = json!({"$schema": "ogg:dataStreamCollection", "items": items});
    let links = json!([{"rel": "canonical", "href": format!("{base}{BASE}"), "mediaType": JSON},
        {"rel": "self", "href": format!("{base}{BASE}"), "mediaType": JSON}]);
    envelope(StatusCode::OK, links, document)
}

fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE).and_then(|upgrade| upgrade.to_str().ok());
    upgrade.is_some_and(|upgrade| upgrade.to_ascii_lowercase().contains("websocket"))
}

async fn show_or_connect(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    query: Result<Pairs, axum::extract::rejection::QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let stream = service.registry.get(&name)?;
    if !asks_for_websocket(&headers) {
        return Ok(shown(&headers, StatusCode::OK, &stream));
    }
    let upgrade = upgrade.map_err(|rejection| {
        let what = format!("the upgrade is not a WebSocket's: {rejection}");
        Refusal::bad_request("upgrade_malformed", what, "connect with a WebSocket client")
    })?;
    let Query(pairs) = query.map_err(|rejection| {
        let what = format!("the query cannot be read: {rejection}");
        Refusal::bad_request("parameter_malformed", what, "percent-encode the value of begin")
    })?;
    connect(&service, stream, &pairs, upgrade).await
}

/// Decides everything before the upgrade, so that a refusal is an answer that a client can read.
async fn connect(
    service: &Arc<Service>,
    stream: Arc<Stream>,
    pairs: &[(String, String)],
    upgrade: WebSocketUpgrade,
) -> Result<Response, Refusal> {
    let resource = &stream.resource;
    let request = ConnectionRequest::parse(pairs, resource.quality_of_service)?;
    let qos = request.quality_of_service;
    let admission = service.registry.admit(&stream, &request.begin, qos)?;
    let TopicPartition { topic, partition } = resource.source();
    let described = service.log.topic(&topic).await;
    let described = described.map_err(|error| Refusal::log_unavailable(&error))?;
    let described = described.filter(|described| partition < described.partitions);
    let described = described.ok_or_else(|| Refusal::trail_missing(&topic))?;
    let view = View::new(&stream.name, &described, partition, resource.encoding().clone());
    let limits = service.config.limits.clone();
    let mut opening = Opening::new(&service.log, &view, &limits, &service.scans).await?;
    let start = opening.start(&request).await?;
    let session = Session {
        log: service.log.clone(),
        descriptions: service.descriptions.clone(),
        limits,
        admission,
        view,
        start,
        on_gone: request.on_gone,
    };
    // A frame's length is believed up to its bound: memory is made for it before it comes.
    let upgrade = upgrade
        .max_message_size(LARGEST_MESSAGE)
        .max_frame_size(LARGEST_MESSAGE)
        .read_buffer_size(READ_BUFFER);
    Ok(upgrade.on_upgrade(move |socket| session.run(socket)))
}

async fn create(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    if !is_stream_name(&name) {
        return Err(Refusal::bad_request(
            "stream_name_invalid",
            format!("{name:?} cannot name a stream"),
            "use 1 to 32 letters, digits, dashes, underscores and dots, a letter first",
        ));
    }
    let resource = checked(&json_body(&headers, &body, &[JSON])?)?;
    let _one_at_a_time = service.changing.lock().await;
    if service.registry.known(&name).is_ok() {
        return Err(Refusal::conflict(
            "stream_exists",
            format!("a stream named {name} exists"),
            "PATCH it, DELETE it first, or choose another name",
        ));
    }
    if service.registry.is_full() {
        return Err(Refusal::conflict(
            "too_many_streams",
            format!("there are {} streams, and no more may be made", service.config.limits.streams),
            "delete a stream that nobody reads",
        ));
    }
    vetting::check(service.log.as_ref(), &resource).await?;
    let stream = put(&service, &name, resource).await?;
    let mut response = shown(&headers, StatusCode::CREATED, &stream);
    let location = format!("{}{BASE}/{name}", base_url(&headers));
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Applies a merge patch. Connections end when it changes anything.
async fn change(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let patch = json_body(&headers, &body, &[JSON, "application/merge-patch+json"])?;
    let _one_at_a_time = service.changing.lock().await;
    let stream = service.registry.get(&name)?;
    let mut document = stream.resource.to_json();
    merge(&mut document, &patch);
    let resource = checked(&document)?;
    if resource == stream.resource {
        return Ok(shown(&headers, StatusCode::OK, &stream));
    }
    vetting::check(service.log.as_ref(), &resource).await?;
    let stream = put(&service, &name, resource).await?;
    Ok(shown(&headers, StatusCode::OK, &stream))
}

async fn remove(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let _one_at_a_time = service.changing.lock().await;
    service.registry.known(&name)?;
    let removed = state::remove(service.log.as_ref(), &service.config.state_topic, &name).await;
    removed.map_err(|error| not_stored(&error))?;
    service.registry.remove(&name);
    Ok(envelope(StatusCode::OK, json!([]), Value::Null))
}

/// Stores a stream, then lets it take effect.
async fn put(service: &Service, name: &str, resource: Resource) -> Result<Arc<Stream>, Refusal> {
    let topic = &service.config.state_topic;
    let stored = state::store(service.log.as_ref(), topic, name, &resource).await;
    stored.map_err(|error| not_stored(&error))?;
    let stream = Stream::new(name, resource);
    service.registry.put(stream.clone());
    Ok(stream)
}

fn not_stored(error: &highwater_kafka::KafkaError) -> Refusal {
    Refusal::log_unavailable(error).keeping("the stream as it was, as far as is known")
}

fn checked(document: &Value) -> Result<Resource, Refusal> {
    Resource::parse(document).map_err(|problems| {
        let all_later = problems.iter().all(|problem| problem.later);
        let code = if all_later { "not_available_yet" } else { "configuration_invalid" };
        let told: Vec<String> = problems
            .iter()
            .map(|Problem { attribute, message, .. }| format!("{attribute} {message}"))
            .collect();
        Refusal::bad_request(code, told.join("; "), "mend the attributes named and send it again")
            .keeping("everything: no stream was made or changed")
    })
}

/// The body, which must say that it is JSON (rule A3).
fn json_body(headers: &HeaderMap, body: &[u8], types: &[&str]) -> Result<Value, Refusal> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let media = given.and_then(|given| given.split(';').next()).unwrap_or_default().trim();
    if !types.iter().any(|known| media.eq_ignore_ascii_case(known)) {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media_type_unsupported",
            format!("the body is of type {media:?}"),
            format!("send it with Content-Type: {}", types.join(" or ")),
        ));
    }
    serde_json::from_slice(body).map_err(|error| {
        let what = format!("the body is not JSON: {error}");
        Refusal::bad_request("body_malformed", what, "send a JSON object")
    })
}

const JSON: &str = "application/json";

fn shown(headers: &HeaderMap, status: StatusCode, stream: &Stream) -> Response {
    let base = base_url(headers);
    let links = links(&base, &stream.name, &["canonical", "self"]);
    envelope(status, links, stream.resource.to_json())
}

fn links(base: &str, name: &str, relations: &[&str]) -> Value {
    let href = format!("{base}{BASE}/{name}");
    relations.iter().map(|rel| json!({"rel": rel, "href": href, "mediaType": JSON})).collect()
}

/// Absolute links start with this: the client reached the server by it.
fn base_url(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("http://{host}")
}

fn envelope(status: StatusCode, links: Value, document: Value) -> Response {
    let mut body = json!({"$schema": "api:standardResponse", "links": links, "messages": []});
    if !document.is_null() {
        body["response"] = document;
    }
    (status, axum::Json(body)).into_response()
}
