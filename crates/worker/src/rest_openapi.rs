//! `GET /openapi.json`: the API in the form that tools read (OpenAPI 3.1).

use std::collections::BTreeSet;

use axum::Json;
use serde_json::{Map, Value, json};

use crate::rest_schemas as schemas;

/// A method of a path.
pub(crate) struct Operation {
    pub(crate) path: &'static str,
    method: &'static str,
    summary: &'static str,
    /// What it may be answered with when it is done, each status with the shape of its body.
    answers: &'static [(u16, &'static str)],
    /// What a client may be refused with, beside what may meet any request.
    refusals: &'static [u16],
    /// Parameters of the query.
    query: &'static [&'static str],
    /// Shape of the body that it takes.
    body: &'static str,
}

/// No body.
const NOTHING: &str = "";

const fn operation(
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    answers: &'static [(u16, &'static str)],
) -> Operation {
    Operation { path, method, summary, answers, refusals: &[], query: &[], body: NOTHING }
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

    const fn taking(mut self, body: &'static str) -> Self {
        self.body = body;
        self
    }

    /// What it may be refused with, in all.
    fn all_refusals(&self) -> BTreeSet<u16> {
        // Who does not say who it is, or may not; who takes no JSON; what takes too long, or breaks.
        let mut all = BTreeSet::from([401, 403, 406, 429, 500]);
        all.extend(self.refusals);
        if self.path.contains('{') || !self.query.is_empty() {
            all.insert(400);
        }
        if self.body != NOTHING {
            all.extend([400, 413]);
        }
        if self.method != "get" {
            // Also where no body is wanted, so that no form of another site's page can send one.
            all.insert(415);
        }
        all
    }
}

const CONNECTOR: &str = "/connectors/{connector}";

/// All operations, by path.
pub(crate) const OPERATIONS: &[Operation] = &[
    operation("get", "/", "Version and cluster", &[(200, "Worker")]),
    operation(
        "get",
        "/health",
        "Whether the worker is well",
        &[(200, "Health"), (500, "Health"), (503, "Health")],
    ),
    operation("get", "/openapi.json", "This document", &[(200, "Document")]),
    operation("get", "/connector-plugins", "The plugins that there are", &[(200, "Plugins")])
        .asked(&["connectorsOnly"]),
    operation(
        "get",
        "/connector-plugins/{plugin}/config",
        "The keys that a plugin takes",
        &[(200, "Definitions")],
    )
    .refused(&[400, 404])
    .asked(&["version"]),
    operation(
        "put",
        "/connector-plugins/{plugin}/config/validate",
        "What is wrong with a configuration",
        &[(200, "Validation")],
    )
    .refused(&[400])
    .taking("GivenConfig"),
    operation("get", "/admin/loggers", "Levels of log lines", &[(200, "Loggers")]),
    operation("get", "/admin/loggers/{logger}", "Level of a logger", &[(200, "Logger")])
        .refused(&[404]),
    operation(
        "put",
        "/admin/loggers/{logger}",
        "Set a level, of this worker or of all",
        &[(200, "Names"), (204, NOTHING)],
    )
    .refused(&[400, 404])
    .asked(&["scope"])
    .taking("Level"),
    operation(
        "get",
        "/connectors",
        "Names of all connectors, or more of each",
        &[(200, "Connectors")],
    )
    .asked(&["expand"]),
    operation("post", "/connectors", "Make a connector", &[(201, "Connector")])
        .refused(&[400, 409])
        .taking("NewConnector"),
    operation("get", CONNECTOR, "Configuration and tasks", &[(200, "Connector")]).refused(&[404]),
    operation(
        "delete",
        CONNECTOR,
        "Delete; topics and offsets stay",
        &[(200, "Released"), (204, NOTHING)],
    )
    .refused(&[404])
    .asked(&["release"]),
    operation("get", "/connectors/{connector}/config", "Configuration", &[(200, "Config")])
        .refused(&[404]),
    operation(
        "put",
        "/connectors/{connector}/config",
        "Make, or replace the configuration",
        &[(200, "Connector"), (201, "Connector")],
    )
    .refused(&[400, 409])
    .taking("GivenConfig"),
    operation(
        "patch",
        "/connectors/{connector}/config",
        "Merge into the configuration; null removes",
        &[(200, "Connector")],
    )
    .refused(&[400, 404])
    .taking("GivenConfig"),
    operation("get", "/connectors/{connector}/status", "What it is doing", &[(200, "Status")])
        .refused(&[404]),
    operation(
        "post",
        "/connectors/{connector}/restart",
        "Restart the connector, its tasks, or what failed",
        &[(202, "Status"), (204, NOTHING)],
    )
    .refused(&[404])
    .asked(&["includeTasks", "onlyFailed"]),
    operation(
        "put",
        "/connectors/{connector}/pause",
        "Keep the tasks and read nothing",
        &[(202, NOTHING)],
    )
    .refused(&[404]),
    operation("put", "/connectors/{connector}/resume", "Run again", &[(202, NOTHING)])
        .refused(&[404]),
    operation(
        "put",
        "/connectors/{connector}/stop",
        "End the tasks; offsets may then be changed",
        &[(204, NOTHING)],
    )
    .refused(&[404]),
    operation(
        "get",
        "/connectors/{connector}/tasks",
        "Tasks and their configurations",
        &[(200, "Tasks")],
    )
    .refused(&[404]),
    operation(
        "get",
        "/connectors/{connector}/tasks/{task}/status",
        "What a task is doing",
        &[(200, "TaskState")],
    )
    .refused(&[404]),
    operation(
        "post",
        "/connectors/{connector}/tasks/{task}/restart",
        "Restart a task",
        &[(204, NOTHING)],
    )
    .refused(&[404]),
    operation("get", "/connectors/{connector}/offsets", "Stored offsets", &[(200, "Offsets")])
        .refused(&[404]),
    operation(
        "patch",
        "/connectors/{connector}/offsets",
        "Change offsets of a stopped connector",
        &[(200, "Message")],
    )
    .refused(&[400, 404, 409])
    .asked(&["allowSkip", "reason"])
    .taking("WantedOffsets"),
    operation(
        "delete",
        "/connectors/{connector}/offsets",
        "Reset all offsets of a stopped connector",
        &[(200, "Message")],
    )
    .refused(&[400, 404, 409])
    .asked(&["allowSkip", "reason"]),
    operation(
        "get",
        "/connectors/{connector}/topics",
        "Topics that it has used",
        &[(200, "Topics")],
    )
    .refused(&[403]),
    operation(
        "put",
        "/connectors/{connector}/topics/reset",
        "Forget them until they are used again",
        &[(202, NOTHING)],
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
    Json(whole())
}

fn whole() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Kafka Connect's REST API, served by Highwater",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": { "schemas": schemas::all() },
    })
}

