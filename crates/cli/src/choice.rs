//! Which workflow, with which inputs: from what was typed to what is asked.

use std::path::{Path, absolute};

use correx_infrastructure::examples;
use correx_protocol::{InputValue, ProtocolError, WorkflowChoice};

use crate::outcome::input;

/// The workflow that `typed` names: a file that exists, or else an example.
pub fn workflow(typed: &str) -> Result<WorkflowChoice, ProtocolError> {
    let is_example = examples::names().any(|name| name == typed);
    if is_example && !Path::new(typed).is_file() {
        return Ok(WorkflowChoice::Example { name: typed.to_owned() });
    }
    Ok(WorkflowChoice::File { path: whole(typed)? })
}

/// The inputs that `--input` and `--text` name.
pub fn inputs(
    files: &[String],
    texts: &[(String, String)],
) -> Result<Vec<InputValue>, ProtocolError> {
    let mut inputs = Vec::new();
    for typed in files {
        let (name, path) = name_and_path(typed);
        inputs.push(InputValue::Path { name: name.to_owned(), path: whole(path)? });
    }
    for (name, text) in texts {
        inputs.push(InputValue::Text { name: name.clone(), text: text.clone() });
    }
    Ok(inputs)
}

/// `NAME=FILE` is an input by name, unless a file has that very name.
fn name_and_path(typed: &str) -> (&str, &str) {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    match typed.split_once('=') {
        Some((name, path)) if is_name(name) && !Path::new(typed).exists() => (name, path),
        _ => ("", typed),
    }
}

/// The path from the root: the process that reads the file may stand elsewhere.
pub fn whole(path: &str) -> Result<String, ProtocolError> {
    let whole = absolute(path).map_err(|error| input(format!("{path:?} is no path: {error}")))?;
    whole
        .into_os_string()
        .into_string()
        .map_err(|_| input(format!("{path:?} lies in a folder whose name is not UTF-8")))
}

/// The text of a workflow file with another seed: for every stage, whatever it said itself.
pub fn with_seed(source: &str, seed: u64) -> Result<String, ProtocolError> {
    let seed = i64::try_from(seed)
        .map_err(|_| input(format!("{seed} is too large for a seed; at most {}", i64::MAX)))?;
    let unusable = |error: String| input(format!("the seed could not be put in: {error}"));
    let mut file: toml::Table =
        source.parse().map_err(|error: toml::de::Error| unusable(error.to_string()))?;
    let generation = file
        .entry("generation")
        .or_insert_with(|| toml::Table::new().into())
        .as_table_mut()
        .ok_or_else(|| unusable("[generation] is not a table".into()))?;
    generation.insert("seed".into(), seed.into());
    if let Some(stages) = file.get_mut("stage").and_then(toml::Value::as_array_mut) {
        for stage in stages.iter_mut().filter_map(toml::Value::as_table_mut) {
            stage.remove("seed");
        }
    }
    toml::to_string(&file).map_err(|error| unusable(error.to_string()))
}

/// The source text of a workflow.
pub fn source(choice: &WorkflowChoice) -> Result<String, ProtocolError> {
    match choice {
        WorkflowChoice::Source { text } => Ok(text.clone()),
        WorkflowChoice::Example { name } => examples::source(name)
            .map(str::to_owned)
            .ok_or_else(|| input(format!("there is no example {name:?}"))),
        WorkflowChoice::File { path } => std::fs::read_to_string(path)
            .map_err(|error| input(format!("the workflow file {path} could not be read: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_examples_name_is_an_example_and_all_else_a_file() {
        assert_eq!(
            workflow("meeting-notes").unwrap(),
            WorkflowChoice::Example { name: "meeting-notes".into() }
        );
        let WorkflowChoice::File { path } = workflow("no/such.toml").unwrap() else { panic!() };
        assert!(Path::new(&path).is_absolute());
    }

    #[test]
    fn an_input_file_may_have_a_name_in_front() {
        assert_eq!(name_and_path("notes=a.txt"), ("notes", "a.txt"));
        assert_eq!(name_and_path("a.txt"), ("", "a.txt"));
        assert_eq!(name_and_path("./a=b.txt"), ("", "./a=b.txt"));
        assert_eq!(name_and_path("=a.txt"), ("", "=a.txt"));
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("x");
        std::fs::write(&odd, "").unwrap();
        assert_eq!(name_and_path(odd.to_str().unwrap()).0, "");
    }

    #[test]
    fn a_seed_replaces_every_seed_and_leaves_the_rest() {
        let source = "name = \"W\"\n[generation]\nseed = 1\ntemperature = 0.5\n[[stage]]\n\
                      id = \"a\"\nseed = 3\nprompt = \"\"\"two\nlines\"\"\"\n";
        let changed: toml::Table = with_seed(source, 9).unwrap().parse().unwrap();
        assert_eq!(changed["generation"]["seed"].as_integer(), Some(9));
        assert_eq!(changed["generation"]["temperature"].as_float(), Some(0.5));
        assert_eq!(changed["stage"][0].get("seed"), None);
        assert_eq!(changed["stage"][0]["prompt"].as_str(), Some("two\nlines"));
        let bare: toml::Table = with_seed("name = \"W\"\n", 2).unwrap().parse().unwrap();
        assert_eq!(bare["generation"]["seed"].as_integer(), Some(2));
        assert!(with_seed("name = \"W\"", u64::MAX).is_err());
    }
}
