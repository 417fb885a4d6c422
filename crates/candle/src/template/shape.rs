//! What a template takes, and messages in that shape.

use std::rc::Rc;

use correx_context::{ChatMessage, EncodeError, Role};
use correx_jinja::{Error, Fuel, Text, Value};

use super::said;

/// How a template wants the system's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SystemRole {
    /// As a message of its own.
    #[default]
    Own,
    /// It refuses system messages, or leaves them out: they go in front of the first user message.
    Merged,
}

/// Whether the speakers must take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turns {
    /// Anybody may speak at any time.
    #[default]
    Free,
    /// Messages of one speaker in a row are made one.
    Alternating,
}

/// What a message's content is for the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContentForm {
    /// Text.
    #[default]
    Text,
    /// A list of parts, each `{"type": "text", "text": …}`.
    Parts,
}

/// What a template takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// The system's words.
    pub system: SystemRole,
    /// The order of speakers.
    pub turns: Turns,
    /// The content.
    pub content: ContentForm,
}

/// Between the words of one speaker that are made one message.
const BETWEEN: &str = "\n\n";

impl Shape {
    /// `messages` in this shape. What is added between them belongs to the part before.
    pub(super) fn apply(&self, messages: &[ChatMessage]) -> Vec<ChatMessage> {
        let mut shaped: Vec<ChatMessage> = messages.to_vec();
        if self.system == SystemRole::Merged {
            let mut system: Option<ChatMessage> = None;
            shaped.retain(|message| {
                if message.role != Role::System {
                    return true;
                }
                match &mut system {
                    Some(first) => join(first, message),
                    None => system = Some(message.clone()),
                }
                false
            });
            if let Some(mut system) = system {
                system.role = Role::User;
                match shaped.iter_mut().find(|message| message.role == Role::User) {
                    Some(first) => {
                        join(&mut system, first);
                        *first = system;
                    }
                    None => shaped.insert(0, system),
                }
            }
        }
        if self.turns == Turns::Alternating {
            shaped.dedup_by(|later, earlier| {
                let same = later.role == earlier.role;
                if same {
                    join(earlier, later);
                }
                same
            });
        }
        shaped
    }

    /// Shapes that are easier to take than this one.
    pub(super) fn easier(&self) -> impl Iterator<Item = Shape> + use<> {
        let merged = Shape { system: SystemRole::Merged, ..*self };
        let own = *self;
        [merged, Shape { turns: Turns::Alternating, ..merged }]
            .into_iter()
            .filter(move |shape| *shape != own)
    }

    /// `messages` as the template sees them. Origins are their parts, counted through.
    pub(super) fn values(&self, messages: &[ChatMessage], fuel: &Fuel) -> Result<Value, Error> {
        let name = |name: &str| Value::text(name, None);
        let mut values = Vec::with_capacity(messages.len());
        let mut number = 0;
        for message in messages {
            let mut content = Text::new();
            for part in &message.parts {
                content.push(&part.text, Some(number));
                number += 1;
            }
            let content = Value::Text(Rc::new(content));
            let content = match self.content {
                ContentForm::Text => content,
                ContentForm::Parts => {
                    let part = vec![(name("type"), name("text")), (name("text"), content)];
                    Value::list(vec![Value::dict(part, fuel)?], fuel)?
                }
            };
            let role = (name("role"), name(message.role.as_str()));
            values.push(Value::dict(vec![role, (name("content"), content)], fuel)?);
        }
        Value::list(values, fuel)
    }
}

/// Appends what `later` says to `earlier`.
fn join(earlier: &mut ChatMessage, later: &ChatMessage) {
    let Some(last) = earlier.parts.last_mut() else {
        earlier.parts.clone_from(&later.parts);
        return;
    };
    if later.parts.is_empty() {
        return;
    }
    last.text.push_str(BETWEEN);
    earlier.parts.extend_from_slice(&later.parts);
}

/// How many exchanges a talk has that a template must be able to show.
const EXCHANGES: usize = 24;

/// A talk as long as they get: many turns, each of some length.
fn long_talk() -> Vec<ChatMessage> {
    let mut talk = vec![said(Role::System, "Probe: the Rules.")];
    let turns = [Role::User, Role::Assistant].into_iter().cycle().take(2 * EXCHANGES + 1);
    for (number, role) in turns.enumerate() {
        let lines = (0..12).map(|line| format!("Probe {number}.{line}: aB cD, \u{e4}\u{1f642};\n"));
        talk.push(said(role, &lines.collect::<String>()));
    }
    talk
}

/// Finds out what a template takes by rendering a few conversations, of which `render` must lose
/// nothing; an error says why it takes none.
pub(super) fn probe(
    render: impl Fn(&Shape, &[ChatMessage]) -> Result<Text, EncodeError>,
) -> Result<Shape, String> {
    let (system, user, answer, second) = (
        said(Role::System, "probe zero"),
        said(Role::User, "probe one"),
        said(Role::Assistant, "probe two"),
        said(Role::User, "probe three"),
    );
    let shows = |shape: &Shape, talk: &[ChatMessage]| -> Result<(), String> {
        render(shape, talk).map(|_| ()).map_err(|error| match error {
            EncodeError::Template(reason) => reason,
            other => other.to_string(),
        })
    };
    let talk = [user.clone(), answer.clone(), second.clone()];
    let forms = [ContentForm::Text, ContentForm::Parts];
    let mut shape = Shape::default();
    let mut problem = None;
    let found = forms.into_iter().find(|form| {
        shape.content = *form;
        match shows(&shape, &talk) {
            Ok(()) => true,
            // What it says about text is what a person can make sense of.
            Err(error) => {
                problem.get_or_insert(error);
                false
            }
        }
    });
    if found.is_none() {
        return Err(problem.unwrap_or_default());
    }
    if shows(&shape, &[system, user.clone(), answer, second.clone()]).is_err() {
        shape.system = SystemRole::Merged;
    }
    if shows(&shape, &[user, second]).is_err() {
        shape.turns = Turns::Alternating;
    }
    shows(&shape, &long_talk()).map_err(|reason| format!("in a longer talk, {reason}"))?;
    Ok(shape)
}
