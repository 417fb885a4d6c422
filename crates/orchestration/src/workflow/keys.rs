//! Every key of a workflow file: its type, what it takes, what it is when it is left out, and a
//! line about it. The parser knows keys from here, and so do editors: [`workflow_schema`](super::workflow_schema).

/// A key of one table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// Whether the table needs it.
    pub required: bool,
    /// What it is when it is left out, as TOML, where that can be said in a word.
    pub default: Option<&'static str>,
    /// What it does.
    pub about: &'static str,
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Takes {
    /// A text that may be empty.
    Text,
    /// A text with something in it.
    Words,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The code of a language that can be told.
    Language,
    /// `true` or `false`.
    Truth,
    /// A whole number in this range, both ends included.
    Whole(u64, u64),
    /// A number in this range, both ends included.
    Number(f64, f64),
    /// A number above the first and at most the second.
    Above(f64, f64),
    /// Any number.
    AnyNumber,
    /// A text or a list of texts.
    Texts,
    /// A text or a list of texts, at least one.
    SomeTexts,
    /// A list of numbers from 0 to 255, at least one.
    Codes,
    /// A table of texts under any names.
    Variables,
    /// A list of different texts with something in them, at least and at most so many.
    Different(usize, Option<usize>),
    /// The least and the greatest whole number.
    Range,
    /// A JSON Schema, as a table or as JSON in quotes.
    Schema,
    /// A table with these keys.
    Table(&'static [Key]),
    /// A list of tables with these keys.
    Tables(&'static [Key]),
    /// The stages, each with the keys of its kind.
    Stages,
}

/// A kind of stage.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The word that `kind` takes.
    pub name: &'static str,
    /// What messages call such a stage.
    pub(super) place: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Its keys, in groups.
    groups: &'static [&'static [Key]],
    /// Two keys of which it needs exactly one.
    pub one_of: Option<(&'static str, &'static str)>,
}

impl Kind {
    /// Its keys.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The names of its keys.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.keys().map(|key| key.name).collect()
    }
}

/// The kind of this name.
pub(super) fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The names of all kinds.
pub(super) fn kinds() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// The names of the keys of a stage of any kind, each once.
pub(super) fn any_stage() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for key in KINDS.iter().flat_map(Kind::keys) {
        if !names.contains(&key.name) {
            names.push(key.name);
        }
    }
    names
}

/// The names of these keys.
pub(super) fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

const fn key(name: &'static str, takes: Takes, about: &'static str) -> Key {
    Key { name, takes, required: false, default: None, about }
}

const fn needed(name: &'static str, takes: Takes, about: &'static str) -> Key {
    Key { name, takes, required: true, default: None, about }
}

const fn or(default: &'static str, key: Key) -> Key {
    Key { default: Some(default), ..key }
}

use super::outside::MOST_OUTPUT;
use Takes::*;

/// The most of what is counted.
const MANY: u64 = 1_000_000;

/// The file itself.
pub const FILE: &[Key] = &[
    or("1", key("version", Whole(1, 1), "The version of the file format.")),
    needed("name", Words, "What the workflow is called."),
    key("description", Words, "What it does, for people."),
    key(
        "model",
        Words,
        "The model that runs the stages, an id or a file; the one in use unless it is given.",
    ),
    key("generation", Table(SAMPLING), "How stages generate, where they do not say it themselves."),
    key("input", Tables(INPUT), "What the workflow reads."),
    needed("stage", Stages, "The steps, each after what it needs."),
];

/// An `[[input]]`.
pub const INPUT: &[Key] = &[
    needed(
        "name",
        Words,
        "Letters, digits and _, beginning with a letter; templates call it inputs.NAME.",
    ),
    needed("type", OneOf(INPUT_TYPES), "What kind of thing is given."),
    key("description", Words, "What to give, for people."),
    or("true", key("required", Truth, "Whether it must be given; if not, it is an empty text.")),
    key("default", Text, "The text it has when none is given."),
    key("sample", Words, "A file with an example of it, relative to the workflow file."),
    key("choices", Different(2, None), "Of a choice: the texts of which one is given."),
    key("min", AnyNumber, "Of a number: the least that it may be."),
    key("max", AnyNumber, "Of a number: the most that it may be."),
];

