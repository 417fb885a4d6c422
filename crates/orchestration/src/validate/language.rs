//! Which language a text is in, where that is sure. Two detectors are asked: whatlang, which knows
//! many languages and says when it is sure, and whichlang, which is better at short texts in the
//! sixteen that it knows. docs/workflows.md has the measured accuracy.

use std::borrow::Cow;
use std::str::FromStr;

use thiserror::Error;
use whatlang::Lang;

/// Letters that a text needs to be judged at all.
const FEW_LETTERS: usize = 25;
/// Letters from which on two detectors that deny a language are believed, though neither is sure.
const MANY_LETTERS: usize = 50;
/// What is looked at, in bytes: more makes nobody surer.
const MAX_BYTES: usize = 16 * 1024;

/// A language that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language(Lang);

/// No language that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no language that can be told; write its code, such as \"de\"")]
pub struct UnknownLanguage;

/// The two-letter codes of ISO 639-1 (and `nb`), and the three-letter codes that whatlang has.
const CODES: &[(&str, Lang)] = &[
    ("af", Lang::Afr),
    ("ar", Lang::Ara),
    ("az", Lang::Aze),
    ("be", Lang::Bel),
    ("bg", Lang::Bul),
    ("bn", Lang::Ben),
    ("ca", Lang::Cat),
    ("cs", Lang::Ces),
    ("da", Lang::Dan),
    ("de", Lang::Deu),
    ("el", Lang::Ell),
    ("en", Lang::Eng),
    ("eo", Lang::Epo),
    ("es", Lang::Spa),
    ("et", Lang::Est),
    ("fa", Lang::Pes),
    ("fi", Lang::Fin),
    ("fr", Lang::Fra),
    ("gu", Lang::Guj),
    ("he", Lang::Heb),
    ("hi", Lang::Hin),
    ("hr", Lang::Hrv),
    ("hu", Lang::Hun),
    ("hy", Lang::Hye),
    ("id", Lang::Ind),
    ("it", Lang::Ita),
    ("ja", Lang::Jpn),
    ("ka", Lang::Kat),
    ("kn", Lang::Kan),
    ("ko", Lang::Kor),
    ("lt", Lang::Lit),
    ("lv", Lang::Lav),
    ("mk", Lang::Mkd),
    ("ml", Lang::Mal),
    ("mr", Lang::Mar),
    ("nb", Lang::Nob),
    ("nl", Lang::Nld),
    ("no", Lang::Nob),
    ("pa", Lang::Pan),
    ("pl", Lang::Pol),
    ("pt", Lang::Por),
    ("ro", Lang::Ron),
    ("ru", Lang::Rus),
    ("sk", Lang::Slk),
    ("sl", Lang::Slv),
    ("sr", Lang::Srp),
    ("sv", Lang::Swe),
    ("ta", Lang::Tam),
    ("te", Lang::Tel),
    ("th", Lang::Tha),
    ("tl", Lang::Tgl),
    ("tr", Lang::Tur),
    ("uk", Lang::Ukr),
    ("ur", Lang::Urd),
    ("uz", Lang::Uzb),
    ("vi", Lang::Vie),
    ("zh", Lang::Cmn),
];

/// Languages that a few sentences do not tell apart.
const ALIKE: &[&[Lang]] = &[
    &[Lang::Dan, Lang::Nob],
    &[Lang::Hrv, Lang::Srp],
    &[Lang::Nld, Lang::Afr],
    &[Lang::Ind, Lang::Jav],
];

impl FromStr for Language {
    type Err = UnknownLanguage;

    /// A code such as `de`, `deu` or `de-AT`.
    fn from_str(code: &str) -> Result<Self, UnknownLanguage> {
        let code = code.trim().to_lowercase();
        let code = code.split(['-', '_']).next().unwrap_or_default();
        let short = CODES.iter().find(|(known, _)| *known == code).map(|(_, lang)| *lang);
        short.or_else(|| Lang::from_code(code)).map(Self).ok_or(UnknownLanguage)
    }
}

impl Language {
    /// The codes of two letters, for suggestions.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        CODES.iter().map(|(code, _)| *code)
    }

    /// Its name in English.
    pub fn name(&self) -> &'static str {
        match self.0 {
            Lang::Nob => "Norwegian",
            Lang::Cmn => "Chinese",
            Lang::Pes => "Persian",
            lang => lang.eng_name(),
        }
    }

    /// Whether `text` is surely in another language. A text that is too short or too unclear to
    /// tell is not.
    pub fn contradicts(&self, text: &str) -> bool {
        let text = prose(text);
        let letters = letters(&text);
        if letters < FEW_LETTERS {
            return false;
        }
        let Some(found) = whatlang::detect(&text) else { return false };
        if self.is_like(found.lang()) {
            return false;
        }
        let denied = || {
            let other = whichlang::detect_language(&text).three_letter_code();
            knows(self.0) && other != self.0.code()
        };
        found.is_reliable() || (letters >= MANY_LETTERS && denied())
    }

    fn is_like(&self, found: Lang) -> bool {
        found == self.0
            || ALIKE.iter().any(|alike| alike.contains(&found) && alike.contains(&self.0))
    }
}

/// Whether whichlang knows the language.
fn knows(lang: Lang) -> bool {
    use Lang::*;
    matches!(
        lang,
        Ara | Cmn
            | Deu
            | Eng
            | Fra
            | Hin
            | Ita
            | Jpn
            | Kor
            | Nld
            | Por
            | Rus
            | Spa
            | Swe
            | Tur
            | Vie
    )
}

/// The text without code and addresses, which are in no language, and not more of it than helps.
fn prose(text: &str) -> Cow<'_, str> {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    if !text.contains(['`', '~']) && !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= is_fence;
        !fenced && !is_fence
    });
    let words = lines.flat_map(|line| line.split('`').step_by(2)).flat_map(str::split_whitespace);
    Cow::Owned(words.filter(|word| !word.contains("://")).collect::<Vec<_>>().join(" "))
}

/// Letters, where one of a script whose words have few counts for three.
fn letters(text: &str) -> usize {
    let weight = |letter: char| match letter {
        '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' => 3,
        letter if letter.is_alphabetic() => 1,
        _ => 0,
    };
    text.chars().map(weight).sum()
}
