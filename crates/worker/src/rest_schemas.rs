//! The shapes of bodies, as `GET /openapi.json` has them (JSON Schema, draft 2020-12). What stands in
//! `highwater` is ours: its members come and go with what there is to say.

use serde_json::{Value, json};

/// All shapes by their names.
pub(crate) fn all() -> Value {
    let mut all = json!({});
    for part in [errors(), worker(), connectors(), states(), offsets(), plugins(), loggers()] {
        if let (Value::Object(all), Value::Object(part)) = (&mut all, part) {
            all.extend(part);
        }
    }
    all
}

/// Refers to a shape.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// An object with these members, of which `optional` may be absent, and no others.
fn object(members: Value, optional: &[&str]) -> Value {
    let names = members.as_object().into_iter().flat_map(|members| members.keys());
    let required: Vec<_> = names.filter(|name| !optional.contains(&name.as_str())).collect();
    json!({
        "type": "object",
        "required": required,
        "properties": members,
        "additionalProperties": false,
    })
}

fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn map(of: Value) -> Value {
    json!({ "type": "object", "additionalProperties": of })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn text_or_null() -> Value {
    json!({ "type": ["string", "null"] })
}

fn number() -> Value {
    json!({ "type": "integer" })
}

fn truth() -> Value {
    json!({ "type": "boolean" })
}

fn one_of(values: &[&str]) -> Value {
    json!({ "type": "string", "enum": values })
}

fn ours() -> Value {
    json!({ "type": "object", "description": "What Kafka Connect has no member for." })
}

fn errors() -> Value {
    let members = json!({
        "error_code": number(), "message": text(),
        "code": text(), "what": text(), "kept": text(), "do": text(),
    });
    json!({ "Error": object(members, &[]) })
}

fn worker() -> Value {
    let root = json!({
        "version": text(), "commit": text(), "kafka_cluster_id": text(), "highwater": ours(),
    });
    let health = json!({
        "status": one_of(&["healthy", "starting", "unhealthy"]), "message": text(), "highwater": ours(),
    });
    json!({
        "Worker": object(root, &[]),
        "Health": object(health, &["highwater"]),
        "Document": { "type": "object", "required": ["openapi", "info", "paths"] },
    })
}

fn connectors() -> Value {
    let kind = || one_of(&["source", "sink", "unknown"]);
    let id = json!({ "connector": text(), "task": number() });
    let info = json!({
        "name": text(), "config": reference("Config"), "tasks": list(reference("TaskId")), "type": kind(),
    });
    let expanded = json!({ "info": reference("Connector"), "status": reference("Status") });
    let made = json!({
        "name": { "type": ["string", "number", "boolean", "null"] },
        "config": reference("GivenConfig"),
        "initial_state": {
            "type": ["string", "null"], "description": "RUNNING, PAUSED or STOPPED, in any case.",
        },
    });
    json!({
        "Config": map(text()),
        "GivenConfig": map(json!({ "type": ["string", "number", "boolean", "null"] })),
        "NewConnector": object(made, &["name", "initial_state"]),
        "TaskId": object(id, &[]),
        "Connector": object(info, &[]),
        "Connectors": { "oneOf": [
            list(text()),
            map(object(expanded, &["info", "status"])),
        ] },
        "Tasks": list(object(json!({ "id": reference("TaskId"), "config": reference("Config") }), &[])),
        "Released": object(json!({ "released": text_or_null() }), &[]),
        "Topics": map(object(json!({ "topics": list(text()) }), &[])),
    })
}

fn states() -> Value {
    let states = ["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"];
    let state = |more: Value| {
        let mut members = json!({
            "state": one_of(&states), "worker_id": text(), "trace": text(), "version": text(),
            "highwater": ours(),
        });
        if let (Value::Object(members), Value::Object(more)) = (&mut members, more) {
            members.extend(more);
        }
        object(members, &["trace", "version", "highwater"])
    };
    let status = json!({
        "name": text(), "connector": reference("ConnectorState"), "tasks": list(reference("TaskState")),
        "type": one_of(&["source", "sink", "unknown"]),
    });
    json!({
        "ConnectorState": state(json!({})),
        "TaskState": state(json!({ "id": number() })),
        "Status": object(status, &[]),
    })
}

fn offsets() -> Value {
    let shown = json!({
        "partition": { "type": "object" }, "offset": { "type": "object" }, "highwater": ours(),
    });
    let wanted = json!({
        "partition": { "type": "object" }, "offset": { "type": ["object", "null"] },
    });
    json!({
        "Offsets": object(json!({ "offsets": list(object(shown, &["highwater"])) }), &[]),
        "WantedOffsets": object(json!({ "offsets": list(object(wanted, &["offset"])) }), &[]),
        "Message": object(json!({ "message": text() }), &[]),
    })
}

fn plugins() -> Value {
    let kinds = ["source", "sink", "converter", "header_converter", "transformation", "predicate"];
    let plugin = json!({ "class": text(), "type": one_of(&kinds), "version": text() });
    let types =
        ["BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"];
    let definition = json!({
        "name": text(), "type": one_of(&types), "required": truth(), "default_value": text_or_null(),
        "importance": one_of(&["HIGH", "MEDIUM", "LOW"]), "documentation": text(),
        "group": text_or_null(), "order_in_group": number(),
        "width": one_of(&["NONE", "SHORT", "MEDIUM", "LONG"]), "display_name": text(),
        "dependents": list(text()),
    });
    let value = json!({
        "name": text(), "value": text_or_null(), "recommended_values": list(text()),
        "errors": list(text()), "visible": truth(),
    });
    let both = json!({ "definition": reference("Definition"), "value": reference("Value") });
    let validation = json!({
        "name": text(), "error_count": number(), "groups": list(text()),
        "configs": list(object(both, &[])),
    });
    json!({
        "Plugins": list(object(plugin, &["version"])),
        "Definition": object(definition, &[]),
        "Definitions": list(reference("Definition")),
        "Value": object(value, &[]),
        "Validation": object(validation, &[]),
    })
}

fn loggers() -> Value {
    let level = json!({
        "level": one_of(&["OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"]),
        "last_modified": { "type": ["integer", "null"] },
    });
    json!({
        "Logger": object(level, &[]),
        "Loggers": map(reference("Logger")),
        "Level": object(json!({ "level": text() }), &[]),
        "Names": list(text()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_its_members_and_no_others() {
        let shape = object(json!({ "a": text(), "b": text() }), &["b"]);
        assert_eq!(shape["required"], json!(["a"]));
        assert_eq!(shape["additionalProperties"], json!(false));
    }

    #[test]
    fn each_shape_that_is_referred_to_is_there() {
        let all = all();
        let text = all.to_string();
        let mut names = text.split("#/components/schemas/").skip(1);
        assert!(names.all(|rest| {
            let name = rest.split('"').next().unwrap();
            all.get(name).is_some()
        }));
    }
}
