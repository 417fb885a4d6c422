//! ToUnicode maps: which text a font's codes stand for (PDF 32000-1, 9.10.3).

use std::collections::BTreeMap;

/// Codes that one map may name; a font has at most 65,536 of them.
const MAX_CODES: usize = 70_000;

/// Codes of one or two bytes to text.
#[derive(Default)]
pub(super) struct CMap {
    texts: BTreeMap<u32, String>,
    ranges: Vec<(u32, u32, u32)>,
    /// Bytes per code.
    pub(super) width: usize,
}

impl CMap {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut map = Self { width: 0, ..Self::default() };
        let mut operands: Vec<Token> = Vec::new();
        let mut rest = bytes;
        while let Some((token, after)) = token(rest) {
            rest = after;
            match token {
                Token::Word(word) => {
                    match word {
                        b"endcodespacerange" => map.code_space(&operands),
                        b"endbfchar" => map.characters(&operands),
                        b"endbfrange" => map.add_ranges(&operands),
                        _ => {}
                    }
                    operands.clear();
                }
                token if operands.len() < MAX_CODES * 4 => operands.push(token),
                _ => {}
            }
            if map.texts.len() + map.ranges.len() > MAX_CODES {
                break;
            }
        }
        map.ranges.sort_unstable();
        if map.width == 0 {
            map.width = 2;
        }
        map
    }

    pub(super) fn text(&self, code: u32) -> Option<String> {
        if let Some(text) = self.texts.get(&code) {
            return Some(text.clone());
        }
        let after = self.ranges.partition_point(|(first, _, _)| *first <= code);
        let (first, last, target) = self.ranges.get(after.checked_sub(1)?)?;
        let value = target.checked_add(code - first).filter(|_| code <= *last)?;
        char::from_u32(value).map(String::from)
    }

    fn code_space(&mut self, operands: &[Token]) {
        if let Some(Token::Bytes(low)) = operands.first() {
            self.width = low.len().clamp(1, 4);
        }
    }

    fn characters(&mut self, operands: &[Token]) {
        let mut bytes = operands.iter().filter_map(Token::bytes);
        while let (Some(code), Some(text)) = (bytes.next(), bytes.next()) {
            self.note_width(code);
            self.texts.insert(number(code), utf16(text));
        }
    }

    fn add_ranges(&mut self, operands: &[Token]) {
        let mut operands = operands.iter();
        while let (Some(Token::Bytes(first)), Some(Token::Bytes(last)), Some(target)) =
            (operands.next(), operands.next(), operands.next())
        {
            self.note_width(first);
            let (first, last) = (number(first), number(last));
            match target {
                Token::Bytes(text) => {
                    let text = utf16(text);
                    let mut letters = text.chars();
                    match (letters.next(), letters.next()) {
                        (Some(letter), None) => {
                            self.ranges.push((first, last, u32::from(letter)));
                        }
                        // Several letters for each code: only the last one counts on.
                        (Some(_), Some(_)) => {
                            let mut letters: Vec<char> = text.chars().collect();
                            for code in first..=last.min(first.saturating_add(255)) {
                                self.texts.insert(code, letters.iter().collect());
                                let next =
                                    letters.last().and_then(|l| char::from_u32(u32::from(*l) + 1));
                                match (next, letters.last_mut()) {
                                    (Some(next), Some(last)) => *last = next,
                                    _ => break,
                                }
                            }
                        }
                        _ => {}
                    }
                }
                Token::Open => {
                    let mut code = first;
                    for text in operands.by_ref() {
                        match text {
                            Token::Bytes(text) => {
                                if code <= last && self.texts.len() <= MAX_CODES {
                                    self.texts.insert(code, utf16(text));
                                    code = code.saturating_add(1);
                                }
                            }
                            _ => break,
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn note_width(&mut self, code: &[u8]) {
        if self.width == 0 {
            self.width = code.len().clamp(1, 4);
        }
    }
}

enum Token<'a> {
    Bytes(Vec<u8>),
    Open,
    Close,
    /// A number or a name: nothing that is needed, but it stands between operands.
    Other,
    Word(&'a [u8]),
}

impl Token<'_> {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

fn token(bytes: &[u8]) -> Option<(Token<'_>, &[u8])> {
    let bytes = bytes.trim_ascii_start();
    let (first, rest) = bytes.split_first()?;
    let until =
        |rest: &[u8], is_end: fn(&u8) -> bool| rest.iter().position(is_end).unwrap_or(rest.len());
    Some(match first {
        b'<' if rest.first() == Some(&b'<') => (Token::Other, &rest[1..]),
        b'>' if rest.first() == Some(&b'>') => (Token::Other, &rest[1..]),
        b'<' => {
            let end = until(rest, |byte| *byte == b'>');
            let digits: Vec<u8> = rest[..end]
                .iter()
                .filter_map(|byte| char::from(*byte).to_digit(16))
                .filter_map(|digit| u8::try_from(digit).ok())
                .collect();
            let bytes = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0));
            (Token::Bytes(bytes.collect()), rest.get(end + 1..).unwrap_or_default())
        }
        b'[' => (Token::Open, rest),
        b']' => (Token::Close, rest),
        b'%' => (Token::Other, &rest[until(rest, |byte| matches!(byte, b'\n' | b'\r'))..]),
        b'(' => {
            (Token::Other, rest.get(until(rest, |byte| *byte == b')') + 1..).unwrap_or_default())
        }
        b'/' => (Token::Other, &rest[until(rest, is_delimiter)..]),
        _ => {
            let end = 1 + until(rest, is_delimiter);
            let word = &bytes[..end];
            let is_number = word.iter().all(|byte| byte.is_ascii_digit() || b"+-.".contains(byte));
            (if is_number { Token::Other } else { Token::Word(word) }, &bytes[end..])
        }
    })
}

fn is_delimiter(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || b"\0<>[]()/%{}".contains(byte)
}

fn number(code: &[u8]) -> u32 {
    code.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    if let [byte] = bytes {
        return char::from(*byte).to_string();
    }
    let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    char::decode_utf16(units.take(64)).map(|unit| unit.unwrap_or('\u{FFFD}')).collect()
}
