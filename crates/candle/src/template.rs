//! A model's chat template, rendered where it can do no harm.
//!
//! Templates are programs that came with a download. They see the messages, have so much fuel and
//! so much output, and reach nothing else.

mod json;

use std::io::{self, Write};
use std::sync::Arc;

use correx_context::{EncodeError, Role};
use correx_events::Clock;
use correx_inference::ThinkingMode;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use serde::Serialize;

/// The form that is used when a file brings no template, or one that does not work.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// Instructions that one rendering may take.
const FUEL: u64 = 5_000_000;
/// Output that a template may add to what it is given, in bytes.
const OUTPUT: usize = 1 << 20;
/// The longest template that is looked at, in bytes.
const LONGEST: usize = 1 << 20;
const NAME: &str = "chat";

/// One message as templates see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TemplateMessage {
    /// The role's name.
    pub role: &'static str,
    /// What is said.
    pub content: String,
}

/// How a template wants the system's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemRole {
    /// As a message of its own.
    Own,
    /// It refuses system messages: they go in front of the first user message.
    Merged,
}

/// A template that was seen to work.
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    bos: String,
    eos: String,
    system: SystemRole,
    notice: Option<String>,
}

impl ChatTemplate {
    /// Takes the file's template; a missing or broken one is replaced by ChatML, and
    /// [`notice`](Self::notice) says so.
    ///
    /// `bos` and `eos` are the texts that templates may ask for; `clock` tells them the date.
    pub fn new(source: Option<&str>, bos: &str, eos: &str, clock: Arc<dyn Clock>) -> Self {
        let problem = match source {
            None => "The model's file has no chat template".to_owned(),
            Some(source) => match Self::working(source, bos, eos, clock.clone()) {
                Ok(template) => return template,
                Err(error) => format!("The model's chat template does not work ({error})"),
            },
        };
        let notice = format!(
            "{problem}, so the general ChatML form is used. If replies look odd, choose another file of this model."
        );
        let environment = environment(clock);
        let mut template = Self {
            environment,
            source: CHATML.to_owned(),
            bos: bos.to_owned(),
            eos: eos.to_owned(),
            system: SystemRole::Own,
            notice: Some(notice),
        };
        // The constant above is known to parse (a test renders it).
        let _ = template.environment.add_template(NAME, CHATML);
        template
    }

    /// Compiles and tries `source` on a plain conversation.
    fn working(source: &str, bos: &str, eos: &str, clock: Arc<dyn Clock>) -> Result<Self, String> {
        if source.len() > LONGEST {
            return Err(format!("it has {} bytes", source.len()));
        }
        let mut environment = environment(clock);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| first_line(&error.to_string()))?;
        let mut template = Self {
            environment,
            source: source.to_owned(),
            bos: bos.to_owned(),
            eos: eos.to_owned(),
            system: SystemRole::Own,
            notice: None,
        };
        let message = |role: Role, content: &str| TemplateMessage {
            role: role.as_str(),
            content: content.to_owned(),
        };
        let talk = [
            message(Role::User, "probe one"),
            message(Role::Assistant, "probe two"),
            message(Role::User, "probe three"),
        ];
        let shown = template.render(&talk).map_err(|error| first_line(&error.to_string()))?;
        if let Some(lost) = talk.iter().find(|message| !shown.contains(&message.content)) {
            return Err(format!("it loses what the {} says", lost.role));
        }
        let with_system = [&[message(Role::System, "probe zero")], &talk[..]].concat();
        if !template.render(&with_system).is_ok_and(|shown| shown.contains("probe zero")) {
            template.system = SystemRole::Merged;
        }
        Ok(template)
    }

    /// Renders `messages`, ending with the mark after which the assistant speaks.
    pub fn render(&self, messages: &[TemplateMessage]) -> Result<String, EncodeError> {
        self.render_for(messages, ThinkingMode::Auto)
    }

    /// The same, and tells templates that can switch the model's thinking whether to.
    pub fn render_for(
        &self,
        messages: &[TemplateMessage],
        thinking: ThinkingMode,
    ) -> Result<String, EncodeError> {
        let given: usize = messages.iter().map(|message| message.content.len()).sum();
        let mut output =
            Limited { bytes: Vec::new(), limit: given.saturating_mul(4).saturating_add(OUTPUT) };
        let none = Value::from(());
        let context = context! {
            messages,
            add_generation_prompt => true,
            bos_token => self.bos,
            eos_token => self.eos,
            tools => none,
            documents => none,
            enable_thinking => match thinking {
                ThinkingMode::Auto => Value::UNDEFINED,
                ThinkingMode::Off => Value::from(false),
                ThinkingMode::On => Value::from(true),
            },
        };
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render_captured_to(context, &mut output).map(drop))
            .map_err(|error| EncodeError::Template(first_line(&error.to_string())))?;
        String::from_utf8(output.bytes)
            .map_err(|_| EncodeError::Template("it wrote something that is no text".into()))
    }

    /// How system messages are to be given.
    pub fn system_role(&self) -> SystemRole {
        self.system
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

fn environment(clock: Arc<dyn Clock>) -> Environment<'static> {
    let mut environment = Environment::new();
    // As Hugging Face renders chat templates.
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", json::to_json);
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", move |format: String| -> Result<String, Error> {
        let now = clock.now().to_zoned_datetime(jiff::tz::TimeZone::system());
        jiff::fmt::strtime::format(format, &now)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
    });
    environment
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Takes so many bytes and then fails.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Limited {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.limit {
            return Err(io::Error::other("the template writes too much"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
