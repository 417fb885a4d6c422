//! The table of keys, the parser and the JSON Schema say the same.

use std::path::Path;

use correx_orchestration::Workflow;
use correx_orchestration::WorkflowProblem::UnknownKey;
use correx_orchestration::workflow::keys::{CHECK, FILE, INPUT, KINDS, Key, SAMPLING, Takes};
use correx_orchestration::workflow::workflow_schema;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::{ASKING, THREE};

/// A table of a workflow file.
#[derive(Debug, Clone, Copy)]
enum Place {
    File,
    Input,
    Generation,
    Stage(&'static str),
    Check,
}

impl Place {
    /// Every table, with its keys.
    fn all() -> Vec<(Place, Vec<&'static Key>)> {
        let mut all = vec![
            (Place::File, FILE.iter().collect()),
            (Place::Input, INPUT.iter().collect()),
            (Place::Generation, SAMPLING.iter().collect()),
            (Place::Check, CHECK.iter().collect()),
        ];
        all.extend(KINDS.iter().map(|kind| (Place::Stage(kind.name), kind.keys().collect())));
        all
    }

    /// A file that is right and has this table, which `change` gets.
    fn file(self, change: impl FnOnce(&mut Value)) -> Value {
        let stage = match self {
            Place::Stage("map") => {
                json!({ "kind": "map", "prompt": "{{ piece }}", "over": "inputs.text" })
            }
            Place::Stage("reduce") => {
                json!({ "kind": "reduce", "prompt": "{{ pieces }}", "over": "inputs.text" })
            }
            Place::Stage("choose") => {
                json!({ "kind": "choose", "prompt": "Which?", "options": ["a", "b"] })
            }
            Place::Stage("command") => json!({ "kind": "command", "program": "sort" }),
            Place::Stage("write") => {
                json!({ "kind": "write", "from": "artifacts.first", "path": "a.txt" })
            }
            Place::Stage("read") => json!({ "kind": "read", "paths": ["a.txt"] }),
            Place::Stage("approve") => json!({ "kind": "approve", "prompt": "Right?" }),
            _ => json!({ "kind": "generate", "prompt": "Go", "check": {} }),
        };
        let mut file = json!({
            "name": "W",
            "generation": {},
            "input": [{ "name": "text", "type": "text" }],
            "stage": [{ "id": "first", "kind": "generate", "prompt": "Go" }, stage],
        });
        file["stage"][1]["id"] = "second".into();
        change(match self {
            Place::File => &mut file,
            Place::Input => &mut file["input"][0],
            Place::Generation => &mut file["generation"],
            Place::Stage(_) => &mut file["stage"][1],
            Place::Check => &mut file["stage"][1]["check"],
        });
        file
    }

