//! The language of chat templates, rendered where it can do no harm.
//!
//! A chat template is a program that came with a download: Jinja as Hugging Face's tools run it,
//! with Python's strings and numbers. This crate reads and runs that part of Jinja that acts on one
//! template and what it is given. Two things set it apart from a general template engine:
//!
//! - **Text remembers where it came from** ([`Text`]). Whatever a template does to a message (trim,
//!   split, replace, quote it as JSON), each character of the output still says whether it is the
//!   template's own or which part of the conversation it belongs to.
//! - **Everything is paid for** ([`Fuel`]): steps, and every byte that is made. So a template can
//!   take neither more time nor more memory than its fuel allows, and neither source nor values can
//!   nest so deeply that the stack ends.
//!
//! # Layout
//! - [`text`]: text with origins.
//! - [`lexer`], [`parser`], [`ast`]: source to a tree.
//! - [`value`]: what templates compute with; [`show`] is how Python would print it.
//! - [`interpreter`]: statements; [`expression`]: expressions; [`operators`].
//! - [`functions`], [`filters`], [`checks`] (`is …`), [`methods`] (`"".strip()`), [`format`](mod@format), [`json`].
//! - [`fuel`], [`error`].
//!
//! This crate does no I/O. What it leaves out: `include`, `import`, `extends`, recursive loops,
//! escaping for HTML. None of them makes sense for one template that writes a prompt.

mod ast;
mod checks;
pub mod error;
mod expression;
mod filters;
mod format;
pub mod fuel;
mod functions;
mod interpreter;
mod json;
mod lexer;
mod methods;
mod operators;
mod parser;
mod show;
pub mod text;
pub mod value;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use error::{Error, ErrorKind};
pub use fuel::Fuel;
pub use text::Text;
pub use value::Value;

/// The longest source that is read, in bytes.
pub const LONGEST: usize = 256 << 10;

/// Tells a template the date: takes a `strftime` format, gives the text or says what is wrong.
pub type Calendar<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// A template that was read.
#[derive(Debug, Clone)]
pub struct Template {
    body: Arc<[ast::Statement]>,
}

impl Template {
    /// Reads `source`.
    pub fn parse(source: &str) -> Result<Self, Error> {
        if source.len() > LONGEST {
            return Err(Error::syntax(0, format!("it has {} bytes", source.len())));
        }
        Ok(Self { body: parser::parse(source)?.into() })
    }

    /// A template that writes nothing.
    pub fn empty() -> Self {
        Self { body: Arc::from([]) }
    }

    /// Runs the template over `variables`. It stops with an error when `fuel` is used up.
    pub fn render(
        &self,
        variables: Vec<(&str, Value)>,
        fuel: &Fuel,
        calendar: Calendar<'_>,
    ) -> Result<Text, Error> {
        interpreter::run(&self.body, variables, fuel, calendar)
    }
}
