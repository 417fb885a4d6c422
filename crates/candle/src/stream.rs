//! Tokens to text while they come.

/// Turns the bytes of a reply into text, holding back a character until it is whole.
///
/// The pieces add up to what decoding all bytes at once gives: bytes that are no UTF-8 become
/// U+FFFD in the same places.
#[derive(Debug, Default)]
pub struct TextStream {
    held: Vec<u8>,
}

impl TextStream {
    /// A stream at its beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next token's bytes and returns the text that is certain now; it may be empty.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut start = 0;
        loop {
            match std::str::from_utf8(&self.held[start..]) {
                Ok(rest) => {
                    text.push_str(rest);
                    start = self.held.len();
                    break;
                }
                Err(error) => {
                    let valid = start + error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.held[start..valid]));
                    start = valid;
                    // Without a length the character may still become whole.
                    let Some(length) = error.error_len() else { break };
                    text.push(char::REPLACEMENT_CHARACTER);
                    start += length;
                }
            }
        }
        self.held.drain(..start);
        text
    }

    /// What is left when no more comes: U+FFFD when a character stayed incomplete.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// Ends a reply at a text, for formats in which no token does: what could become that text is held
/// back until it is certain.
#[derive(Debug, Default)]
pub(crate) struct StopText {
    text: Option<&'static str>,
    held: String,
    met: bool,
}

impl StopText {
    /// Waits for `text`; without one, everything passes at once.
    pub(crate) fn new(text: Option<&'static str>) -> Self {
        Self { text: text.filter(|text| !text.is_empty()), ..Self::default() }
    }

    /// Takes what comes next and returns what is certain now.
    pub(crate) fn push(&mut self, more: &str) -> String {
        if self.met {
            return String::new();
        }
        self.held.push_str(more);
        let Some(text) = self.text else { return std::mem::take(&mut self.held) };
        let certain = match self.held.find(text) {
            Some(place) => {
                self.met = true;
                place
            }
            None => (0..self.held.len())
                .filter(|place| self.held.is_char_boundary(*place))
                .find(|place| text.starts_with(&self.held[*place..]))
                .unwrap_or(self.held.len()),
        };
        let rest = self.held.split_off(certain);
        std::mem::replace(&mut self.held, if self.met { String::new() } else { rest })
    }

    /// What is left when no more comes.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Whether the text has come.
    pub(crate) fn is_met(&self) -> bool {
        self.met
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_emoji_in_four_tokens_comes_when_it_is_whole_and_punctuation_at_once() {
        let mut stream = TextStream::new();
        assert_eq!(stream.push(b"Hi!"), "Hi!");
        assert_eq!(stream.push(&[0xf0]), "");
        assert_eq!(stream.push(&[0x9f, 0x99]), "");
        assert_eq!(stream.push(&[0x82, b'.']), "🙂.");
        assert_eq!(stream.push(&[0xe4]), "");
        assert_eq!(stream.finish(), "\u{fffd}");
    }

    #[test]
    fn a_reply_ends_at_the_stop_text_and_nothing_of_it_is_seen() {
        let mut stop = StopText::new(Some("\nUser:"));
        let pieces = ["Hello\n", "\nUs", "e it.\nUser", ":", " more"];
        let seen: Vec<String> = pieces.iter().map(|piece| stop.push(piece)).collect();
        assert_eq!(seen, ["Hello", "\n", "\nUse it.", "", ""]);
        assert_eq!((stop.finish().as_str(), stop.is_met()), ("", true));
        let mut unmet = StopText::new(Some("\nUser:"));
        assert_eq!((unmet.push("é\nUser").as_str(), unmet.finish().as_str()), ("é", "\nUser"));
        assert_eq!(StopText::new(None).push("\nUser:"), "\nUser:");
    }

    proptest! {
        #[test]
        fn a_stop_text_is_found_however_it_comes(text in "[ab]{0,12}", cut in 1usize..4) {
            let mut stop = StopText::new(Some("aab"));
            let bytes = text.as_bytes();
            let mut seen: String = bytes
                .chunks(cut)
                .map(|piece| stop.push(std::str::from_utf8(piece).unwrap()))
                .collect();
            seen.push_str(&stop.finish());
            prop_assert_eq!(seen, text.split("aab").next().unwrap());
        }

        #[test]
        fn pieces_add_up_to_the_whole(
            parts in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..4),
                any::<String>().prop_map(String::into_bytes),
            ], 0..20),
            cut in 1usize..4,
        ) {
            let all = parts.concat();
            let mut stream = TextStream::new();
            let mut text: String = all.chunks(cut).map(|piece| stream.push(piece)).collect();
            text.push_str(&stream.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&all).into_owned());
        }

        #[test]
        fn valid_text_is_late_by_less_than_a_character(text in any::<String>()) {
            let mut stream = TextStream::new();
            let mut seen = String::new();
            for (place, byte) in text.bytes().enumerate() {
                seen.push_str(&stream.push(&[byte]));
                let whole = (0..=place + 1).rev().find(|end| text.is_char_boundary(*end));
                prop_assert_eq!(&seen[..], &text[..whole.unwrap()]);
            }
        }
    }
}