    /// The file with this key, and what the key needs beside it.
    fn with(self, key: &str, value: Value) -> Value {
        self.file(|table| {
            match (self, key) {
                (Place::Input, "choices") => table["type"] = "choice".into(),
                (Place::Input, "min" | "max") => table["type"] = "number".into(),
                (Place::Input, "type") if value == "choice" => {
                    table["choices"] = json!(["a", "b"]);
                }
                (Place::Stage("choose"), "score") => {
                    table.as_object_mut().unwrap().remove("options");
                }
                (Place::Check, "columns") => table["format"] = "csv".into(),
                _ => {}
            }
            table[key] = value;
        })
    }
}

/// What both say of a file; they must agree.
fn is_right(schema: &Validator, file: &Value) -> bool {
    let text = toml::to_string(file).unwrap();
    let parsed = Workflow::parse(&text);
    let valid = schema.validate(file).map_err(|error| error.to_string());
    assert_eq!(parsed.is_ok(), valid.is_ok(), "{text}\n{:?}\n{valid:?}", parsed.err());
    valid.is_ok()
}

fn validator() -> Validator {
    jsonschema::draft7::new(&workflow_schema()).unwrap()
}

/// Values that are right, and values that are wrong.
fn samples(place: Place, key: &Key) -> (Vec<Value>, Vec<Value>) {
    let list = |length: usize| (0..length).map(|n| n.to_string()).collect::<Vec<_>>();
    match (place, key.name) {
        (Place::Stage(_), "kind") => return (vec![], vec![json!("generat"), json!(7)]),
        (Place::Stage(kind), "prompt") => {
            let text = match kind {
                "map" => "{{ piece }}",
                "reduce" => "{{ pieces }}",
                _ => "Why?",
            };
            return (vec![json!(text)], vec![json!(" "), json!(7)]);
        }
        (_, "over" | "when" | "from" | "stdin") => {
            return (vec![json!("inputs.text")], vec![json!(" "), json!(7)]);
        }
        (_, "needs") => return (vec![json!("first"), json!(["first"])], vec![json!(7)]),
        (_, "show") => return (vec![json!("first")], vec![json!(""), json!(7)]),
        (Place::Input, "name") => return (vec![json!("notes")], vec![json!(" "), json!(7)]),
        _ => {}
    }
    match key.takes {
        Takes::Text => (vec![json!(""), json!("a")], vec![json!(7)]),
        Takes::Words => (vec![json!("a")], vec![json!(" "), json!("\n"), json!(7)]),
        Takes::OneOf(words) => {
            (words.iter().map(|word| json!(word)).collect(), vec![json!("no such"), json!(7)])
        }
        Takes::Language => (vec![json!("de"), json!("en")], vec![json!("xx"), json!(7)]),
        Takes::Truth => (vec![json!(true), json!(false)], vec![json!(7), json!("true")]),
        Takes::Whole(min, max) => {
            let max = max.min(i64::MAX as u64);
            let mut wrong = vec![json!("7"), json!(0.5), json!(min as i64 - 1)];
            wrong.extend((max < i64::MAX as u64).then(|| json!(max + 1)));
            (vec![json!(min), json!(max)], wrong)
        }
        Takes::Number(min, max) => {
            let right = vec![json!(min), json!(max), json!(max as i64)];
            (right, vec![json!(min - 0.1), json!(max + 0.1), json!("1")])
        }
        Takes::Above(least, max) => {
            (vec![json!(least + 0.1), json!(max)], vec![json!(least), json!(max + 0.1), json!("1")])
        }
        Takes::AnyNumber => (vec![json!(-3), json!(0.5)], vec![json!("1"), json!(true)]),
        Takes::Texts => (
            vec![json!("a"), json!(["a", "b"]), json!([])],
            vec![json!(7), json!(["a", 7]), json!(true)],
        ),
        Takes::SomeTexts => {
            (vec![json!("a"), json!(["a", "b"])], vec![json!(7), json!(["a", 7]), json!([])])
        }
        Takes::Codes => (
            vec![json!([0]), json!([0, 255])],
            vec![json!([]), json!([256]), json!([-1]), json!(["0"]), json!(0)],
        ),
        Takes::Variables => (
            vec![json!({}), json!({ "LANG": "C", "EMPTY": "" })],
            vec![json!({ "LANG": 7 }), json!("LANG"), json!([])],
        ),
        Takes::Different(min, max) => {
            let mut right = vec![json!(list(min))];
            let mut wrong = vec![json!(list(min - 1)), json!(["a", "b", "a"]), json!(["a", " "])];
            if let Some(max) = max {
                right.push(json!(list(max)));
                wrong.push(json!(list(max + 1)));
            }
            (right, wrong)
        }
        Takes::Range => (vec![json!([1, 10])], vec![json!([1]), json!([1, 2, 3]), json!(["a", 2])]),
        Takes::Schema => (vec![json!({ "type": "object" }), json!("{}")], vec![json!(true)]),
        Takes::Table(_) => (vec![json!({})], vec![json!(7), json!([])]),
        Takes::Tables(_) => (vec![json!([])], vec![json!(7), json!([7])]),
        Takes::Stages => (vec![], vec![json!([]), json!(7)]),
    }
}

#[test]
fn the_parser_and_the_schema_agree_on_every_value_of_every_key() {
    let schema = validator();
    for (place, keys) in Place::all() {
        assert!(is_right(&schema, &place.file(|_| {})), "{place:?}");
        for key in keys {
            let (right, wrong) = samples(place, key);
            for value in right {
                assert!(is_right(&schema, &place.with(key.name, value.clone())), "{key:?} {value}");
            }
            for value in wrong {
                let file = place.with(key.name, value.clone());
                assert!(!is_right(&schema, &file), "{place:?} {key:?} {value}");
            }
        }
    }
}

#[test]
fn what_a_table_needs_is_missed_by_both() {
    let schema = validator();
    for (place, keys) in Place::all() {
        for key in keys.into_iter().filter(|key| key.required) {
            let file = place.file(|table| {
                table.as_object_mut().unwrap().remove(key.name);
            });
            assert!(!is_right(&schema, &file), "{place:?} {key:?}");
        }
    }
    let choose = Place::Stage("choose");
    assert!(!is_right(&schema, &choose.file(|stage| stage["score"] = json!([1, 5]))));
    assert!(!is_right(
        &schema,
        &choose.file(|stage| {
            stage.as_object_mut().unwrap().remove("options");
        })
    ));
}

#[test]
fn a_key_with_a_letter_too_many_is_unknown_to_both_and_the_right_one_is_suggested() {
    let schema = validator();
    for (place, keys) in Place::all() {
        for key in keys {
            let wrong = format!("{}x", key.name);
            let file = place.file(|table| table[&wrong] = "a".into());
            assert!(!is_right(&schema, &file), "{place:?} {wrong}");
            let errors = Workflow::parse(&toml::to_string(&file).unwrap()).unwrap_err().errors;
            let suggested = errors.iter().any(|error| {
                matches!(&error.problem, UnknownKey { key: unknown, suggestion, .. }
                    if *unknown == wrong && suggestion.as_deref() == Some(key.name))
            });
            assert!(suggested, "{place:?} {wrong}: {errors:?}");
        }
    }
}

#[test]
fn every_workflow_that_is_written_down_satisfies_the_schema() {
    let schema = validator();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = vec![THREE.to_owned(), ASKING.to_owned()];
    for folder in std::fs::read_dir(root.join("examples")).unwrap() {
        let file = folder.unwrap().path().join("workflow.toml");
        texts.extend(file.is_file().then(|| std::fs::read_to_string(&file).unwrap()));
    }
    let docs = std::fs::read_to_string(root.join("docs/workflows.md")).unwrap();
    let blocks = docs.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    texts.extend(blocks.filter(|block| block.contains("[[stage]]")).map(str::to_owned));
    assert!(texts.len() >= 5);
    for text in texts {
        let file: Value = toml::from_str(&text).unwrap();
        assert!(is_right(&schema, &file), "{text}");
    }
}

#[test]
fn every_key_and_every_kind_is_explained_in_the_documentation() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workflows.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for (place, keys) in Place::all() {
        for key in keys {
            let forms = ["`{}`", "[{}]`", "[[{}]]`", "[stage.{}]`"];
            let named = forms.iter().any(|form| docs.contains(&form.replace("{}", key.name)));
            assert!(named, "{place:?} {}", key.name);
        }
    }
    for kind in KINDS {
        assert!(docs.contains(&format!("`kind = \"{}\"`", kind.name)), "{}", kind.name);
    }
}
