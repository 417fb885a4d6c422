//! What becomes of a reply: artifact, another attempt, or failure.
//!
//! An attempt ends in one append together with what follows from it, so that no crash and no note
//! can come between the two.

use correx_events::{
    ArtifactProduced, EventPayload, FailureReason, NoteId, OrchestrationPaused, PauseReason,
    StageAttemptRefused, StageFailed, StageId, StageRestarted, StageStarted, WorkflowFailed,
};
use correx_inference::FinishReason;
use correx_sessions::WorkflowStatus;
use tokio::time::Instant;

use super::attempt::{Attempt, Next, Reply, Stopped, refusals, unseen};
use super::finish::{Produced, stage_done};
use super::log::Landed;
use super::runner::{Runner, Stall};
use crate::OutputRefusal;
use crate::validate::count_words;

impl Runner {
    /// Records what became of the attempt, on the log as it is when that lands.
    pub(super) async fn conclude(
        &mut self,
        attempt: &Attempt<'_>,
        reply: Option<Reply>,
    ) -> Result<Next, Stall> {
        let noticed = Instant::now();
        let mut settled = false;
        loop {
            let status = self.log.state.status;
            if status != WorkflowStatus::Running && status != WorkflowStatus::Paused {
                // Cancelled: the log has ended, and the draft with it.
                return Ok(Next::Decide);
            }
            let notes = unseen(&self.log.state, attempt);
            if !notes.is_empty() && !settled {
                // Notes come in handfuls: one restart for those that come together.
                tokio::time::sleep_until(noticed + self.config.settle).await;
                settled = true;
                self.log.refresh().await?;
                continue;
            }
            let (payloads, next) = match &reply {
                Some(reply)
                    if status == WorkflowStatus::Running
                        && notes.is_empty()
                        && (reply.response.finish_reason != FinishReason::Cancelled
                            || reply.stopped == Stopped::TooSlow) =>
                {
                    self.judge(attempt, reply)
                }
                reply => put_aside(attempt, reply.as_ref(), notes, status),
            };
            if payloads.is_empty() || self.log.append(payloads).await? == Landed::Yes {
                return Ok(next);
            }
        }
    }

    /// A whole reply that nothing came in between of: artifact, another attempt, or failure.
    fn judge(&self, attempt: &Attempt<'_>, reply: &Reply) -> (Vec<EventPayload>, Next) {
        if reply.stopped == Stopped::TooSlow {
            return self.refuse(attempt, reply, too_slow(attempt));
        }
        match reply.verdict.clone() {
            Ok(()) => match attempt.piece {
                Some(work) => {
                    (vec![reply.completed.clone(), work.done(attempt, reply)], Next::Onward)
                }
                None => (self.accept(attempt, reply), Next::Decide),
            },
            Err(refusal) => self.refuse(attempt, reply, refusal),
        }
    }

    fn accept(&self, attempt: &Attempt<'_>, reply: &Reply) -> Vec<EventPayload> {
        let artifact = ArtifactProduced {
            stage_id: attempt.stage.id.clone(),
            attempt: attempt.number,
            name: attempt.step.output.clone(),
            hash: reply.blob.clone(),
            bytes: reply.text.len() as u64,
            media_type: attempt.step.media_type.clone(),
        };
        let produced = Produced {
            words: Some(count_words(&reply.text)),
            output_tokens: Some(reply.response.output_tokens as u64),
        };
        let done = stage_done(
            &self.log.state,
            &attempt.stage.id,
            attempt.number,
            produced,
            self.deps.clock.now(),
        );
        [vec![reply.completed.clone(), artifact.into()], done].concat()
    }

