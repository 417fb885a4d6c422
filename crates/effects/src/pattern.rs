//! Patterns for arguments and names. They match whole texts, and a wildcard never turns a text into
//! something of another kind: an option, a path with folders in it, a way up.

use std::fmt;

use thiserror::Error;

/// One allowed list of arguments, such as `["--to", "html", "*.md"]`.
///
/// Every pattern stands for exactly one argument, in this order; `...` as the last one stands for any
/// number of any arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentPattern {
    parts: Vec<Glob>,
    rest: Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    Anything,
}

/// What cannot be a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternProblem {
    /// `...` with something behind it.
    #[error("\"...\" stands for all further arguments, so it can only be the last one")]
    RestNotLast,
    /// `---…` or `a...`: neither a text nor all further arguments.
    #[error("\"...\" must stand alone; write \\... if the three dots are meant")]
    RestInText,
    /// A backslash before anything but `*`, `\` or `...`.
    #[error("\"\\{0}\" means nothing; a backslash is written \\\\, a star that is meant \\*")]
    Escape(String),
    /// More stars than two.
    #[error("\"***\" means nothing; * is any part of a name, ** also with folders in it")]
    Stars,
    /// A name with folders in it.
    #[error("a pattern of names has no / in it; name folders under \"folders\"")]
    SlashInName,
    /// Nothing.
    #[error("a pattern of names cannot be empty")]
    EmptyName,
}

impl ArgumentPattern {
    /// Reads the patterns of one list.
    pub fn parse<T: AsRef<str>>(patterns: &[T]) -> Result<Self, (usize, PatternProblem)> {
        let mut parts = Vec::new();
        let mut rest = Rest::Nothing;
        for (index, pattern) in patterns.iter().enumerate() {
            let pattern = pattern.as_ref();
            if pattern == "..." {
                if index + 1 != patterns.len() {
                    return Err((index, PatternProblem::RestNotLast));
                }
                rest = Rest::Anything;
            } else {
                parts.push(Glob::parse(pattern).map_err(|problem| (index, problem))?);
            }
        }
        Ok(Self { parts, rest })
    }

    /// Whether these arguments are what the pattern says.
    pub fn matches<T: AsRef<str>>(&self, arguments: &[T]) -> bool {
        let enough = match self.rest {
            Rest::Nothing => arguments.len() == self.parts.len(),
            Rest::Anything => arguments.len() >= self.parts.len(),
        };
        enough
            && self.parts.iter().zip(arguments).all(|(part, argument)| {
                let argument = argument.as_ref();
                part.matches(argument, Reach::Argument)
            })
    }
}

impl fmt::Display for ArgumentPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> =
            self.parts.iter().map(|part| format!("{:?}", part.text)).collect();
        if self.rest == Rest::Anything {
            parts.push("\"...\"".to_owned());
        }
        write!(f, "[{}]", parts.join(", "))
    }
}

/// A pattern of one name, such as `*.key`; without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(Glob);

impl NamePattern {
    /// Reads a pattern.
    pub fn parse(pattern: &str) -> Result<Self, PatternProblem> {
        if pattern.is_empty() {
            return Err(PatternProblem::EmptyName);
        }
        if pattern.contains('/') {
            return Err(PatternProblem::SlashInName);
        }
        let mut glob = Glob::parse(&pattern.to_lowercase())?;
        pattern.clone_into(&mut glob.text);
        Ok(Self(glob))
    }

    /// Whether `name` is such a name.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(&name.to_lowercase(), Reach::Name)
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Exactly(char),
    /// Part of a name.
    Star,
    /// Also with folders in it.
    Stars,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// A star takes at least one character, and makes neither an option nor a way up.
    Argument,
    /// A star takes anything, also nothing: names are matched to forbid them.
    Name,
}

/// One pattern and the text that it was written as.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Glob {
    text: String,
    pieces: Vec<Piece>,
}

impl Glob {
    fn parse(text: &str) -> Result<Self, PatternProblem> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("\\...") {
                pieces.extend(['.', '.', '.'].map(Piece::Exactly));
                rest = after;
            } else if rest.starts_with("...") {
                return Err(PatternProblem::RestInText);
            } else if let Some(after) = rest.strip_prefix('\\') {
                match after.chars().next() {
                    Some(meant @ ('*' | '\\')) => pieces.push(Piece::Exactly(meant)),
                    other => {
                        let other = other.map(String::from).unwrap_or_default();
                        return Err(PatternProblem::Escape(other));
                    }
                }
                rest = &after[1..];
            } else if rest.starts_with("***") {
                return Err(PatternProblem::Stars);
            } else if let Some(after) = rest.strip_prefix("**") {
                pieces.push(Piece::Stars);
                rest = after;
            } else if let Some(after) = rest.strip_prefix('*') {
                pieces.push(Piece::Star);
                rest = after;
            } else {
                pieces.push(Piece::Exactly(character));
                rest = &rest[character.len_utf8()..];
            }
        }
        Ok(Self { text: text.to_owned(), pieces })
    }

    fn matches(&self, text: &str, reach: Reach) -> bool {
        let wild = self.pieces.iter().any(|piece| !matches!(piece, Piece::Exactly(_)));
        if wild && reach == Reach::Argument {
            let first = self.pieces.first();
            let may_be_option = matches!(first, Some(Piece::Exactly('-')))
                || cfg!(windows) && matches!(first, Some(Piece::Exactly('/')));
            let is_option = text.starts_with('-') || cfg!(windows) && text.starts_with('/');
            let goes_up = text.split(['/', '\\', '=', ':']).any(|part| part == "..");
            if is_option && !may_be_option || goes_up || text.chars().any(char::is_control) {
                return false;
            }
        }
        let text: Vec<char> = text.chars().collect();
        // Which pieces may be reached after the characters so far; `least` as a star must take one.
        let least = match reach {
            Reach::Argument => 1,
            Reach::Name => 0,
        };
        let mut reached = vec![false; self.pieces.len() + 1];
        reached[0] = true;
        self.pass_stars(&mut reached, least);
        for character in text {
            let mut next = vec![false; self.pieces.len() + 1];
            for (at, piece) in self.pieces.iter().enumerate() {
                if !reached[at] {
                    continue;
                }
                match piece {
                    Piece::Exactly(expected) => next[at + 1] |= *expected == character,
                    Piece::Star => {
                        if !matches!(character, '/' | '\\') {
                            next[at] = true;
                            next[at + 1] = true;
                        }
                    }
                    Piece::Stars => {
                        next[at] = true;
                        next[at + 1] = true;
                    }
                }
            }
            self.pass_stars(&mut next, least);
            reached = next;
        }
        reached[self.pieces.len()]
    }

    /// Where a star may take nothing, what is behind it is reached as well.
    fn pass_stars(&self, reached: &mut [bool], least: usize) {
        if least > 0 {
            return;
        }
        for (at, piece) in self.pieces.iter().enumerate() {
            if reached[at] && !matches!(piece, Piece::Exactly(_)) {
                reached[at + 1] = true;
            }
        }
    }
}
