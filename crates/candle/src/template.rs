//! A model's chat template, rendered where it can do no harm.
//!
//! Templates are programs that came with a download. They see the messages, have so much fuel, and
//! reach nothing else ([`correx_jinja`]). A template is believed after it was seen to work: what it
//! cannot take (system messages, two messages of one speaker in a row, content that is plain text) is
//! found out once, and messages are put into the shape that it takes.
//!
//! - [`shape`]: that shape.
//! - [`builtin`]: templates for files that have none, or a broken one.

pub mod builtin;
mod shape;

use std::sync::Arc;

use correx_context::{ChatMessage, EncodeError, Role};
use correx_events::Clock;
use correx_gguf::Gguf;
use correx_inference::ThinkingMode;
use correx_jinja::{ErrorKind, Fuel, Template, Text, Value};

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
}

impl ChatTemplate {
    /// Takes the file's template; a missing or broken one is replaced by the built-in one that fits
    /// the vocabulary best, and [`notice`](Self::notice) says so. `clock` tells templates the date.
    pub fn new(source: Option<&str>, facts: &ModelFacts<'_>, clock: Arc<dyn Clock>) -> Self {
        let problem = match source {
            None => "The model's file has no chat template".to_owned(),
            Some(source) => match Self::working(source, facts, clock.clone()) {
                Ok(template) => return template,
                Err(error) => format!("The model's chat template does not work ({error})"),
            },
        };
        let (chosen, reason) = builtin::choose(facts);
        let notice = format!(
            "{problem}, so the built-in form {} is used, because {reason}. If replies look odd, choose another file of this model.",
            chosen.name,
        );
        // Built-in templates are known to work (a test renders each of them); a template of
        // nothing stands for one that does not.
        let template = Self::working(chosen.source, facts, clock.clone());
        let mut template = template.unwrap_or_else(|_| Self {
            program: Template::empty(),
            source: String::new(),
            bos: String::new(),
            eos: String::new(),
            shape: Shape::default(),
            stop_text: None,
            notice: None,
            clock,
        });
        template.stop_text = chosen.stop_text;
        template.notice = Some(notice);
        template
    }

    /// Reads `source` and finds out what it takes.
    fn working(
        source: &str,
        facts: &ModelFacts<'_>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let program = Template::parse(source).map_err(|error| error.to_string())?;
        let mut template = Self {
            program,
            source: source.to_owned(),
            bos: facts.bos.to_owned(),
            eos: facts.eos.to_owned(),
            shape: Shape::default(),
            stop_text: None,
            notice: None,
            clock,
        };
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
        self.run(&self.shape, messages, thinking)
    }

    fn run(
        &self,
        shape: &Shape,
        messages: &[ChatMessage],
        thinking: ThinkingMode,
    ) -> Result<Text, EncodeError> {
        let messages = shape.apply(messages);
        let given: usize =
            messages.iter().flat_map(|message| &message.parts).map(|part| part.text.len()).sum();
        let fuel = Fuel::new(FUEL.saturating_add(FUEL_PER_BYTE.saturating_mul(given as u64)));
        let calendar = |format: &str| self.date(format);
        let render = || {
            let mut variables = vec![
                ("messages", shape.values(&messages, &fuel)?),
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
        self.stop_text
    }

    /// What a person should know about the template, when there is something.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// A message for trying out a template.
fn said(role: Role, text: &str) -> ChatMessage {
    ChatMessage::new(role, 0, text)
}

#[cfg(test)]
mod tests;
