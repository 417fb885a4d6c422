//! A model's chat template, rendered where it can do no harm.
//!
//! Templates are programs that came with a download. They see the messages, have so much fuel, and
//! reach nothing else ([`correx_jinja`]). A template is believed after it was seen to work: what it
//! cannot take (system messages, two messages of one speaker in a row, content that is plain text) is
//! found out once, and messages are put into the shape that it takes.
//!
//! - [`shape`]: that shape.
//! - [`whole`]: whether a rendering says everything that was said; every one is checked.
//! - [`builtin`]: templates for files that have none, or a broken one.

pub mod builtin;
mod shape;
mod whole;

use std::sync::{Arc, OnceLock};

use correx_context::{ChatMessage, EncodeError, Role};
use correx_events::Clock;
use correx_gguf::Gguf;
use correx_inference::{ReasoningTags, ThinkingMode};
use correx_jinja::{ErrorKind, Fuel, Template, Text, Value};

use builtin::Builtin;
pub use shape::{ContentForm, Shape, SystemRole, Turns};

/// What one rendering may use up beside what it is given: a second's work at most, and 32 MB.
const FUEL: u64 = 4_000_000;
/// What it may use up for every byte that it is given.
const FUEL_PER_BYTE: u64 = 8;

/// What is known about a model beside its template.
#[derive(Debug, Clone, Default)]
pub struct ModelFacts<'a> {
    /// The text of the token that begins a sequence.
    pub bos: &'a str,
    /// The text of the token that ends one.
    pub eos: &'a str,
    /// The model's name and architecture.
    pub names: Vec<&'a str>,
    /// How its vocabulary splits text (`tokenizer.ggml.pre`).
    pub pre: &'a str,
    /// Those of its tokens that tell a chat format.
    pub marks: Vec<&'a str>,
}

impl<'a> ModelFacts<'a> {
    /// What a file says; `bos` and `eos` are its vocabulary's.
    pub fn from_gguf(gguf: &'a Gguf, bos: Option<&'a str>, eos: Option<&'a str>) -> Self {
        let keys = ["general.architecture", "general.name", "general.basename", "general.finetune"];
        Self {
            bos: bos.unwrap_or_default(),
            eos: eos.unwrap_or_default(),
            names: keys.iter().filter_map(|key| gguf.text(key)).collect(),
            pre: gguf.text("tokenizer.ggml.pre").unwrap_or_default(),
            marks: gguf
                .texts("tokenizer.ggml.tokens")
                .map(|tokens| tokens.iter().filter(|token| builtin::is_mark(token)).collect())
                .unwrap_or_default(),
        }
    }
}

/// The file's template: the default one where there are several.
pub fn source_in(gguf: &Gguf) -> Option<&str> {
    const KEY: &str = "tokenizer.chat_template";
    let named = |name: &str| gguf.text(&format!("{KEY}.{name}"));
    gguf.text(KEY).or_else(|| named("default")).or_else(|| {
        let names = gguf.texts("tokenizer.chat_templates")?;
        // Those for tools and documents expect what a chat has not.
        names.iter().filter(|name| !matches!(*name, "tool_use" | "rag")).find_map(named)
    })
}

/// A template that was seen to work.
pub struct ChatTemplate {
    program: Template,
    source: String,
    bos: String,
    eos: String,
    shape: Shape,
    stop_text: Option<&'static str>,
    notice: Option<String>,
    clock: Arc<dyn Clock>,
    tags: Option<ReasoningTags>,
    /// The built-in one that takes its place when it fails, and why that one; `None`: it is one.
    spare: Option<(Builtin, String)>,
    /// What took its place, once it had failed.
    replaced: OnceLock<Box<ChatTemplate>>,
}

