//! Which names a stage can use: every input, and the artifacts of the stages before it.

use super::reading::{Fields, Located, nearest};
use super::{InputSpec, Source};

/// A stage whose templates have not been looked at yet.
pub(super) struct RawStage<'t> {
    pub(super) fields: Fields<'t>,
    pub(super) id: Option<Located<String>>,
    pub(super) title: Option<String>,
    pub(super) kind: RawKind,
}

pub(super) enum RawKind {
    /// The model is asked.
    Model {
        kind: ModelKind,
        output: Option<Located<String>>,
    },
    Approve,
    /// Something outside is touched.
    Outside {
        kind: OutsideKind,
        /// Of those that produce something.
        output: Option<Located<String>>,
    },
    Unusable,
}

/// How the model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelKind {
    Generate,
    Map,
    Reduce,
    Choose,
}

/// How the world outside is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutsideKind {
    Command,
    Write,
    Read,
}

impl ModelKind {
    /// The variables that its prompt has beside inputs and artifacts.
    pub(super) fn variables(self) -> &'static [&'static str] {
        match self {
            ModelKind::Map => &["piece", "number", "count", "heading"],
            ModelKind::Reduce => &["pieces"],
            ModelKind::Generate | ModelKind::Choose => &[],
        }
    }
}

impl RawStage<'_> {
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_ref().map(|id| id.value.as_str())
    }

    pub(super) fn output(&self) -> Option<&str> {
        match &self.kind {
            RawKind::Model { output, .. } | RawKind::Outside { output, .. } => {
                output.as_ref().map(|name| name.value.as_str())
            }
            RawKind::Approve | RawKind::Unusable => None,
        }
    }
}

/// What a stage's template can see.
pub(super) struct Scope<'a> {
    pub(super) inputs: &'a [InputSpec],
    pub(super) raw: &'a [RawStage<'a>],
    pub(super) index: usize,
}

impl Scope<'_> {
    pub(super) fn earlier_outputs(&self) -> impl Iterator<Item = &str> {
        self.raw[..self.index].iter().filter_map(RawStage::output)
    }

    fn known(&self) -> Vec<String> {
        let inputs = self.inputs.iter().map(|input| format!("inputs.{}", input.name));
        let artifacts = self.earlier_outputs().map(|name| format!("artifacts.{name}"));
        let own = match &self.raw[self.index].kind {
            RawKind::Model { kind, .. } => kind.variables(),
            _ => &[],
        };
        inputs.chain(artifacts).chain(own.iter().map(|name| (*name).to_owned())).collect()
    }

    /// The earlier stages that produce what `variables` name.
    pub(super) fn producers<'v>(&self, variables: impl Iterator<Item = &'v str>) -> Vec<&str> {
        let names = variables.filter_map(|name| name.strip_prefix("artifacts."));
        let named =
            |name: &str| self.raw[..self.index].iter().find(|raw| raw.output() == Some(name));
        names.filter_map(|name| named(name)?.id()).collect()
    }

    /// What `inputs.NAME` or `artifacts.NAME` is, if it is there.
    pub(super) fn source(&self, name: &str) -> Option<Source> {
        self.resolve(name).ok()?;
        match name.split_once('.')? {
            ("inputs", name) => Some(Source::Input(name.to_owned())),
            ("artifacts", name) => Some(Source::Artifact(name.into())),
            _ => None,
        }
    }

    /// Whether a variable can be used; otherwise a suggestion and a reason.
    pub(super) fn resolve(&self, name: &str) -> Result<(), (Option<String>, Option<String>)> {
        let known = self.known();
        if known.iter().any(|variable| variable == name) {
            return Ok(());
        }
        let suggestion = nearest(name, known.iter().map(String::as_str));
        let reason = match name.split_once('.') {
            None if name == "inputs" || name == "artifacts" => {
                Some(format!("write {name}.NAME with one of its names"))
            }
            Some(("artifacts", wanted)) => self.why_not(wanted),
            _ if suggestion.is_none() && known.is_empty() => {
                Some("this stage has no inputs and no earlier artifacts".to_owned())
            }
            _ if suggestion.is_none() => Some(format!("it has {}", known.join(", "))),
            _ => None,
        };
        match reason {
            Some(reason) => Err((None, Some(reason))),
            None => Err((suggestion, None)),
        }
    }

    fn why_not(&self, wanted: &str) -> Option<String> {
        let later = self.raw[self.index..].iter().position(|raw| raw.output() == Some(wanted));
        match later {
            Some(0) => return Some("this stage itself produces it".to_owned()),
            Some(_) => return Some("a later stage produces it".to_owned()),
            None => {}
        }
        let named = self.raw.iter().find(|raw| raw.id() == Some(wanted))?;
        match named.kind {
            RawKind::Approve => Some("an approve stage produces nothing".to_owned()),
            RawKind::Outside { kind: OutsideKind::Write, .. } => {
                Some("a write stage produces no artifact, it writes one into a file".to_owned())
            }
            _ => None,
        }
    }
}
