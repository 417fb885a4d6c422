//! Whether a rendering says everything that was said.
//!
//! A template is a program of somebody else's: it may cut what a message says, leave messages out
//! (also only once a talk is long), repeat or reorder them. Every character of a rendering tells
//! where it comes from, so that none of this goes unnoticed.

use correx_context::{ChatMessage, Role};
use correx_inference::ReasoningTags;
use correx_jinja::Text;

/// What is wrong with `rendered`, in which origins are the parts of `said`, counted through. All
/// content of every message must be there once, unchanged, in order; white space around it may be
/// gone, so may the thinking in front of an answer, which `tags` enclose. The system's words may
/// stand anywhere.
pub(super) fn problem(
    rendered: &Text,
    said: &[ChatMessage],
    tags: Option<ReasoningTags>,
) -> Option<String> {
    let parts = said.iter().enumerate();
    let owners: Vec<usize> =
        parts.flat_map(|(place, message)| message.parts.iter().map(move |_| place)).collect();
    let mut shown = vec![String::new(); said.len()];
    let mut last = 0;
    for (run, origin) in rendered.runs() {
        let Some(&place) = origin.and_then(|part| owners.get(part)) else { continue };
        let (Some(text), Some(message), Some(shown)) =
            (rendered.as_str().get(run), said.get(place), shown.get_mut(place))
        else {
            continue;
        };
        shown.push_str(text);
        if message.role == Role::System || trimmed(text).is_empty() {
            continue;
        }
        if place < last {
            return Some("it changes the order of the messages, or repeats one".to_owned());
        }
        last = place;
    }
    let changed = |(message, shown): &(&ChatMessage, &String)| {
        let content = message.content();
        let answered = message.role == Role::Assistant
            && tags.is_some_and(|tags| is_the_answer(shown, &content, tags));
        trimmed(shown) != trimmed(&content) && !answered
    };
    let (message, shown) = said.iter().zip(&shown).find(changed)?;
    let role = message.role.as_str();
    Some(if shown.len() < message.content().len() {
        format!("it loses what the {role} says")
    } else {
        format!("it changes what the {role} says")
    })
}

/// Whether `shown` is `content` with less of the thinking.
fn is_the_answer(shown: &str, content: &str, tags: ReasoningTags) -> bool {
    let Some((thinking, answer)) = content.rsplit_once(tags.close) else { return false };
    let Some(rest) = trimmed(shown).strip_suffix(trimmed(answer)) else { return false };
    let mut thinking = thinking.chars();
    rest.chars().filter(|c| !is_white(*c)).all(|shown| thinking.any(|thought| thought == shown))
}

/// White space as Python strips it.
fn is_white(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(is_white)
}
