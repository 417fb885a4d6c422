//! From the domain to what front ends show. Pure; nothing of the domain but its ids gets through.

mod context;
mod run;
mod turn;
mod workflow;

pub use context::{context_of_attempt, context_of_draft, context_of_pack, context_of_reply};
pub use run::{Planned, note_scope, run, summary};
pub use turn::{mode, turn};
pub use workflow::workflow;

use correx_inference::ModelDescription;
use correx_protocol::{ModelState, ModelView};

/// A count as the wire has it. What does not fit is shown as the largest number there is.
pub fn count<N: TryInto<u32>>(number: N) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// A model that is ready.
pub fn model(description: &ModelDescription) -> ModelView {
    ModelView {
        state: ModelState::Ready,
        name: description.name.clone(),
        location: description.location.clone(),
        architecture: Some(description.architecture.clone()),
        quantization: Some(description.quantization.clone()),
        device: Some(description.device.clone()),
        context_window: Some(count(description.context_window)),
        parameters: Some(description.parameters),
        file_bytes: Some(description.file_bytes),
        sha256: description.sha256.clone(),
        notice: description.notice.clone(),
        memory: None,
        next: None,
    }
}

/// A model of which only its name is known yet.
pub fn absent_model(state: ModelState, name: String) -> ModelView {
    ModelView {
        state,
        name,
        location: String::new(),
        architecture: None,
        quantization: None,
        device: None,
        context_window: None,
        parameters: None,
        file_bytes: None,
        sha256: None,
        notice: None,
        memory: None,
        next: None,
    }
}
