//! Everything that is printed: results on the standard output, everything else on the error
//! output; with `--json` one object per line.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one module that prints")]

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use correx_protocol::ProtocolError;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

/// For people, or for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Words.
    Text,
    /// JSON, one object per line.
    Json,
}

/// Where things are printed. Clones print to the same place.
#[derive(Clone)]
pub struct Output {
    format: Format,
    /// Only on a terminal, and not for scripts.
    bars: Option<MultiProgress>,
    painted: bool,
    story: Story,
}

/// Where a person is told something on the side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// On the error output: the results stay clean.
    Aside,
    /// On the standard output: it is the result.
    Result,
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy)]
pub enum Look {
    /// Stands out.
    Bold,
    /// Stands back.
    Dim,
    /// Went well.
    Good,
    /// Went wrong.
    Bad,
    /// Steering.
    Amber,
}

impl Output {
    /// Prints in `format`; with bars and colours where a person sees them.
    pub fn new(format: Format) -> Self {
        let person = format == Format::Text && std::io::stderr().is_terminal();
        let painted = person
            && std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { format, bars: person.then(MultiProgress::new), painted, story: Story::Aside }
    }

    /// The same, telling what is told as `story` says.
    pub fn telling(self, story: Story) -> Self {
        Self { story, ..self }
    }

    /// For people or for scripts.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Prints a result; a file or a program gets it unchanged.
    pub fn result(&self, text: &str) {
        self.around_bars(|| {
            // A reader that went away (`| head`) is no error of ours.
            let _ = writeln!(std::io::stdout(), "{}", for_stdout(text));
        });
    }

    /// Prints a piece of a result, and no newline.
    pub fn piece(&self, text: &str) {
        self.around_bars(|| {
            let mut out = std::io::stdout();
            let _ = write!(out, "{}", for_stdout(text));
            let _ = out.flush();
        });
    }

    /// Prints an object, as JSON.
    pub fn object(&self, object: &impl Serialize) {
        match serde_json::to_string(object) {
            Ok(line) => {
                let _ = writeln!(std::io::stdout(), "{line}");
            }
            Err(error) => self.say(&format!("a result could not be written: {error}")),
        }
    }

    /// Prints a line exactly as it is.
    pub fn verbatim(&self, line: &str) {
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    /// Tells a person something on the side. Scripts do not hear it. What comes from outside has
    /// been made [`safe`] by the caller.
    pub fn say(&self, text: &str) {
        if self.format == Format::Text {
            self.around_bars(|| {
                let _ = match self.story {
                    Story::Aside => writeln!(std::io::stderr(), "{text}"),
                    Story::Result => writeln!(std::io::stdout(), "{text}"),
                };
            });
        }
    }

    /// Tells a piece of something on the side, and no newline. What comes from outside has been
    /// made [`safe`] by the caller.
    pub fn aside(&self, text: &str) {
        if self.format == Format::Text {
            self.around_bars(|| {
                let mut out = std::io::stderr();
                let _ = write!(out, "{text}");
                let _ = out.flush();
            });
        }
    }

    /// Shows what a person is to answer.
    pub fn prompt(&self, text: &str) {
        if self.format == Format::Text {
            let mut out = std::io::stderr();
            let _ = write!(out, "{text}");
            let _ = out.flush();
        }
    }

    /// Reports an error: what happened, what was kept, what to do.
    pub fn error(&self, error: &ProtocolError) {
        if self.format == Format::Json {
            #[derive(Serialize)]
            struct Report<'a> {
                #[serde(rename = "type")]
                kind: &'static str,
                #[serde(flatten)]
                error: &'a ProtocolError,
            }
            let report = Report { kind: "error", error };
            if let Ok(line) = serde_json::to_string(&report) {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            return;
        }
        // A list of mistakes begins on a line of its own.
        let between = if error.message.contains('\n') { '\n' } else { ' ' };
        let message = safe(&error.message);
        self.say(&format!("{}{between}{message}", self.paint("error:", Look::Bad)));
        if let Some(kept) = &error.kept {
            self.say(&format!("  kept:  {}", safe(kept)));
        }
        if let Some(hint) = &error.hint {
            self.say(&format!("  to do: {}", safe(hint)));
        }
    }

    /// `text`, made to look so where a person sees it.
    pub fn paint(&self, text: &str, look: Look) -> String {
        let code = match look {
            Look::Bold => "1",
            Look::Dim => "2",
            Look::Good => "32",
            Look::Bad => "31;1",
            Look::Amber => "33",
        };
        if self.painted { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// A heading over what follows.
    pub fn heading(&self, text: &str) {
        self.say(&format!("\n{}", self.paint(text, Look::Bold)));
    }

    /// A bar of `total` steps; invisible where no person sees it.
    pub fn bar(&self, total: u64, label: &str) -> ProgressBar {
        let Some(bars) = &self.bars else { return ProgressBar::hidden() };
        let bar = bars.add(ProgressBar::new(total));
        let style = ProgressStyle::with_template("  {msg:<36} {bar:24} {pos}/{len}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_message(label.to_owned());
        bar
    }

    /// A bar that counts bytes; its message says how fast.
    pub fn byte_bar(&self, label: &str) -> ProgressBar {
        let bar = self.bar(0, "");
        let template = "  {prefix:<30} {bar:24} {bytes}/{total_bytes}  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_prefix(label.to_owned());
        bar
    }

    /// Whether progress is shown as bars; else it is told in lines.
    pub fn has_bars(&self) -> bool {
        self.bars.is_some()
    }

    fn around_bars(&self, print: impl FnOnce()) {
        match &self.bars {
            Some(bars) => bars.suspend(print),
            None => print(),
        }
    }
}

/// A result as it is for a file or a program, safe for a terminal.
fn for_stdout(text: &str) -> Cow<'_, str> {
    if std::io::stdout().is_terminal() { safe(text).into() } else { text.into() }
}

/// Text from outside, safe to show on a terminal: no escape sequences either.
pub fn safe(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Text from outside for the middle of a line: what would break or change it is marked.
pub fn on_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_stays_on_its_line() {
        assert_eq!(on_one_line("a\nb\tc\u{1b}[2Jd ü"), "a\u{fffd}b\u{fffd}c\u{fffd}[2Jd ü");
    }

    #[test]
    fn what_a_model_writes_cannot_command_the_terminal() {
        assert_eq!(safe("a\u{1b}[2Jb\u{7}\tc\n"), "a[2Jb\tc\n");
    }

    #[test]
    fn without_a_terminal_nothing_is_painted() {
        let output = Output { painted: false, ..Output::new(Format::Text) };
        assert_eq!(output.paint("x", Look::Bad), "x");
        let output = Output { painted: true, ..output };
        assert_eq!(output.paint("x", Look::Bad), "\u{1b}[31;1mx\u{1b}[0m");
    }
}
