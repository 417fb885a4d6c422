//! A run, told while it goes: bars where a person sees them, else lines.

use std::collections::HashMap;

use correx_events::StageId;
use correx_protocol::{
    ModelState, ModelView, RunView, ServerMessage, StageStatus, StageView, WaitReason,
    WorkflowStatus,
};
use indicatif::ProgressBar;

use crate::output::{Look, Output, safe};

/// Tells what changes about one run.
pub struct RunDisplay {
    output: Output,
    shown: HashMap<StageId, Shown>,
    notes: usize,
    uses: usize,
    status: Option<(WorkflowStatus, Option<WaitReason>)>,
}

#[derive(Default)]
struct Shown {
    attempt: u32,
    drafts: usize,
    status: Option<StageStatus>,
    bar: Option<ProgressBar>,
}

impl RunDisplay {
    /// Nothing is told yet.
    pub fn new(output: Output) -> Self {
        Self { output, shown: HashMap::new(), notes: 0, uses: 0, status: None }
    }

    /// Tells how `run` differs from what was told.
    pub fn run(&mut self, run: &RunView) {
        for stage in &run.stages {
            self.stage(stage);
        }
        self.notes(run);
        let status = (run.status, run.waiting_for);
        if self.status.replace(status) != Some(status) {
            self.status(run);
        }
    }

    fn notes(&mut self, run: &RunView) {
        for note in run.notes.iter().skip(self.notes) {
            let content = safe(&note.content);
            self.output.say(&self.output.paint(&format!("✎ note kept: “{content}”"), Look::Amber));
        }
        self.notes = run.notes.len();
        let uses: Vec<_> = run
            .notes
            .iter()
            .flat_map(|note| note.applied.iter().map(move |used| (note, used)))
            .collect();
        if uses.len() > self.uses {
            // Uses are listed by note, not by time: tell those of the attempts that run now.
            for (note, used) in uses.iter().filter(|(_, used)| {
                run.stages.iter().any(|stage| {
                    stage.stage_id == used.stage_id
                        && stage.attempt == used.attempt
                        && stage.status == StageStatus::Running
                })
            }) {
                let (title, attempt) = (title(run, &used.stage_id), used.attempt);
                let content = safe(&note.content);
                let line = format!("✎ applied to {title}, attempt {attempt}: “{content}”");
                self.output.say(&self.output.paint(&line, Look::Amber));
            }
        }
        self.uses = uses.len();
    }

    fn stage(&mut self, stage: &StageView) {
        let shown = self.shown.entry(stage.stage_id.clone()).or_default();
        let title = safe(&stage.title);
        for draft in stage.drafts.iter().skip(shown.drafts) {
            let line = format!("↺ {title}, attempt {}: {}", draft.attempt, safe(&draft.reason));
            self.output.say(&line);
        }
        shown.drafts = stage.drafts.len();
        if stage.attempt > shown.attempt && stage.status == StageStatus::Running {
            shown.attempt = stage.attempt;
            if !self.output.has_bars() {
                self.output.say(&match stage.attempt {
                    1 => format!("→ {title}"),
                    attempt => format!("→ {title}, attempt {attempt}"),
                });
            }
        }
        if shown.status.replace(stage.status) == Some(stage.status) {
            return;
        }
        if stage.status != StageStatus::Running
            && let Some(bar) = shown.bar.take()
        {
            bar.finish_and_clear();
        }
        match stage.status {
            StageStatus::Done => self.output.say(&format!(
                "{} {title}{}",
                self.output.paint("✓", Look::Good),
                self.output.paint(&figures(stage), Look::Dim),
            )),
            StageStatus::Failed => {
                let why = stage.error.as_deref().map(safe).unwrap_or_default();
                self.output.say(&format!("{} {title}: {why}", self.output.paint("✗", Look::Bad)));
            }
            StageStatus::Cancelled => self.output.say(&format!("✗ {title}: cancelled")),
            StageStatus::Skipped => self.output.say(&format!("– {title}: passed over")),
            StageStatus::Pending | StageStatus::Running | StageStatus::Waiting => {}
        }
    }

