//! What a stage's model call is shown.
//!
//! One system text and one user turn: the task with its inputs and artifacts, why the attempt
//! before was refused, and last the person's steering notes. Everything is L0: a stage either
//! sees all of it or fails before the model is called.

use correx_context::{
    Candidate, CompressionStrategy, ContextLayer, ContextPack, ContextPackId, PackError,
    PackRequest, PromptEncoder, Role, SourceType, TokenBudget, pack,
};
use correx_events::{NoteId, SessionId, StageId};
use thiserror::Error;

use crate::{GenerateStep, Origin, RenderError, Segment, TemplateValues};

/// Small models follow a request, and talk about a complaint: so it is put as a request.
const BEFORE_REFUSAL: &str = "\n\nImportant: ";
const BEFORE_NOTES: &str = "\n\nInstructions from the person, to be followed above all else:\n- ";
const BETWEEN_NOTES: &str = "\n- ";

/// Everything that decides what an attempt is shown.
#[derive(Debug, Clone)]
pub struct AttemptContext<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The stage.
    pub stage: &'a StageId,
    /// The attempt.
    pub attempt: u32,
    /// What the stage does.
    pub step: &'a GenerateStep,
    /// The inputs and the artifacts that are there.
    pub values: &'a TemplateValues,
    /// Why the last refused attempt was refused, and how many were.
    pub refusal: Option<(&'a str, usize)>,
    /// The notes that act on the stage, oldest first.
    pub notes: Vec<(NoteId, &'a str)>,
}

/// How much an attempt may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptLimits {
    /// The person's limit on a stage's prompt, in tokens.
    pub token_budget: Option<usize>,
    /// The model's window, in tokens.
    pub context_window: usize,
    /// Tokens kept free for the reply.
    pub max_tokens: usize,
}

impl AttemptLimits {
    /// The most tokens that the prompt may have.
    pub fn prompt_limit(&self) -> usize {
        self.budget().limit
    }

    fn budget(&self) -> TokenBudget {
        let limit = self.token_budget.unwrap_or(usize::MAX);
        TokenBudget::for_window(limit, self.context_window, self.max_tokens)
    }
}

/// Why an attempt's prompt could not be made. Found before the model is called.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StageContextError {
    /// The template failed.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// It does not fit.
    #[error(
        "the prompt needs {needed} tokens and may have {limit} (the model's window holds {window}, {reply} are kept for the answer): {over} too many. The largest part is {largest} with {largest_tokens} tokens. Shorten it, lower max_tokens, or use a model with a larger window"
    )]
    TooLarge {
        /// Tokens of the prompt.
        needed: usize,
        /// What it may have.
        limit: usize,
        /// `needed` less `limit`.
        over: usize,
        /// The model's window.
        window: usize,
        /// Tokens kept for the answer.
        reply: usize,
        /// The largest part.
        largest: String,
        /// Its tokens.
        largest_tokens: usize,
    },
    /// The prompt could not be encoded.
    #[error("{0}")]
    Encode(String),
}

/// Builds the pack for one attempt. Works as long as encoding the whole prompt takes.
pub fn assemble(
    attempt: &AttemptContext<'_>,
    limits: AttemptLimits,
    encoder: &dyn PromptEncoder,
) -> Result<ContextPack, StageContextError> {
    let mut candidates = Vec::new();
    if let Some(system) = &attempt.step.system {
        candidates.push(entry(SourceType::SystemPrompt, Role::System, system.clone(), ""));
    }
    let segments = trimmed(attempt.step.prompt.render(attempt.values)?);
    if segments.is_empty() {
        return Err(RenderError("it rendered to an empty text".to_owned()).into());
    }
    for segment in segments {
        let source = match segment.origin {
            Origin::Task => SourceType::Task,
            Origin::Input(name) => SourceType::Input(name),
            Origin::Artifact(name) => SourceType::Artifact(name),
            Origin::Piece => SourceType::Piece,
        };
        candidates.push(entry(source, Role::User, segment.text, ""));
    }
    if let Some((message, times)) = attempt.refusal {
        // A greedy model answers an equal prompt equally: the count makes it another prompt.
        let content = match times {
            0 | 1 => message.to_owned(),
            times => format!("{message} (asked {times} times)"),
        };
        candidates.push(entry(SourceType::Refusal, Role::User, content, BEFORE_REFUSAL));
    }
    for (index, (note, content)) in attempt.notes.iter().enumerate() {
        let separator = if index == 0 { BEFORE_NOTES } else { BETWEEN_NOTES };
        let source = SourceType::SteeringNote(note.clone());
        candidates.push(entry(source, Role::User, (*content).to_owned(), separator));
    }
    let request = PackRequest {
        id: ContextPackId(format!("{}-{}-{}", attempt.session, attempt.stage, attempt.attempt)),
        session_id: Some(attempt.session.clone()),
        stage_id: Some(attempt.stage.clone()),
        candidates,
        already_dropped: Vec::new(),
        budget: limits.budget(),
        strategies: vec![CompressionStrategy::L0Immutable, CompressionStrategy::SteeringNote],
    };
    pack(request, encoder).map_err(|error| match error {
        PackError::TooLarge { needed, limit, largest, largest_tokens } => {
            StageContextError::TooLarge {
                needed,
                limit,
                over: needed.saturating_sub(limit),
                window: limits.context_window,
                reply: limits.max_tokens,
                largest: in_words(&largest),
                largest_tokens,
            }
        }
        PackError::Encode(error) => StageContextError::Encode(error.to_string()),
    })
}

fn entry(source: SourceType, role: Role, content: String, separator: &'static str) -> Candidate {
    let layer = ContextLayer::L0;
    Candidate { layer, source, role, content, separator, drop_group: None }
}

/// Without the template's own white space at both ends.
fn trimmed(mut segments: Vec<Segment>) -> Vec<Segment> {
    if let Some(first) = segments.first_mut().filter(|first| first.origin == Origin::Task) {
        first.text = first.text.trim_start().to_owned();
    }
    if let Some(last) = segments.last_mut().filter(|last| last.origin == Origin::Task) {
        last.text = last.text.trim_end().to_owned();
    }
    segments.retain(|segment| !segment.text.is_empty());
    segments
}

fn in_words(source: &SourceType) -> String {
    match source {
        SourceType::SystemPrompt => "the stage's system text".to_owned(),
        SourceType::Input(name) => format!("the input \"{name}\""),
        SourceType::Artifact(name) => format!("the artifact \"{name}\""),
        SourceType::Piece => "the piece".to_owned(),
        SourceType::SteeringNote(_) => "a steering note".to_owned(),
        SourceType::Refusal => "what was said about the last attempt".to_owned(),
        _ => "the stage's own prompt".to_owned(),
    }
}
