//! What a document's text refers to: styles, numberings, links.

use std::collections::BTreeMap;

use super::xml::{Step, walk};

/// Styles based on styles that are followed.
const MAX_BASES: usize = 20;

/// Which styles are headings.
#[derive(Default)]
pub(super) struct Styles(BTreeMap<String, Style>);

#[derive(Default)]
struct Style {
    level: Option<usize>,
    base: Option<String>,
    /// The numbering that its paragraphs have.
    numbering: Option<String>,
}

impl Styles {
    /// A part that is damaged gives what stands before the damage.
    pub(super) fn read(text: &str) -> Self {
        let mut styles = Self::default();
        let mut current: Option<(String, Style)> = None;
        let _ = walk(text, |step| {
            match step {
                Step::Start("style", attributes) => {
                    let id = attributes.get("styleId").unwrap_or_default().to_owned();
                    current = Some((id, Style::default()));
                }
                Step::End("style") => styles.0.extend(current.take()),
                Step::Start(name, attributes) => {
                    let (Some((_, style)), Some(value)) = (&mut current, attributes.get("val"))
                    else {
                        return Ok(());
                    };
                    match name {
                        "name" => style.level = style.level.or(level_of_name(value)),
                        "outlineLvl" => style.level = level(value),
                        "basedOn" => style.base = Some(value.to_owned()),
                        "numId" => style.numbering = Some(value.to_owned()),
                        _ => {}
                    }
                }
                _ => {}
            }
            Ok(())
        });
        styles
    }

    /// The level of the headings that have this style, from 1.
    pub(super) fn level(&self, id: &str) -> Option<usize> {
        self.up(id).find_map(|style| style.level)
    }

    /// The numbering that this style brings.
    pub(super) fn numbering(&self, id: &str) -> Option<&str> {
        self.up(id).find_map(|style| style.numbering.as_deref())
    }

    fn up(&self, id: &str) -> impl Iterator<Item = &Style> {
        let next = |style: &&Style| style.base.as_ref().and_then(|base| self.0.get(base));
        std::iter::successors(self.0.get(id), next).take(MAX_BASES)
    }
}

/// An outline level as files count it, from 0; 9 is body text.
pub(super) fn level(value: &str) -> Option<usize> {
    value.parse::<usize>().ok().filter(|level| *level < 9).map(|level| (level + 1).min(6))
}

fn level_of_name(name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    match name.strip_prefix("heading ") {
        Some(number) => number.parse().ok().filter(|level| *level > 0).map(|l: usize| l.min(6)),
        None => (name == "title").then_some(1),
    }
}

/// Which numberings count and which only mark.
#[derive(Default)]
pub(super) struct Numbering {
    /// Abstract numbering and level to whether it counts.
    counts: BTreeMap<(String, usize), bool>,
    abstract_of: BTreeMap<String, String>,
}

impl Numbering {
    pub(super) fn read(text: &str) -> Self {
        let mut numbering = Self::default();
        let (mut kind, mut level, mut number) = (None::<String>, 0, None::<String>);
        let _ = walk(text, |step| {
            match step {
                Step::Start("abstractNum", attributes) => {
                    kind = attributes.get("abstractNumId").map(str::to_owned);
                }
                Step::End("abstractNum") => kind = None,
                Step::Start("lvl", attributes) => {
                    level = attributes.get("ilvl").and_then(|l| l.parse().ok()).unwrap_or(0);
                }
                Step::Start("numFmt", attributes) => {
                    if let Some(kind) = &kind {
                        let counts = !matches!(attributes.get("val"), Some("bullet" | "none"));
                        numbering.counts.insert((kind.clone(), level), counts);
                    }
                }
                Step::Start("num", attributes) => {
                    number = attributes.get("numId").map(str::to_owned);
                }
                Step::End("num") => number = None,
                Step::Start("abstractNumId", attributes) => {
                    if let (Some(number), Some(kind)) = (&number, attributes.get("val")) {
                        numbering.abstract_of.insert(number.clone(), kind.to_owned());
                    }
                }
                _ => {}
            }
            Ok(())
        });
        numbering
    }

    pub(super) fn counts(&self, number: &str, level: usize) -> bool {
        let kind = self.abstract_of.get(number);
        kind.and_then(|kind| self.counts.get(&(kind.clone(), level))).copied().unwrap_or(false)
    }
}

/// What a part refers to by id.
#[derive(Default)]
pub(super) struct Relations {
    targets: BTreeMap<String, String>,
    kinds: BTreeMap<String, String>,
}

impl Relations {
    pub(super) fn read(text: &str) -> Self {
        let mut relations = Self::default();
        let _ = walk(text, |step| {
            if let Step::Start("Relationship", attributes) = step
                && let Some(target) = attributes.get("Target")
            {
                if let Some(id) = attributes.get("Id") {
                    relations.targets.insert(id.to_owned(), target.to_owned());
                }
                if let Some(kind) = attributes.get("Type") {
                    relations.kinds.insert(kind.to_owned(), target.to_owned());
                }
            }
            Ok(())
        });
        relations
    }

    pub(super) fn target(&self, id: &str) -> Option<&str> {
        self.targets.get(id).map(String::as_str)
    }

    pub(super) fn of_kind(&self, ending: &str) -> Option<&str> {
        let found = self.kinds.iter().find(|(kind, _)| kind.ends_with(ending));
        found.map(|(_, target)| target.as_str())
    }
}
