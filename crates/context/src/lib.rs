//! What a model is shown, and how it is made to fit.
//!
//! # Layout
//! - [`budget`]: [`TokenBudget`], the limit of one prompt.
//! - [`prompt`]: messages with the provenance of each part, and the [`PromptEncoder`] that turns
//!   them into token ids exactly as the decoder will be fed.
//! - [`pack`]: [`ContextPack`], the layered entries chosen for one inference.
//! - [`packing`]: the algorithm that drops the oldest first until the rendered prompt fits.
//! - [`steering`]: [`SteeringNote`], a person's instruction to the workflow.
//!
//! This crate does no I/O.

pub mod budget;
pub mod pack;
pub mod packing;
pub mod prompt;
pub mod steering;
#[cfg(feature = "testing")]
#[allow(clippy::expect_used)]
pub mod testing;

pub use budget::TokenBudget;
pub use pack::{
    CompressionMetadata, CompressionStrategy, ContextEntry, ContextEntryId, ContextLayer,
    ContextPack, ContextPackId, DropReason, DroppedEntry, SourceType,
};
pub use packing::{Candidate, PackError, PackRequest, pack};
pub use prompt::{
    ChatMessage, EncodeError, EncodedPrompt, MessagePart, PromptEncoder, ReplyStart, Role,
    TokenCounter,
};
pub use steering::SteeringNote;
