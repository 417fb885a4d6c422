//! `correx new`: a workflow of one's own, from an example.

use std::path::PathBuf;

use correx_infrastructure::examples;
use correx_protocol::{ErrorCode, ProtocolError};
use serde_json::json;

use crate::args::NewArgs;
use crate::outcome::{Ending, Outcome, input};
use crate::output::{Format, Output, safe};

/// Copies an example, or lists them all.
pub fn begin(args: NewArgs, output: &Output) -> Outcome {
    let Some(example) = args.example else { return list(output) };
    let place = args.place.unwrap_or_else(|| PathBuf::from(&example));
    let workflow = examples::copy(&example, &place)
        .map_err(|error| input(error.to_string()).kept("Everything that was there."))?;
    let shown = workflow.display().to_string();
    match output.format() {
        Format::Json => output.object(&json!({ "example": example, "workflow": shown })),
        Format::Text => {
            output.result(&safe(&shown));
            output.say("change it as you like; `correx workflow check` says what is wrong with it");
        }
    }
    Ok(Ending::Done)
}

fn list(output: &Output) -> Outcome {
    let all = examples::all().map_err(|errors| {
        ProtocolError::new(ErrorCode::Internal, format!("an example is broken: {errors}"))
    })?;
    for example in all {
        let name = example.example.unwrap_or_default();
        match output.format() {
            Format::Json => {
                output.object(&json!({ "name": name, "description": example.description }));
            }
            Format::Text => output.verbatim(&format!("{name:<14} {}", safe(&example.description))),
        }
    }
    Ok(Ending::Done)
}