/// What `type` of an input takes.
pub(super) const INPUT_TYPES: &[&str] = &["text", "file", "folder", "choice", "number"];

/// `[generation]`, and the same keys in a stage.
pub const SAMPLING: &[Key] = &[
    key("temperature", Number(0.0, 5.0), "How freely words are drawn; 0 takes the likeliest."),
    key("top_p", Above(0.0, 1.0), "Only the likeliest words that together have this share."),
    key("top_k", Whole(0, MANY), "Only so many of the likeliest words; 0 is off."),
    key("min_p", Number(0.0, 1.0), "Only words with this share of the likeliest one's."),
    key("repetition_penalty", Number(0.5, 5.0), "Makes repeated words less likely; 1 is off."),
    key("seed", Whole(0, u64::MAX), "The same seed draws the same words."),
    key("max_tokens", Whole(1, MANY), "The most tokens of an answer; one cut off is refused."),
    key("thinking", Truth, "Whether the model thinks before it answers, if it can be told so."),
];

/// Every stage.
pub const STAGE: &[Key] = &[
    needed("id", Words, "Letters, digits, - and _, beginning with a letter; unique."),
    key("title", Words, "What people call it."),
    needed("kind", Words, "What the stage does."),
    key(
        "needs",
        Texts,
        "Ids of earlier stages that must be over before; the one before it unless it is given.",
    ),
    key("when", Words, "An expression over inputs and artifacts; if it fails, it is passed over."),
];

/// Every stage in which the model is asked.
const MODEL: &[Key] = &[
    needed("prompt", Words, "The template of what the model is asked."),
    key("system", Words, "Standing instructions, shown as they are."),
    key("model", Words, "The model for this stage."),
    key("output", Words, "The name of what it produces, for artifacts.NAME."),
    key("media_type", Words, "The media type of what it produces."),
    or("2", key("retries", Whole(0, 20), "Further attempts after a refused answer.")),
    key("timeout_seconds", Whole(1, 86_400), "How long one attempt may take."),
];

const CHECKED: &[Key] = &[key("check", Table(CHECK), "What the answer must satisfy.")];

const GENERATE: &[Key] = &[key("schema", Schema, "The JSON Schema that the answer is held to.")];

const OVER: &[Key] =
    &[needed("over", Words, "What is gone through: inputs.NAME or artifacts.NAME.")];

const MAP: &[Key] = &[
    key("piece_tokens", Whole(32, MANY), "The most tokens of a piece; else as many as fit."),
    key("join", Text, "What stands between the results; an empty line unless it is given."),
    or("false", key("redo_pieces", Truth, "Whether a note also does finished pieces again.")),
];

const CHOOSE: &[Key] = &[
    key("options", Different(2, Some(50)), "The answers of which the model picks one."),
    key("score", Range, "The least and the greatest whole number, such as [1, 10]."),
];

const APPROVE: &[Key] = &[
    needed("prompt", Words, "The question, shown as it is."),
    key("show", Words, "The name of the artifact in question."),
];

const COMMAND: &[Key] = &[
    needed("program", Words, "The program's name or absolute path, as it is; no shell."),
    key("args", Texts, "Its arguments, each a template."),
    key("stdin", Words, "What it reads: inputs.NAME or artifacts.NAME."),
    key("cwd", Words, "The folder it runs in; the session's output folder unless it is given."),
    key("env", Variables, "Variables of its environment, each a template."),
    key("output", Words, "The name of what it writes to its standard output, for artifacts.NAME."),
    key("media_type", Words, "The media type of that."),
    key("max_output_bytes", Whole(1, MOST_OUTPUT), "The most bytes of that."),
    key("exit_codes", Codes, "Which exit codes are no failure; [0] unless it is given."),
    key("timeout_seconds", Whole(1, 86_400), "How long it may take."),
];