fn described(operation: &Operation) -> Value {
    let mut responses = Map::new();
    for status in operation.all_refusals() {
        let mut refusal = content("Error");
        refusal["description"] = json!("Refused");
        responses.insert(status.to_string(), refusal);
    }
    for (status, shape) in operation.answers {
        let mut answer = if *shape == NOTHING { json!({}) } else { content(shape) };
        answer["description"] = json!("Done");
        // Where an answer has the status of a refusal, either may come.
        if let Some(refusal) = responses.get(&status.to_string()) {
            let either = [schemas::reference(shape), schemas::reference("Error")];
            answer["content"]["application/json"]["schema"] = json!({ "oneOf": either });
            answer["description"] = refusal["description"].clone();
        }
        responses.insert(status.to_string(), answer);
    }
    let mut described = json!({
        "summary": operation.summary,
        "parameters": parameters(operation),
        "responses": responses,
    });
    if operation.body != NOTHING {
        described["requestBody"] = content(operation.body);
        described["requestBody"]["required"] = json!(true);
    }
    described
}

fn content(shape: &str) -> Value {
    json!({ "content": { "application/json": { "schema": schemas::reference(shape) } } })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_of_an_operation_is_there() {
        let shapes = schemas::all();
        for operation in OPERATIONS {
            let answers = operation.answers.iter().map(|(_, shape)| *shape);
            for shape in answers.chain([operation.body]).filter(|shape| *shape != NOTHING) {
                assert!(shapes.get(shape).is_some(), "{shape} of {}", operation.path);
            }
        }
    }

    #[test]
    fn an_answer_has_its_shape_and_a_refusal_that_of_errors() {
        let paths = whole()["paths"].clone();
        let put = &paths["/connectors/{connector}/config"]["put"]["responses"];
        let shape = |status: &str| put[status]["content"]["application/json"]["schema"].clone();
        assert_eq!(shape("201"), schemas::reference("Connector"));
        assert_eq!(shape("415"), schemas::reference("Error"));
        let pause = &paths["/connectors/{connector}/pause"]["put"]["responses"]["202"];
        assert_eq!(pause.get("content"), None);
        let health = &paths["/health"]["get"]["responses"]["500"];
        assert!(health["content"]["application/json"]["schema"]["oneOf"].is_array());
    }
}
