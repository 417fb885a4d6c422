//! Source to tokens, with Jinja's rules of white space as chat templates are run: the first line
//! break behind a block goes (`trim_blocks`), blanks before a block that begins its line go
//! (`lstrip_blocks`), and so does one line break at the end.

use crate::error::Error;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Data(String),
    PrintBegin,
    PrintEnd,
    BlockBegin,
    BlockEnd,
    Name(String),
    Text(String),
    Int(i64),
    Float(f64),
    Sign(&'static str),
}

/// What a sign is written as, longest first.
const SIGNS: &[&str] = &[
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", ".", ":", "|",
    ",", ";", "(", ")", "[", "]", "{", "}",
];

/// The longest name, in bytes: looking one up takes one step.
const LONGEST_NAME: usize = 256;

/// Python's white space.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The tokens of `source`, each with its line.
pub(crate) fn tokens(source: &str) -> Result<Vec<(Token, u32)>, Error> {
    let mut source = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        source.pop();
    }
    let mut lexer =
        Lexer { source: &source, place: 0, line: 1, at_line_start: true, tokens: vec![] };
    lexer.run()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    source: &'a str,
    place: usize,
    line: u32,
    /// Whether what was read last ended a line.
    at_line_start: bool,
    tokens: Vec<(Token, u32)>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.place..]
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::syntax(self.line, message)
    }

    fn push(&mut self, token: Token) {
        self.tokens.push((token, self.line));
    }

    fn advance(&mut self, bytes: usize) {
        let passed = &self.source[self.place..self.place + bytes];
        self.line += passed.bytes().filter(|byte| *byte == b'\n').count() as u32;
        if bytes > 0 {
            self.at_line_start = passed.ends_with('\n');
        }
        self.place += bytes;
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.advance(rest.len() - rest.trim_start_matches(is_space).len());
    }

    fn run(&mut self) -> Result<(), Error> {
        while self.place < self.source.len() {
            let rest = self.rest();
            let Some((begin, kind)) = next_tag(rest) else {
                let all = rest.to_owned();
                self.push(Token::Data(all));
                self.advance(rest.len());
                return Ok(());
            };
            let data = self.data_before(&rest[..begin], kind, &rest[begin + 2..]);
            if !data.is_empty() {
                self.push(Token::Data(data.to_owned()));
            }
            self.advance(begin + 2);
            if self.rest().starts_with(['-', '+']) {
                self.advance(1);
            }
            match kind {
                '#' => self.comment()?,
                '%' if self.begins_raw().is_some() => self.raw()?,
                '%' => self.tag(Token::BlockBegin, Token::BlockEnd, "%}")?,
                _ => self.tag(Token::PrintBegin, Token::PrintEnd, "}}")?,
            }
        }
        Ok(())
    }

    /// What is left of `data` before a tag of this kind.
    fn data_before<'d>(&self, data: &'d str, kind: char, tag: &str) -> &'d str {
        if tag.starts_with('-') {
            return data.trim_end_matches(is_space);
        }
        if kind == '{' || tag.starts_with('+') {
            return data;
        }
        let line = data.rfind('\n').map_or(0, |place| place + 1);
        let blank = data[line..].chars().all(is_space);
        if blank && (line > 0 || self.at_line_start) { &data[..line] } else { data }
    }

    /// Passes the end of a block or comment with what its sign says about white space.
    fn end(&mut self, sign: bool, trims_line: bool) {
        match sign {
            true => {
                let rest = self.rest();
                let space = rest.len() - rest.trim_start_matches(is_space).len();
                if space > 0 {
                    self.advance(space);
                }
            }
            false if trims_line && self.rest().starts_with('\n') => self.advance(1),
            false => {}
        }
    }

    fn comment(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        let Some(end) = rest.find("#}") else {
            return Err(self.error("a comment has no end"));
        };
        let sign = rest[..end].chars().next_back();
        self.advance(end + 2);
        self.end(sign == Some('-'), sign != Some('+'));
        Ok(())
    }

    /// How long `raw …%}` is, when the tag is that.
    fn begins_raw(&self) -> Option<usize> {
        let rest = self.rest();
        let word = rest.trim_start_matches(is_space).strip_prefix("raw")?;
        let end = word.trim_start_matches(is_space);
        let end = end.strip_prefix(['-', '+']).unwrap_or(end).strip_prefix("%}")?;
        Some(rest.len() - end.len())
    }

    fn raw(&mut self) -> Result<(), Error> {
        let length = self.begins_raw().unwrap_or(0);
        let sign = self.rest()[..length].trim_end_matches("%}").chars().next_back();
        self.advance(length);
        self.end(sign == Some('-'), sign != Some('+'));
        let rest = self.rest();
        let mut from = 0;
        while let Some(found) = rest[from..].find("{%") {
            let begin = from + found;
            from = begin + 2;
            let tag = &rest[begin + 2..];
            let inner = tag.strip_prefix(['-', '+']).unwrap_or(tag).trim_start_matches(is_space);
            let Some(after) = inner.strip_prefix("endraw") else { continue };
            let after = after.trim_start_matches(is_space);
            let sign = after.chars().next().filter(|sign| ['-', '+'].contains(sign));
            let Some(end) = after.strip_prefix(['-', '+']).unwrap_or(after).strip_prefix("%}")
            else {
                continue;
            };
            let data = self.data_before(&rest[..begin], '%', tag).to_owned();
            if !data.is_empty() {
                self.push(Token::Data(data));
            }
            self.advance(rest.len() - end.len());
            self.end(sign == Some('-'), sign != Some('+'));
            return Ok(());
        }
        Err(self.error("a raw block has no end"))
    }

    fn tag(&mut self, begin: Token, end: Token, close: &'static str) -> Result<(), Error> {
        self.push(begin);
        let mut open: Vec<char> = Vec::new();
        loop {
            self.skip_space();
            let rest = self.rest();
            let Some(first) = rest.chars().next() else {
                return Err(self.error("a tag has no end"));
            };
            if open.is_empty() {
                let signed = rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(close));
                let plus = close == "%}" && rest.starts_with("+%}");
                if signed || plus || rest.starts_with(close) {
                    self.push(end);
                    self.advance(close.len() + usize::from(signed || plus));
                    self.end(signed, close == "%}" && !plus);
                    return Ok(());
                }
            }
            if first == '"' || first == '\'' {
                self.string(first)?;
            } else if first.is_ascii_digit() {
                self.number()?;
            } else if first == '_' || first.is_alphabetic() {
                let length = rest
                    .find(|character: char| character != '_' && !character.is_alphanumeric())
                    .unwrap_or(rest.len());
                if length > LONGEST_NAME {
                    return Err(self.error("a name is too long"));
                }
                self.push(Token::Name(rest[..length].to_owned()));
                self.advance(length);
            } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                match first {
                    '(' | '[' | '{' => open.push(first),
                    ')' | ']' | '}' => {
                        let expected = match open.pop() {
                            Some('(') => ')',
                            Some('[') => ']',
                            Some(_) => '}',
                            None => return Err(self.error(format!("`{first}` closes nothing"))),
                        };
                        if first != expected {
                            return Err(self.error(format!("`{first}` where `{expected}` belongs")));
                        }
                    }
                    _ => {}
                }
                self.push(Token::Sign(sign));
                self.advance(sign.len());
            } else {
                return Err(self.error(format!("`{first}` means nothing in a tag")));
            }
        }
    }

    fn number(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        let digits = |from: usize| {
            from + rest[from..]
                .find(|character: char| character != '_' && !character.is_ascii_digit())
                .unwrap_or(rest.len() - from)
        };
        let mut end = digits(0);
        let mut float = false;
        let digit_at = |place: usize| rest[place..].starts_with(|c: char| c.is_ascii_digit());
        if rest[end..].starts_with('.') && digit_at(end + 1) {
            float = true;
            end = digits(end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            if digit_at(end + 1 + sign) {
                float = true;
                end = digits(end + 1 + sign);
            }
        }
        let text = rest[..end].replace('_', "");
        let token = match float {
            true => text.parse().ok().map(Token::Float),
            false => text.parse().ok().map(Token::Int),
        };
        let token = token.ok_or_else(|| self.error(format!("the number {text} is too large")))?;
        self.push(token);
        self.advance(end);
        Ok(())
    }

    fn string(&mut self, quote: char) -> Result<(), Error> {
        let mut text = String::new();
        let mut rest = self.rest()[1..].char_indices();
        let unclosed = || Error::syntax(self.line, "a string has no end");
        loop {
            let (place, character) = rest.next().ok_or_else(unclosed)?;
            if character == quote {
                self.push(Token::Text(text));
                self.advance(place + 2);
                return Ok(());
            }
            if character != '\\' {
                text.push(character);
                continue;
            }
            let (place, escape) = rest.next().ok_or_else(unclosed)?;
            let code = |from: usize, length: usize, radix: u32| {
                let digits = self.rest()[1..].get(from..from + length)?;
                char::from_u32(u32::from_str_radix(digits, radix).ok()?)
            };
            let (character, skip) = match escape {
                '\n' => (None, 0),
                '\\' | '\'' | '"' => (Some(escape), 0),
                'a' => (Some('\u{7}'), 0),
                'b' => (Some('\u{8}'), 0),
                'f' => (Some('\u{c}'), 0),
                'n' => (Some('\n'), 0),
                'r' => (Some('\r'), 0),
                't' => (Some('\t'), 0),
                'v' => (Some('\u{b}'), 0),
                '0'..='7' => {
                    let length = self.rest()[1 + place..]
                        .chars()
                        .take(3)
                        .take_while(|digit| digit.is_digit(8))
                        .count();
                    (code(place, length, 8), length - 1)
                }
                'x' | 'u' | 'U' => {
                    let length = match escape {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    };
                    let character = code(place + 1, length, 16)
                        .ok_or_else(|| self.error(format!("`\\{escape}` names no character")))?;
                    (Some(character), length)
                }
                other => {
                    text.push('\\');
                    (Some(other), 0)
                }
            };
            text.extend(character);
            for _ in 0..skip {
                rest.next();
            }
        }
    }
}

/// The next tag's place and its second character.
fn next_tag(text: &str) -> Option<(usize, char)> {
    let mut from = 0;
    while let Some(found) = text[from..].find('{') {
        let place = from + found;
        match text[place + 1..].chars().next() {
            Some(kind @ ('{' | '%' | '#')) => return Some((place, kind)),
            _ => from = place + 1,
        }
    }
    None
}
