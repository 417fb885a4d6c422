//! Which headings a place of the text stands under.

use super::layout::Unit;

/// Letters of one heading that are shown.
const MAX_LETTERS: usize = 80;

/// The headings above a place, the outermost first.
#[derive(Default)]
pub(super) struct Path(Vec<(u8, String)>);

impl Path {
    /// Goes past a unit.
    pub(super) fn enter(&mut self, text: &str, unit: &Unit) {
        if let Some(level) = unit.heading {
            self.0.retain(|(above, _)| *above < level);
            self.0.push((level, title(&text[unit.range.clone()])));
        }
    }

    /// The headings above a piece that begins with this unit.
    pub(super) fn above(&self, first: Option<&Unit>) -> String {
        let level = first.and_then(|unit| unit.heading).unwrap_or(u8::MAX);
        let above = self.0.iter().filter(|(above, _)| *above < level);
        let shown = above.map(|(level, title)| format!("{} {title}", "#".repeat((*level).into())));
        shown.collect::<Vec<_>>().join(" > ")
    }
}

/// A heading's words, without its marks or its underline.
fn title(heading: &str) -> String {
    let line = heading.trim().lines().next().unwrap_or_default();
    let words = line.trim_start_matches('\u{FEFF}').trim_start_matches('#');
    let words = words.trim().trim_end_matches('#').trim_end();
    match words.char_indices().nth(MAX_LETTERS) {
        Some((end, _)) => format!("{}…", words[..end].trim_end()),
        None => words.to_owned(),
    }
}
