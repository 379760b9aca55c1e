//! `GET /openapi.json`: the API in the form that tools read (OpenAPI 3.1).

use axum::Json;
use serde_json::{Map, Value, json};

/// A method of a path.
pub(crate) struct Operation {
    pub(crate) path: &'static str,
    method: &'static str,
    summary: &'static str,
    /// Status of success.
    success: u16,
    /// What a client may be refused with.
    refusals: &'static [u16],
    /// Parameters of the query.
    query: &'static [&'static str],
    body: Shape,
}

/// What a body is.
#[derive(Clone, Copy)]
enum Shape {
    None,
    Object,
    /// A flat map of text.
    Config,
}

const fn operation(
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    success: u16,
) -> Operation {
    Operation { path, method, summary, success, refusals: &[], query: &[], body: Shape::None }
}

impl Operation {
    const fn refused(mut self, refusals: &'static [u16]) -> Self {
        self.refusals = refusals;
        self
    }

    const fn asked(mut self, query: &'static [&'static str]) -> Self {
        self.query = query;
        self
    }

    const fn taking(mut self, body: Shape) -> Self {
        self.body = body;
        self
    }
}

const CONNECTOR: &str = "/connectors/{connector}";

/// All operations, by path.
pub(crate) const OPERATIONS: &[Operation] = &[
    operation("get", "/", "Version and cluster", 200),
    operation("get", "/health", "Whether the worker is well", 200).refused(&[500, 503]),
    operation("get", "/openapi.json", "This document", 200),
    operation("get", "/connector-plugins", "The plugins that there are", 200)
        .asked(&["connectorsOnly"]),
    operation("get", "/connector-plugins/{plugin}/config", "The keys that a plugin takes", 200)
        .refused(&[400, 404])
        .asked(&["version"]),
    operation(
        "put",
        "/connector-plugins/{plugin}/config/validate",
        "What is wrong with a configuration",
        200,
    )
    .refused(&[400])
    .taking(Shape::Config),
    operation("get", "/admin/loggers", "Levels of log lines", 200),
    operation("get", "/admin/loggers/{logger}", "Level of a logger", 200).refused(&[404]),
    operation("put", "/admin/loggers/{logger}", "Set a level, of this worker or of all", 200)
        .refused(&[400, 404])
        .asked(&["scope"])
        .taking(Shape::Object),
    operation("get", "/connectors", "Names of all connectors, or more of each", 200)
        .asked(&["expand"]),
    operation("post", "/connectors", "Make a connector", 201)
        .refused(&[400, 409])
        .taking(Shape::Object),
    operation("get", CONNECTOR, "Configuration and tasks", 200).refused(&[404]),
    operation("delete", CONNECTOR, "Delete; topics and offsets stay", 204)
        .refused(&[404])
        .asked(&["release"]),
    operation("get", "/connectors/{connector}/config", "Configuration", 200).refused(&[404]),
    operation("put", "/connectors/{connector}/config", "Make, or replace the configuration", 200)
        .refused(&[400, 409])
        .taking(Shape::Config),
    operation(
        "patch",
        "/connectors/{connector}/config",
        "Merge into the configuration; null removes",
        200,
    )
    .refused(&[400, 404])
    .taking(Shape::Config),
    operation("get", "/connectors/{connector}/status", "What it is doing", 200).refused(&[404]),
    operation(
        "post",
        "/connectors/{connector}/restart",
        "Restart the connector, its tasks, or what failed",
        204,
    )
    .refused(&[404])
    .asked(&["includeTasks", "onlyFailed"]),
    operation("put", "/connectors/{connector}/pause", "Keep the tasks and read nothing", 202)
        .refused(&[404]),
    operation("put", "/connectors/{connector}/resume", "Run again", 202).refused(&[404]),
    operation(
        "put",
        "/connectors/{connector}/stop",
        "End the tasks; offsets may then be changed",
        204,
    )
    .refused(&[404]),
    operation("get", "/connectors/{connector}/tasks", "Tasks and their configurations", 200)
        .refused(&[404]),
    operation("get", "/connectors/{connector}/tasks/{task}/status", "What a task is doing", 200)
        .refused(&[404]),
    operation("post", "/connectors/{connector}/tasks/{task}/restart", "Restart a task", 204)
        .refused(&[404]),
    operation("get", "/connectors/{connector}/offsets", "Stored offsets", 200).refused(&[404]),
    operation(
        "patch",
        "/connectors/{connector}/offsets",
        "Change offsets of a stopped connector",
        200,
    )
    .refused(&[400, 404])
    .asked(&["allowSkip", "reason"])
    .taking(Shape::Object),
    operation(
        "delete",
        "/connectors/{connector}/offsets",
        "Reset all offsets of a stopped connector",
        200,
    )
    .refused(&[400, 404])
    .asked(&["allowSkip", "reason"]),
    operation("get", "/connectors/{connector}/topics", "Topics that it has used", 200)
        .refused(&[403]),
    operation(
        "put",
        "/connectors/{connector}/topics/reset",
        "Forget them until they are used again",
        202,
    )
    .refused(&[403]),
];

/// The methods of a path, as header `Allow` has them.
pub(crate) fn methods(path: &str) -> String {
    let operations = OPERATIONS.iter().filter(|operation| operation.path == path);
    let mut names: Vec<_> = operations.map(|operation| operation.method.to_uppercase()).collect();
    if names.iter().any(|name| name == "GET") {
        names.push("HEAD".to_owned());
    }
    names.push("OPTIONS".to_owned());
    names.join(", ")
}

pub(crate) async fn document() -> Json<Value> {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described(operation);
    }
    Json(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Kafka Connect's REST API, served by Highwater",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": { "schemas": { "Error": {
            "type": "object",
            "required": ["error_code", "message"],
            "properties": { "error_code": { "type": "integer" }, "message": { "type": "string" } },
        } } },
    }))
}

fn described(operation: &Operation) -> Value {
    let mut responses = Map::new();
    responses.insert(operation.success.to_string(), json!({ "description": "Done" }));
    for status in operation.refusals {
        let schema = json!({ "$ref": "#/components/schemas/Error" });
        let content = json!({ "application/json": { "schema": schema } });
        let refusal = json!({ "description": "Refused", "content": content });
        responses.insert(status.to_string(), refusal);
    }
    let mut described = json!({
        "summary": operation.summary,
        "parameters": parameters(operation),
        "responses": responses,
    });
    let schema = match operation.body {
        Shape::None => return described,
        Shape::Object => json!({ "type": "object" }),
        Shape::Config => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean", "null"] },
        }),
    };
    described["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
    described
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let parameter = |name: &str, place: &str| {
        let required = place == "path";
        json!({ "name": name, "in": place, "required": required, "schema": { "type": "string" } })
    };
    let names =
        operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = names.map(|name| parameter(name, "path"));
    path.chain(operation.query.iter().map(|name| parameter(name, "query"))).collect()
}
