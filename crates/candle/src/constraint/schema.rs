//! A JSON Schema as it is given to the library.

use correx_inference::FormatError;
use llguidance::JsonCompileOptions;
use serde_json::{Map, Value};

/// Levels of a schema inside one another. Whoever reads it calls itself for each.
const DEEPEST: usize = 64;
/// Bytes of a schema.
const LONGEST: usize = 256 << 10;
/// Numbers without bounds stay within fifteen digits: every reader has them exactly.
const NUMBERS: i64 = 999_999_999_999_999;

/// Makes `schema` stricter where it lets a small model run on for ever; whatever the result
/// accepts, `schema` accepts.
///
/// - No white space between tokens, and no escapes in strings beyond the usual few.
/// - An object that names its properties has only those, unless the schema says otherwise.
/// - Numbers without bounds get some.
pub(super) fn prepare(schema: &Value) -> Result<Value, FormatError> {
    if depth(schema, DEEPEST).is_none() {
        let problem = format!("it has more than {DEEPEST} levels inside one another");
        return Err(FormatError::TooLarge(problem));
    }
    let bytes = schema.to_string().len();
    if bytes > LONGEST {
        let problem = format!("the schema takes {bytes} bytes of at most {LONGEST}");
        return Err(FormatError::TooLarge(problem));
    }
    let mut schema = match schema {
        Value::Bool(true) => Value::Object(Map::new()),
        Value::Object(_) => schema.clone(),
        _ => {
            let problem = "it is neither an object nor `true`. Begin with {\"type\": …}";
            return Err(FormatError::Schema(problem.to_owned()));
        }
    };
    if let Value::Object(map) = &mut schema {
        map.remove("x-guidance");
    }
    let composed = is_composed(&schema);
    stricter(&mut schema, !composed);
    let options = JsonCompileOptions {
        whitespace_flexible: false,
        json_allowed_escapes: Some("nrt\"\\".to_owned()),
        ..JsonCompileOptions::default()
    };
    options.apply_to(&mut schema);
    Ok(schema)
}

/// Levels of `value`; nothing when there are more than `most`.
fn depth(value: &Value, most: usize) -> Option<usize> {
    let most = most.checked_sub(1)?;
    let deepest = |depths: Option<Vec<usize>>| Some(1 + depths?.into_iter().max().unwrap_or(0));
    match value {
        Value::Array(values) => deepest(values.iter().map(|value| depth(value, most)).collect()),
        Value::Object(map) => deepest(map.values().map(|value| depth(value, most)).collect()),
        _ => Some(1),
    }
}

/// Whether objects may be put together of several schemas somewhere: then one that knows only
/// some of their properties must not forbid the others.
fn is_composed(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().any(is_composed),
        Value::Object(map) => {
            let with_reference = map.contains_key("$ref") && map.len() > 1;
            map.contains_key("allOf") || with_reference || map.values().any(is_composed)
        }
        _ => false,
    }
}

/// Makes `value` and what it holds stricter. `close`: also objects.
fn stricter(value: &mut Value, close: bool) {
    let Value::Object(schema) = value else { return };
    bound(schema);
    if close && names_all_properties(schema) {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    // A schema with properties beside its alternatives is put together of both.
    let together = schema.contains_key("properties") || schema.contains_key("required");
    for (name, value) in schema.iter_mut() {
        match (name.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| stricter(schema, close));
            }
            ("items" | "additionalProperties", schema @ Value::Object(_)) => {
                stricter(schema, close);
            }
            ("prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| stricter(schema, close));
            }
            ("anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| stricter(schema, close && !together));
            }
            _ => {}
        }
    }
}

/// Whether `schema` says which properties there are and nothing about others.
fn names_all_properties(schema: &Map<String, Value>) -> bool {
    let open = [
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
        "minProperties",
        "anyOf",
        "oneOf",
        "if",
        "not",
    ];
    let Some(Value::Object(properties)) = schema.get("properties") else { return false };
    let required = schema.get("required").and_then(Value::as_array);
    let known = |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
    !open.iter().any(|key| schema.contains_key(*key))
        && required.is_none_or(|names| names.iter().all(known))
}

