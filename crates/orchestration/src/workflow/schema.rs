//! The JSON Schema of workflow files, for editors: made from the table of [`keys`](super::keys).

use serde_json::{Map, Value, json};

use super::keys::{FILE, KINDS, Key, Kind, Takes};
use crate::validate::Language;

/// The JSON Schema (draft 7, which editors for TOML know) of a workflow file.
///
/// What the parser accepts satisfies it. It cannot say everything: names used twice, unknown
/// variables and limits that contradict each other are found by the parser alone.
pub fn workflow_schema() -> Value {
    let mut schema = table(FILE.iter());
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "Correx workflow, version 1".into();
    schema
}

fn table<'k>(keys: impl Iterator<Item = &'k Key>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for key in keys {
        properties.insert(key.name.to_owned(), property(key));
        if key.required {
            required.push(key.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(key: &Key) -> Value {
    let mut property = takes(key.takes);
    property["description"] = key.about.into();
    if let Some(default) = key.default.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        property["default"] = default;
    }
    property
}

fn takes(takes: Takes) -> Value {
    // Not only white space.
    let words = json!({ "type": "string", "pattern": "\\S" });
    match takes {
        Takes::Text => json!({ "type": "string" }),
        Takes::Words => words,
        Takes::OneOf(allowed) => json!({ "type": "string", "enum": allowed }),
        Takes::Language => {
            json!({ "type": "string", "enum": Language::codes().collect::<Vec<_>>() })
        }
        Takes::Truth => json!({ "type": "boolean" }),
        Takes::Whole(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Takes::Number(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        Takes::Above(min, max) => {
            json!({ "type": "number", "exclusiveMinimum": min, "maximum": max })
        }
        Takes::AnyNumber => json!({ "type": "number" }),
        Takes::Texts => json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
        ] }),
        Takes::SomeTexts => json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
        ] }),
        Takes::Codes => json!({
            "type": "array",
            "items": { "type": "integer", "minimum": 0, "maximum": 255 },
            "minItems": 1,
        }),
        Takes::Variables => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        Takes::Different(min, max) => {
            let mut list =
                json!({ "type": "array", "items": words, "minItems": min, "uniqueItems": true });
            if let Some(max) = max {
                list["maxItems"] = max.into();
            }
            list
        }
        Takes::Range => {
            json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 })
        }
        Takes::Schema => json!({ "type": ["object", "string"] }),
        Takes::Table(keys) => table(keys.iter()),
        Takes::Tables(keys) => json!({ "type": "array", "items": table(keys.iter()) }),
        Takes::Stages => {
            let kinds: Vec<Value> = KINDS.iter().map(stage).collect();
            json!({ "type": "array", "minItems": 1, "items": { "oneOf": kinds } })
        }
    }
}

fn stage(kind: &Kind) -> Value {
    let mut stage = table(kind.keys());
    stage["title"] = format!("kind = \"{}\"", kind.name).into();
    stage["description"] = kind.about.into();
    stage["properties"]["kind"] =
        json!({ "type": "string", "enum": [kind.name], "description": kind.about });
    if let Some((one, other)) = kind.one_of {
        stage["oneOf"] = json!([{ "required": [one] }, { "required": [other] }]);
    }
    stage
}
