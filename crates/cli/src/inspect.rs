//! `correx model inspect`: what a model file says about itself, and whether it can be run here.

use std::path::Path;

use correx_candle::support;
use correx_gguf::{Gguf, ModelInfo};
use serde::Serialize;

use crate::model::failed;
use crate::outcome::{Ending, Outcome};
use crate::output::{Format, Output};

/// What scripts get. Fields are only ever added.
#[derive(Debug, Serialize)]
struct Inspected {
    /// The model's files, in their order.
    paths: Vec<String>,
    #[serde(flatten)]
    info: ModelInfo,
    /// Whether it can be run here.
    runs: bool,
    /// Why not.
    reasons: Vec<String>,
}

/// Looks at the file at `path`. A model that cannot be run is no failure: that was the question.
pub fn inspect(path: &Path, output: &Output) -> Outcome {
    let found = Inspected::of(&correx_gguf::inspect(path).map_err(failed)?);
    match output.format() {
        Format::Json => output.object(&found),
        Format::Text => output.result(&found.told()),
    }
    Ok(Ending::Done)
}

impl Inspected {
    fn of(gguf: &Gguf) -> Self {
        let reasons = support(gguf).err().unwrap_or_default();
        Self {
            paths: gguf.parts.iter().map(|part| part.path.display().to_string()).collect(),
            info: ModelInfo::of(gguf),
            runs: reasons.is_empty(),
            reasons: reasons.iter().map(ToString::to_string).collect(),
        }
    }

    /// In rows, for people.
    fn told(&self) -> String {
        let mut rows: Vec<(&str, String)> = Vec::new();
        for (number, path) in self.paths.iter().enumerate() {
            rows.push((if number == 0 { "file" } else { "" }, path.clone()));
        }
        rows.extend(self.info.rows());
        rows.push(("runs here", if self.runs { "yes" } else { "no" }.to_owned()));
        rows.extend(self.reasons.iter().map(|reason| ("", format!("- {reason}"))));
        let rows = rows.into_iter().map(|(name, value)| format!("{name:<14}{value}"));
        rows.collect::<Vec<String>>().join("\n")
    }
}