    fn refuse(
        &self,
        attempt: &Attempt<'_>,
        reply: &Reply,
        refusal: OutputRefusal,
    ) -> (Vec<EventPayload>, Next) {
        let id = attempt.stage.id.clone();
        let before = refusals(&self.log.state, &id, attempt.at()).count();
        let refused = StageAttemptRefused {
            stage_id: id.clone(),
            attempt: attempt.number,
            validator: refusal.validator.to_owned(),
            message: refusal.message.clone(),
            draft: reply.blob.clone(),
            piece: attempt.at(),
        };
        let mut payloads = vec![reply.completed.clone(), refused.into()];
        if before < attempt.step.retries as usize {
            let attempt = attempt.number.saturating_add(1);
            payloads.push(StageStarted { stage_id: id, attempt }.into());
            return (payloads, Next::Again);
        }
        let advice = match refusal.validator {
            "max_tokens" => "Raise max_tokens of the stage, or ask for less in its prompt.",
            "thinking" => {
                "Raise max_tokens of the stage, set thinking = false for it, or use another model."
            }
            "timeout" => "Raise timeout_seconds of the stage, ask for less, or use a faster model.",
            "not_empty" => "Change the stage's prompt, or use another model.",
            _ => "Loosen the stage's checks, change its prompt, or allow more retries.",
        };
        let times = before + 1;
        let reason = format!(
            "its output was refused {times} time{}, the last time by {}: {} {advice} The refused drafts are kept.",
            if times == 1 { "" } else { "s" },
            refusal.validator,
            refusal.message,
        );
        payloads.extend(attempt.failure(reason));
        (payloads, Next::Decide)
    }

    pub(super) async fn fail(
        &mut self,
        attempt: &Attempt<'_>,
        reason: String,
    ) -> Result<Next, Stall> {
        self.end_with(attempt.failure(reason)).await?;
        Ok(Next::Decide)
    }
}

fn too_slow(attempt: &Attempt<'_>) -> OutputRefusal {
    let seconds = attempt.stage.timeout.unwrap_or_default().as_secs();
    OutputRefusal {
        validator: "timeout",
        message: format!("Answer briefly; after {seconds} seconds the last answer had no end."),
    }
}

impl Attempt<'_> {
    fn failure(&self, reason: String) -> Vec<EventPayload> {
        failure(&self.stage.id, &self.stage.title, self.number, reason)
    }
}

/// The attempt does not count: notes came, or it was paused. What it wrote is kept.
fn put_aside(
    attempt: &Attempt<'_>,
    reply: Option<&Reply>,
    notes: Vec<NoteId>,
    status: WorkflowStatus,
) -> (Vec<EventPayload>, Next) {
    let id = attempt.stage.id.clone();
    let draft = reply.filter(|reply| !reply.text.is_empty()).map(|reply| reply.blob.clone());
    let goes_on = status == WorkflowStatus::Running;
    let mut payloads: Vec<EventPayload> =
        reply.map(|reply| reply.completed.clone()).into_iter().collect();
    if goes_on || draft.is_some() || !notes.is_empty() {
        let restarted =
            StageRestarted { stage_id: id.clone(), attempt: attempt.number, notes, draft };
        payloads.push(restarted.into());
    }
    let unasked = reply.is_some_and(|reply| {
        reply.response.finish_reason == FinishReason::Cancelled
            && reply.stopped == Stopped::ByItself
    });
    match (goes_on, unasked) {
        (false, _) => (payloads, Next::Decide),
        // Somebody else stopped the model; going on at once could go round for ever.
        (true, true) => {
            payloads.push(OrchestrationPaused { reason: PauseReason::Interrupted }.into());
            (payloads, Next::Decide)
        }
        (true, false) => {
            let attempt = attempt.number.saturating_add(1);
            payloads.push(StageStarted { stage_id: id, attempt }.into());
            (payloads, Next::Again)
        }
    }
}

/// A stage gave up, and the run with it.
pub(super) fn failure(
    stage: &StageId,
    title: &str,
    attempt: u32,
    reason: String,
) -> Vec<EventPayload> {
    let message = format!("the stage \"{title}\" failed: {reason}");
    vec![
        StageFailed { stage_id: stage.clone(), attempt, reason }.into(),
        WorkflowFailed { reason: FailureReason::StageFailed, message }.into(),
    ]
}