impl ChatTemplate {
    /// Takes the file's template; a missing or broken one is replaced by the built-in one that fits
    /// the vocabulary best, and [`notice`](Self::notice) says so. `clock` tells templates the date.
    pub fn new(source: Option<&str>, facts: &ModelFacts<'_>, clock: Arc<dyn Clock>) -> Self {
        let (chosen, reason) = builtin::choose(facts);
        let problem = match source {
            None => "The model's file has no chat template".to_owned(),
            Some(source) => match Self::working(source, facts.bos, facts.eos, clock.clone()) {
                Ok(template) => return Self { spare: Some((chosen, reason)), ..template },
                Err(error) => format!("The model's chat template does not work ({error})"),
            },
        };
        Self::built_in(chosen, &reason, &problem, facts.bos, facts.eos, clock)
    }

    /// The built-in template `chosen` in place of one that has a `problem`.
    fn built_in(
        chosen: Builtin,
        reason: &str,
        problem: &str,
        bos: &str,
        eos: &str,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let notice = format!(
            "{problem}, so the built-in form {} is used, because {reason}. If replies look odd, choose another file of this model.",
            chosen.name,
        );
        // Built-in templates are known to work (a test renders each of them); a template of
        // nothing stands for one that does not.
        let mut template = Self::working(chosen.source, bos, eos, clock.clone())
            .unwrap_or_else(|_| Self::of(Template::empty(), "", "", "", clock));
        template.stop_text = chosen.stop_text;
        template.notice = Some(notice);
        template
    }

    fn of(program: Template, source: &str, bos: &str, eos: &str, clock: Arc<dyn Clock>) -> Self {
        Self {
            program,
            source: source.to_owned(),
            bos: bos.to_owned(),
            eos: eos.to_owned(),
            shape: Shape::default(),
            stop_text: None,
            notice: None,
            clock,
            tags: ReasoningTags::choose(source, |_| false),
            spare: None,
            replaced: OnceLock::new(),
        }
    }

    /// Reads `source` and finds out what it takes.
    fn working(source: &str, bos: &str, eos: &str, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let program = Template::parse(source).map_err(|error| error.to_string())?;
        let mut template = Self::of(program, source, bos, eos, clock);
        template.shape = shape::probe(|shape, talk| template.run(shape, talk, ThinkingMode::Auto))?;
        Ok(template)
    }

    /// Renders `messages`, ending with the mark after which the assistant speaks. Each character of
    /// the result says which entry it belongs to; the template's own belong to none.
    pub fn render(&self, messages: &[ChatMessage]) -> Result<Text, EncodeError> {
        self.render_for(messages, ThinkingMode::Auto)
    }

    /// The same, and tells templates that can switch the model's thinking whether to.
    pub fn render_for(
        &self,
        messages: &[ChatMessage],
        thinking: ThinkingMode,
    ) -> Result<Text, EncodeError> {
        if let Some(other) = self.replaced.get() {
            return other.run_in_some_shape(messages, thinking);
        }
        self.run_in_some_shape(messages, thinking).or_else(|failed| {
            let Some((chosen, reason)) = &self.spare else { return Err(failed) };
            let problem = format!("The model's chat template does not work ({failed})");
            let clock = self.clock.clone();
            let other = Self::built_in(*chosen, reason, &problem, &self.bos, &self.eos, clock);
            let Ok(rendered) = other.run_in_some_shape(messages, thinking) else {
                return Err(failed);
            };
            // From now on: a talk does not change its form in the middle.
            let _ = self.replaced.set(Box::new(other));
            Ok(rendered)
        })
    }

    /// Renders in the shape that was found out, or else in one that is easier to take.
    fn run_in_some_shape(
        &self,
        messages: &[ChatMessage],
        thinking: ThinkingMode,
    ) -> Result<Text, EncodeError> {
        self.run(&self.shape, messages, thinking).or_else(|failed| {
            let mut easier = self.shape.easier();
            easier.find_map(|shape| self.run(&shape, messages, thinking).ok()).ok_or(failed)
        })
    }

