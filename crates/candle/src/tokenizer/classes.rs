//! What kind of character a character is, as the rules that split text see it.
//!
//! The categories are those of Unicode 15.1: later additions count as unassigned, because the
//! peer that our ids are compared with splits them so.

use std::sync::LazyLock;

use regex_syntax::hir::HirKind;

/// The byte that a character without a class of its own is seen as.
pub(super) const OTHER: u8 = 0xd0;
/// Numbers beyond ASCII.
pub(super) const NUMBER: u8 = 0xd1;
/// Letters beyond ASCII.
pub(super) const LETTER: u8 = 0xd2;
const PUNCTUATION: u8 = 0xd3;
const MARK: u8 = 0xd4;
const SYMBOL: u8 = 0xd5;
/// White space beyond ASCII: it is seen as an ASCII one that occurs in no pattern by itself.
pub(super) const BLANK: u8 = 0x0b;

/// The newest version of Unicode whose characters count.
const VERSION: &str = "15.1";

const PAGE: usize = 256;

/// Classes of all characters, in pages of which most are equal.
struct Table {
    pages: Vec<[u8; PAGE]>,
    index: Vec<u16>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut all = vec![OTHER; 0x11_0000];
    let categories = [("L", LETTER), ("N", NUMBER), ("P", PUNCTUATION), ("M", MARK), ("S", SYMBOL)];
    for (category, class) in categories {
        fill(&mut all, &format!(r"[\p{{{category}}}&&\p{{Age={VERSION}}}]"), class);
    }
    fill(&mut all, r"\p{White_Space}", BLANK);
    let mut table = Table { pages: Vec::new(), index: Vec::new() };
    for page in all.chunks_exact(PAGE) {
        let known = table.pages.iter().position(|known| known == page).unwrap_or_else(|| {
            let mut new = [OTHER; PAGE];
            new.copy_from_slice(page);
            table.pages.push(new);
            table.pages.len() - 1
        });
        table.index.push(known as u16);
    }
    table
});

/// Writes `class` for every character of the set `pattern`.
fn fill(all: &mut [u8], pattern: &str, class: u8) {
    let parsed = regex_syntax::parse(pattern);
    debug_assert!(parsed.is_ok(), "{pattern}");
    let Ok(parsed) = parsed else { return };
    if let HirKind::Class(regex_syntax::hir::Class::Unicode(set)) = parsed.kind() {
        for range in set.ranges() {
            all[range.start() as usize..=range.end() as usize].fill(class);
        }
    }
}

/// The byte that `character` is seen as: itself in ASCII, its class beyond.
pub(super) fn class(character: char) -> u8 {
    if character.is_ascii() {
        return character as u8;
    }
    let code = character as usize;
    let table = &*TABLE;
    table.pages[usize::from(table.index[code / PAGE])][code % PAGE]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_the_classes_of_unicode_15_1() {
        let expected = [
            ('a', b'a'),
            ('\u{7f}', 0x7f),
            ('é', LETTER),
            ('世', LETTER),
            ('\u{2ebf0}', LETTER),
            ('٣', NUMBER),
            ('½', NUMBER),
            ('Ⅷ', NUMBER),
            ('—', PUNCTUATION),
            ('\u{301}', MARK),
            ('€', SYMBOL),
            ('🙂', SYMBOL),
            ('\u{85}', BLANK),
            ('\u{a0}', BLANK),
            ('\u{3000}', BLANK),
            ('\u{200d}', OTHER),
            ('\u{e000}', OTHER),
            ('\u{ffff}', OTHER),
            ('\u{378}', OTHER),
            // Letters since Unicode 16.
            ('\u{1c89}', OTHER),
            ('\u{105c0}', OTHER),
        ];
        for (character, expected) in expected {
            assert_eq!(class(character), expected, "U+{:04X}", character as u32);
        }
        let count = |wanted: u8| {
            (0..0x11_0000).filter_map(char::from_u32).filter(|c| class(*c) == wanted).count()
        };
        assert_eq!((count(LETTER), count(NUMBER)), (136_674, 1_821));
        assert_eq!((count(PUNCTUATION), count(MARK), count(SYMBOL)), (819, 2_450, 7_766));
    }
}