    fn status(&self, run: &RunView) {
        match (run.status, run.waiting_for) {
            (WorkflowStatus::Paused, Some(WaitReason::Person)) => {
                self.output.say("paused; the stage that was running begins again on resume");
            }
            (WorkflowStatus::Paused, Some(WaitReason::Interrupted)) => {
                self.output.say("interrupted: the process that ran it has ended");
            }
            _ => {}
        }
    }

    /// Tells how far a stage is.
    pub fn progress(&mut self, message: &ServerMessage, run: Option<&RunView>) {
        let ServerMessage::StageProgress {
            stage_id,
            attempt,
            prompt_done,
            prompt_total,
            tokens,
            max_tokens,
            thinking_tokens,
            ..
        } = message
        else {
            return;
        };
        if !self.output.has_bars() {
            return;
        }
        let title = run.map_or_else(|| stage_id.to_string(), |run| title(run, stage_id));
        let shown = self.shown.entry(stage_id.clone()).or_default();
        if shown.status.is_some_and(|status| status != StageStatus::Running) {
            return;
        }
        let bar = shown.bar.get_or_insert_with(|| self.output.bar(1, ""));
        let mut again = if *attempt > 1 { format!(" ({attempt})") } else { String::new() };
        let stage = run.and_then(|run| run.stages.iter().find(|stage| stage.stage_id == *stage_id));
        if let Some(pieces) = stage.and_then(|stage| stage.pieces)
            && pieces.done < pieces.total
        {
            again.push_str(&format!(" piece {} of {}", pieces.done + 1, pieces.total));
        }
        let (what, done, total) = if *tokens == 0 {
            ("reads", prompt_done, prompt_total)
        } else if tokens == thinking_tokens {
            ("thinks", tokens, max_tokens)
        } else {
            ("writes", tokens, max_tokens)
        };
        bar.set_message(format!("{title}{again} {what}"));
        bar.set_length(u64::from(*total));
        bar.set_position(u64::from(*done));
    }

    /// Takes the bars away.
    pub fn end(&mut self) {
        for shown in self.shown.values_mut() {
            if let Some(bar) = shown.bar.take() {
                bar.finish_and_clear();
            }
        }
    }
}

impl Drop for RunDisplay {
    fn drop(&mut self) {
        self.end();
    }
}

/// A stage's title.
pub fn title(run: &RunView, stage: &StageId) -> String {
    let found = run.stages.iter().find(|known| known.stage_id == *stage);
    found.map_or_else(|| stage.to_string(), |stage| safe(&stage.title))
}

fn figures(stage: &StageView) -> String {
    let mut figures = Vec::new();
    if let Some(words) = stage.words {
        figures.push(format!("{words} words"));
    }
    if let Some(tokens) = stage.output_tokens {
        figures.push(format!("{tokens} tokens"));
    }
    if let Some(context) = &stage.context {
        figures.push(format!("prompt {} tokens", context.prompt_tokens));
    }
    if stage.attempt > 1 {
        figures.push(format!("attempt {}", stage.attempt));
    }
    if let Some(ms) = stage.duration_ms {
        figures.push(seconds(ms));
    }
    if figures.is_empty() { String::new() } else { format!("  {}", figures.join(", ")) }
}

/// A duration for people.
pub fn seconds(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Tells how the model's loading goes on.
pub struct LoadingDisplay {
    output: Output,
    bar: Option<ProgressBar>,
}

impl LoadingDisplay {
    /// Nothing is told yet.
    pub fn new(output: Output) -> Self {
        Self { output, bar: None }
    }

    /// Tells how far it is.
    pub fn model(&mut self, model: &ModelView) {
        match &model.state {
            ModelState::Loading { fraction } if self.output.has_bars() => {
                let name = safe(&model.name);
                let bar = self
                    .bar
                    .get_or_insert_with(|| self.output.bar(100, &format!("loading {name}")));
                bar.set_position((fraction * 100.0) as u64);
            }
            ModelState::Loading { .. } => {}
            ModelState::Ready | ModelState::Unloaded | ModelState::Failed { .. } => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
            }
        }
    }
}

impl Drop for LoadingDisplay {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        assert_eq!(seconds(6_249), "6.2 s");
        assert_eq!(seconds(61_000), "1 min 1 s");
    }
}