/// Gives a number the bounds that it lacks.
fn bound(schema: &mut Map<String, Value>) {
    let is_number = |kind: &Value| matches!(kind.as_str(), Some("integer" | "number"));
    let numbers = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_number),
        Some(kind) => is_number(kind),
        None => false,
    };
    if !numbers || schema.contains_key("enum") || schema.contains_key("const") {
        return;
    }
    let limit = |names: [&str; 2]| {
        let given: Vec<f64> = names.iter().filter_map(|name| schema.get(*name)?.as_f64()).collect();
        let said = names.iter().any(|name| schema.contains_key(*name));
        (said, given)
    };
    let (has_least, least) = limit(["minimum", "exclusiveMinimum"]);
    let (has_most, most) = limit(["maximum", "exclusiveMaximum"]);
    let edge = NUMBERS as f64;
    if !has_least && most.iter().all(|most| *most > -edge) {
        schema.insert("minimum".to_owned(), Value::from(-NUMBERS));
    }
    if !has_most && least.iter().all(|least| *least < edge) {
        schema.insert("maximum".to_owned(), Value::from(NUMBERS));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prepared(schema: Value) -> Value {
        let mut schema = prepare(&schema).unwrap();
        schema.as_object_mut().unwrap().remove("x-guidance");
        schema
    }

    #[test]
    fn an_object_that_names_its_properties_has_no_others_unless_the_schema_says_so() {
        let text = json!({"type": "string"});
        let closed = |schema: Value| prepared(schema)["additionalProperties"] == json!(false);
        assert!(closed(json!({"properties": {"a": text}})));
        assert!(closed(json!({"properties": {"a": text}, "required": ["a"]})));
        for open in [
            json!({"type": "object"}),
            json!({"properties": {"a": text}, "additionalProperties": text}),
            json!({"properties": {"a": text}, "patternProperties": {"b": text}}),
            json!({"properties": {"a": text}, "required": ["b"]}),
            json!({"properties": {"a": text}, "minProperties": 2}),
            json!({"properties": {"a": text}, "allOf": [{"properties": {"b": text}}]}),
            json!({"properties": {"a": text}, "anyOf": [{"properties": {"b": text}}]}),
        ] {
            assert!(!closed(open.clone()), "{open}");
        }
        let inner = json!({"properties": {"a": text}});
        let inside = prepared(json!({
            "properties": {"list": {"items": inner}},
            "$defs": {"d": inner},
        }));
        assert_eq!(inside["properties"]["list"]["items"]["additionalProperties"], json!(false));
        assert_eq!(inside["$defs"]["d"]["additionalProperties"], json!(false));
        let either = prepared(json!({"anyOf": [inner, {"type": "null"}]}));
        assert_eq!(either["anyOf"][0]["additionalProperties"], json!(false));
        let beside = prepared(json!({"properties": {"b": text}, "anyOf": [inner]}));
        assert_eq!(beside["anyOf"][0], inner);
    }

    #[test]
    fn numbers_get_the_bounds_that_they_lack() {
        let most = json!(NUMBERS);
        for kind in [json!("integer"), json!("number"), json!(["integer", "null"])] {
            let bounded = prepared(json!({"type": kind}));
            assert_eq!((&bounded["minimum"], &bounded["maximum"]), (&json!(-NUMBERS), &most));
        }
        let half = prepared(json!({"type": "integer", "minimum": 3}));
        assert_eq!((&half["minimum"], &half["maximum"]), (&json!(3), &most));
        for same in [
            json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 5}),
            json!({"type": "integer", "enum": [1, 2]}),
            json!({"type": "number", "minimum": 1e30, "maximum": 1e31}),
            json!({"type": "string"}),
        ] {
            assert_eq!(prepared(same.clone()), same);
        }
    }

    #[test]
    fn what_is_too_deep_or_no_schema_is_refused() {
        let mut deep = json!({});
        for _ in 0..DEEPEST {
            deep = json!({"items": deep});
        }
        assert!(matches!(prepare(&deep), Err(FormatError::TooLarge(_))));
        assert!(prepare(&deep["items"]).is_ok());
        let long = json!({"description": "x".repeat(LONGEST)});
        assert!(matches!(prepare(&long), Err(FormatError::TooLarge(_))));
        for wrong in [json!(false), json!(null), json!([]), json!("string")] {
            assert!(matches!(prepare(&wrong), Err(FormatError::Schema(_))), "{wrong}");
        }
        assert_eq!(prepared(json!(true)), json!({}));
    }
}