    /// Renders, and checks that nothing was lost.
    fn run(
        &self,
        shape: &Shape,
        messages: &[ChatMessage],
        thinking: ThinkingMode,
    ) -> Result<Text, EncodeError> {
        let shaped = shape.apply(messages);
        let rendered = self.unchecked(shape, &shaped, thinking)?;
        match whole::problem(&rendered, &shaped, self.tags) {
            Some(problem) => Err(EncodeError::Template(problem)),
            None => Ok(of_entries(&rendered, &shaped)),
        }
    }

    /// Renders `messages`, which have the shape already. Origins are their parts, counted through.
    fn unchecked(
        &self,
        shape: &Shape,
        messages: &[ChatMessage],
        thinking: ThinkingMode,
    ) -> Result<Text, EncodeError> {
        let given: usize =
            messages.iter().flat_map(|message| &message.parts).map(|part| part.text.len()).sum();
        let fuel = Fuel::new(FUEL.saturating_add(FUEL_PER_BYTE.saturating_mul(given as u64)));
        let calendar = |format: &str| self.date(format);
        let render = || {
            let mut variables = vec![
                ("messages", shape.values(messages, &fuel)?),
                ("add_generation_prompt", Value::Bool(true)),
                ("bos_token", Value::text(&*self.bos, None)),
                ("eos_token", Value::text(&*self.eos, None)),
                ("tools", Value::None),
                ("documents", Value::None),
            ];
            match thinking {
                ThinkingMode::Auto => {}
                ThinkingMode::Off => variables.push(("enable_thinking", Value::Bool(false))),
                ThinkingMode::On => variables.push(("enable_thinking", Value::Bool(true))),
            }
            self.program.render(variables, &fuel, &calendar)
        };
        render().map_err(|error: correx_jinja::Error| {
            EncodeError::Template(match error.kind {
                ErrorKind::Refused => format!("it refuses the messages: {}", error.message),
                _ => error.to_string(),
            })
        })
    }

    /// The local date, in Python's `strftime` format.
    fn date(&self, format: &str) -> Result<String, String> {
        let now = self.clock.now().to_zoned_datetime(jiff::tz::TimeZone::system());
        jiff::fmt::strtime::format(format, &now).map_err(|error| error.to_string())
    }

    /// What the template takes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Text that ends a reply, where no token does: the model begins to speak for the person.
    pub fn stop_text(&self) -> Option<&'static str> {
        self.now().stop_text
    }

    /// What a person should know about the template, when there is something.
    pub fn notice(&self) -> Option<&str> {
        self.now().notice.as_deref()
    }

    /// This one, or what took its place.
    fn now(&self) -> &Self {
        self.replaced.get().map_or(self, |other| other)
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }
}

#[cfg(test)]
impl ChatTemplate {
    /// A template that is believed without being tried: tests of what comes after it.
    pub(crate) fn untried(source: &str, clock: Arc<dyn Clock>) -> Self {
        Self::of(Template::parse(source).unwrap(), source, "", "", clock)
    }

    /// What it renders, whatever it loses.
    pub(crate) fn render_unchecked(&self, messages: &[ChatMessage]) -> Text {
        let rendered = self.unchecked(&self.shape, messages, ThinkingMode::Auto).unwrap();
        of_entries(&rendered, messages)
    }
}

/// `rendered` by the entries that the parts of `messages` belong to.
fn of_entries(rendered: &Text, messages: &[ChatMessage]) -> Text {
    let entries: Vec<usize> =
        messages.iter().flat_map(|message| &message.parts).map(|part| part.entry).collect();
    let mut text = Text::new();
    for (run, part) in rendered.runs() {
        let entry = part.and_then(|part| entries.get(part)).copied();
        text.push(&rendered.as_str()[run], entry);
    }
    text
}

/// A message for trying out a template.
fn said(role: Role, text: &str) -> ChatMessage {
    ChatMessage::new(role, 0, text)
}

#[cfg(test)]
mod tests;
