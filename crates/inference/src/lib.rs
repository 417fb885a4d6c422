//! Running a model, as traits: what can infer, what is asked of it, how it is stopped.
//!
//! # Layout
//! - [`provider`]: [`InferenceProvider`], what an engine must do.
//! - [`request`]: [`InferenceRequest`], [`InferenceResponse`], and the stream between them.
//! - [`generation`]: [`GenerationConfig`], how the next token is chosen and when to stop.
//! - [`format`](mod@format): [`ResponseFormat`], the form that a reply is held to.
//! - [`reasoning`]: [`ReasoningSplitter`], a reply's thinking told from its answer.
//! - [`cancellation`]: the one token type by which router and orchestrator stop an inference.
//! - [`routing`]: [`InferenceRouter`], which provider serves a stage.
//!
//! This crate does no I/O.

pub mod cancellation;
pub mod format;
pub mod generation;
pub mod provider;
pub mod reasoning;
pub mod request;
pub mod routing;
#[cfg(feature = "testing")]
#[allow(clippy::expect_used)]
pub mod testing;

pub use cancellation::InferenceCancellationToken;
pub use format::{FormatError, ResponseFormat};
pub use generation::{FinishReason, GenerationConfig};
pub use provider::{InferenceProvider, ModelCapability, ModelDescription};
pub use reasoning::{ReasoningSplitter, ReasoningTag, ReasoningTags, Split, ThinkingMode};
pub use request::{
    InferenceError, InferenceRequest, InferenceResponse, StreamEvent, StreamSink, Thinking,
};
pub use routing::{InferenceRouter, RouteRequest, RoutingError, SingleProvider};