const WRITE: &[Key] = &[
    needed("from", Words, "What is written: inputs.NAME or artifacts.NAME."),
    needed("path", Words, "The file, a template; relative to the session's output folder."),
    key("existing", OneOf(EXISTING), "What to do about a file that is there: ask, or fail."),
];

/// What `existing` of a write takes.
pub(super) const EXISTING: &[&str] = &["ask", "fail"];

const READ: &[Key] = &[
    needed("paths", SomeTexts, "The files and folders to read, each a template."),
    key("output", Words, "The name of what was read, for artifacts.NAME."),
    key("media_type", Words, "The media type of that."),
];

/// The kinds of stages.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "generate",
        place: "a generate stage",
        about: "The model answers a prompt.",
        groups: &[STAGE, MODEL, SAMPLING, CHECKED, GENERATE],
        one_of: None,
    },
    Kind {
        name: "map",
        place: "a map stage",
        about: "A prompt over every piece of a long text.",
        groups: &[STAGE, MODEL, SAMPLING, CHECKED, OVER, MAP],
        one_of: None,
    },
    Kind {
        name: "reduce",
        place: "a reduce stage",
        about: "Many results become one.",
        groups: &[STAGE, MODEL, SAMPLING, CHECKED, OVER],
        one_of: None,
    },
    Kind {
        name: "choose",
        place: "a choose stage",
        about: "The model picks an answer.",
        groups: &[STAGE, MODEL, SAMPLING, CHOOSE],
        one_of: Some(("options", "score")),
    },
    Kind {
        name: "approve",
        place: "an approve stage",
        about: "A person decides.",
        groups: &[STAGE, APPROVE],
        one_of: None,
    },
    Kind {
        name: "command",
        place: "a command stage",
        about: "A program runs, if policy lets it.",
        groups: &[STAGE, COMMAND],
        one_of: None,
    },
    Kind {
        name: "write",
        place: "a write stage",
        about: "An artifact goes into a file, if policy lets it.",
        groups: &[STAGE, WRITE],
        one_of: None,
    },
    Kind {
        name: "read",
        place: "a read stage",
        about: "Files become an artifact, if policy lets them be read.",
        groups: &[STAGE, READ],
        one_of: None,
    },
];

/// `[stage.check]`.
pub const CHECK: &[Key] = &[
    key("min_words", Whole(1, MANY), "At least so many words."),
    key("max_words", Whole(1, MANY), "At most so many words."),
    key("min_tokens", Whole(1, MANY), "At least so many tokens of the model that answered."),
    key("max_tokens", Whole(1, MANY), "At most so many tokens of the model that answered."),
    key("min_sentences", Whole(1, MANY), "At least so many sentences, list items, table rows."),
    key("max_sentences", Whole(1, MANY), "At most so many sentences, list items, table rows."),
    key("min_lines", Whole(1, MANY), "At least so many lines with something in them."),
    key("max_lines", Whole(1, MANY), "At most so many lines with something in them."),
    key("must_match", Texts, "Regular expressions that must be found."),
    key("must_not_match", Texts, "Regular expressions that must not be found."),
    key("must_contain", Texts, "Texts that must be found."),
    key("must_not_contain", Texts, "Texts that must not be found."),
    key("language", Language, "Refused when it is surely in another language."),
    key("max_copied_words", Whole(1, MANY), "The most words in a row from what was shown."),
    or("false", key("known_numbers", Truth, "Every number of the answer is in what was shown.")),
    or("false", key("known_names", Truth, "Every name of the answer is in what was shown.")),
    or("false", key("kept_numbers", Truth, "Every number of what was shown is in the answer.")),
    key("format", OneOf(FORMATS), "Whole Markdown, one JSON value, or even rows of CSV."),
    key("columns", Texts, "Beside format = \"csv\": the names in the first row."),
    key("schema", Schema, "A JSON Schema that the answer must satisfy."),
    key("judge", Texts, "Questions about the answer that the model must answer with yes."),
];

/// What `format` of a check takes.
pub(super) const FORMATS: &[&str] = &["markdown", "json", "csv"];
