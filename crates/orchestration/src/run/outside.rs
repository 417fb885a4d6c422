//! Stages that touch the world outside: `command`, `write`, `read`.
//!
//! Policy decides at the last moment, each time. A write or a command is intended in the log before
//! it happens and recorded after it, so that a resume neither repeats a finished one nor skips a
//! half-done one silently: a write is looked at, a command is asked about.

use std::path::{Path, PathBuf};

use correx_effects::{
    Before, CommandEnd, CommandLimits, CommandSpec, Launch, Verdict, WriteTarget, end_leftovers,
    run_command, write_file,
};
use correx_events::{
    ApprovalCause, ApprovalRequested, ArtifactName, ArtifactProduced, BlobHash, EffectDone,
    EffectIntended, EffectKind, EffectOutcome, EventPayload, FailureReason, OrchestrationPaused,
    PauseReason, PolicyDecided, PolicyDenied, PolicyVerdict, StageFailed, StageStarted,
    WorkflowFailed,
};
use correx_inference::InferenceCancellationToken;
use correx_sessions::{EffectRecord, StageRecord, StageStatus, WorkflowStatus};

use super::deed::{Considered, Deed, Proposal, consider};
use super::finish::{Produced, stage_done};
use super::log::Landed;
use super::outcome::failure;
use super::policy::Rules;
use super::reading;
use super::runner::{Runner, Stall, next_attempt, wait_for_event};
use crate::inputs::MAX_INPUT_BYTES;
use crate::validate::count_words;
use crate::{CommandStep, Stage, Step};

/// What a stage has made: an artifact's name, media type, text.
struct Made {
    name: ArtifactName,
    media_type: String,
    text: String,
}

/// How an effect went: what the log is told, and what came of it.
struct Ended {
    done: EffectDone,
    /// What was made, or why the stage fails.
    result: Result<Option<Made>, String>,
}

impl Runner {
    /// Takes the next step of a stage that touches the world outside.
    pub(super) async fn outside(&mut self, stage: &Stage) -> Result<(), Stall> {
        let Some(record) = self.log.state.stage(&stage.id).cloned() else { return Ok(()) };
        if let Some(effect) = record.half_done() {
            return self.settle(stage, effect).await;
        }
        let number = match goes_on(&record) {
            true => record.attempt,
            false => next_attempt(&self.log.state, &stage.id),
        };
        let (considered, rules) = match self.consider(stage, approved(&record)).await? {
            Ok(considered) => considered,
            Err(reason) => {
                return self.end_with(failure(&stage.id, &stage.title, number, reason)).await;
            }
        };
        let mut payloads: Vec<EventPayload> = Vec::new();
        if !goes_on(&record) {
            payloads.push(StageStarted { stage_id: stage.id.clone(), attempt: number }.into());
        }
        if let Some(denial) = considered.denial() {
            payloads.extend(denied(stage, number, denial));
            return self.end_with(payloads).await;
        }
        payloads.extend(decided(stage, &considered));
        match considered.deed {
            None => self.ask_first(stage, &considered, payloads).await,
            Some(Deed::Read { targets }) => {
                if self.log.append(payloads).await? == Landed::Overtaken {
                    return Ok(());
                }
                let reading = tokio::task::spawn_blocking(move || reading::text(&targets, &rules));
                // Nothing outside was changed: a pause or an end drops what was read.
                match self.while_running(reading).await? {
                    None => Ok(()),
                    Some(text) => {
                        let text = text.map_err(|error| Stall::Other(error.to_string()))?;
                        self.read_through(stage, number, text).await
                    }
                }
            }
            Some(Deed::Write { target, content }) => {
                self.write(stage, number, payloads, target, content).await
            }
            Some(Deed::Command { launch, stdin }) => {
                self.command(stage, number, payloads, launch, stdin).await
            }
        }
    }

    /// Asks policy, away from the async threads.
    async fn consider(
        &self,
        stage: &Stage,
        approved: Option<Proposal>,
    ) -> Result<Result<(Considered, Rules), String>, Stall> {
        let values = self.values().await?;
        let (step, session) = (stage.step.clone(), self.log.session.clone());
        let paths = self.log.state.inputs.iter().filter_map(|input| input.path.as_ref());
        let given: Vec<PathBuf> = paths.map(PathBuf::from).collect();
        let policy = self.deps.policy.clone();
        let asking = tokio::task::spawn_blocking(move || {
            let rules = policy.rules(&session, given);
            let considered = consider(&step, &values, &rules, approved.as_ref())?;
            Ok((considered, rules))
        });
        asking.await.map_err(|error| Stall::Other(error.to_string()))
    }

    /// Asks the person, and waits.
    async fn ask_first(
        &mut self,
        stage: &Stage,
        considered: &Considered,
        mut payloads: Vec<EventPayload>,
    ) -> Result<(), Stall> {
        let reason = considered.question().map(|decision| decision.reason.as_str());
        let prompt = format!(
            "May \"{}\" {}? {}",
            stage.title,
            considered.proposal.action,
            sentence(reason.unwrap_or("a person has to agree first")),
        );
        let cause = match considered.replaces.is_some() {
            true => ApprovalCause::Existing,
            false => ApprovalCause::Policy,
        };
        payloads.extend(self.question(stage, considered, prompt, cause).await?);
        let _either_way_decide_again = self.log.append(payloads).await?;
        Ok(())
    }

    /// The events by which a person is asked about `considered`, with the texts that it is about.
    async fn question(
        &self,
        stage: &Stage,
        considered: &Considered,
        prompt: String,
        cause: ApprovalCause,
    ) -> Result<[EventPayload; 2], Stall> {
        let Proposal { action, content, before } = considered.proposal.clone();
        if let Some(text) = &considered.content {
            self.deps.blobs.put(&self.log.session, text.clone().into_bytes()).await?;
        }
        if let Some(path) = considered.replaces.clone() {
            let reading = tokio::task::spawn_blocking(move || small_file(&path));
            // What cannot be read again is not shown; the question stands.
            if let Ok(Some(bytes)) = reading.await {
                self.deps.blobs.put(&self.log.session, bytes).await?;
            }
        }
        let request = ApprovalRequested {
            stage_id: stage.id.clone(),
            prompt,
            artifact: content,
            cause,
            action: Some(action),
            before,
        };
        Ok([request.into(), OrchestrationPaused { reason: PauseReason::Approval }.into()])
    }

    async fn read_through(
        &mut self,
        stage: &Stage,
        number: u32,
        text: Result<String, String>,
    ) -> Result<(), Stall> {
        let Step::Read(step) = &stage.step else { return Ok(()) };
        let text = match text {
            Ok(text) => text,
            Err(reason) => {
                return self.end_with(failure(&stage.id, &stage.title, number, reason)).await;
            }
        };
        let (name, media_type) = (step.output.clone(), step.media_type.clone());
        let made = Made { name, media_type, text };
        while self.log.state.status == WorkflowStatus::Running {
            let payloads = self.done(stage, number, Some(&made)).await?;
            if self.log.append(payloads).await? == Landed::Yes {
                break;
            }
        }
        Ok(())
    }

    async fn write(
        &mut self,
        stage: &Stage,
        number: u32,
        mut payloads: Vec<EventPayload>,
        target: WriteTarget,
        content: String,
    ) -> Result<(), Stall> {
        let before = match target.before() {
            Before::File { sha256, .. } => Some(BlobHash::from(sha256.as_str())),
            Before::Absent => None,
        };
        let hash = self.deps.blobs.put(&self.log.session, content.clone().into_bytes()).await?;
        let intended = EffectIntended {
            effect_id: self.effect_id(stage, number),
            stage_id: stage.id.clone(),
            kind: EffectKind::Write,
            target: target.path().display().to_string(),
            attempt: Some(number),
            content: Some(hash),
            before,
        };
        let effect_id = intended.effect_id.clone();
        payloads.push(intended.into());
        if self.log.append(payloads).await? == Landed::Overtaken {
            return Ok(());
        }
        let writing = tokio::task::spawn_blocking(move || write_file(&target, content.as_bytes()));
        let written = writing.await.map_err(|error| Stall::Other(error.to_string()))?;
        let (outcome, result) = match written {
            Ok(_) => (EffectOutcome::Succeeded, Ok(None)),
            Err(error) => {
                let message = error.to_string();
                (EffectOutcome::Failed { message: message.clone() }, Err(message))
            }
        };
        let done = EffectDone { effect_id, stage_id: stage.id.clone(), outcome, output: None };
        self.record(stage, number, Ended { done, result }).await
    }

    async fn command(
        &mut self,
        stage: &Stage,
        number: u32,
        mut payloads: Vec<EventPayload>,
        launch: Launch,
        stdin: String,
    ) -> Result<(), Stall> {
        let Step::Command(step) = &stage.step else { return Ok(()) };
        let effect_id = self.effect_id(stage, number);
        let intended = EffectIntended {
            effect_id: effect_id.clone(),
            stage_id: stage.id.clone(),
            kind: EffectKind::Command,
            target: command_line(&launch),
            attempt: Some(number),
            content: None,
            before: None,
        };
        payloads.push(intended.into());
        if self.log.append(payloads).await? == Landed::Overtaken {
            return Ok(());
        }
        let mut spec = CommandSpec::new(launch, effect_id.clone());
        spec.stdin = stdin.into_bytes();
        spec.limits = limits(stage, step);
        let ended = self.until_ended(spec).await?;
        let (outcome, output, result) = match ended {
            Err(error) => (failed(&error.to_string()), None, Err(error.to_string())),
            Ok(ended) => {
                let bytes = ended.stdout.clone();
                let output = self.deps.blobs.put(&self.log.session, bytes).await?;
                let result = made_by(step, &ended);
                let outcome = match &result {
                    Ok(_) => EffectOutcome::Succeeded,
                    Err(message) => failed(message),
                };
                (outcome, Some(output), result.map(Some))
            }
        };
        let done = EffectDone { effect_id, stage_id: stage.id.clone(), outcome, output };
        self.record(stage, number, Ended { done, result }).await
    }

    /// Runs the program to its end. A pause lets it finish; the end of the run ends it.
    async fn until_ended(
        &mut self,
        spec: CommandSpec,
    ) -> Result<Result<correx_effects::CommandOutcome, correx_effects::CommandError>, Stall> {
        let stop = InferenceCancellationToken::new();
        let stopped = stop.clone();
        let running = run_command(spec, async move { stopped.cancelled().await }, |_| {});
        tokio::pin!(running);
        loop {
            tokio::select! {
                biased;
                outcome = &mut running => return Ok(outcome),
                () = wait_for_event(&mut self.feed, &self.log) => {
                    self.log.refresh().await?;
                    if self.log.state.status.has_ended() {
                        stop.cancel();
                    }
                }
            }
        }
    }

    /// Records how an effect ended, and what follows from it as far as the run still goes on.
    async fn record(&mut self, stage: &Stage, number: u32, ended: Ended) -> Result<(), Stall> {
        let Ended { done, result } = ended;
        loop {
            let mut payloads: Vec<EventPayload> = vec![done.clone().into()];
            if !self.log.state.status.has_ended() {
                payloads.extend(match &result {
                    Ok(made) => self.done(stage, number, made.as_ref()).await?,
                    Err(reason) => failure(&stage.id, &stage.title, number, reason.clone()),
                });
            }
            if self.log.append(payloads).await? == Landed::Yes {
                return Ok(());
            }
        }
    }

    /// The events by which the stage is done.
    async fn done(
        &self,
        stage: &Stage,
        number: u32,
        made: Option<&Made>,
    ) -> Result<Vec<EventPayload>, Stall> {
        let mut payloads: Vec<EventPayload> = Vec::new();
        if let Some(made) = made {
            let bytes = made.text.clone().into_bytes();
            let artifact = ArtifactProduced {
                stage_id: stage.id.clone(),
                attempt: number,
                name: made.name.clone(),
                bytes: bytes.len() as u64,
                hash: self.deps.blobs.put(&self.log.session, bytes).await?,
                media_type: made.media_type.clone(),
            };
            payloads.push(artifact.into());
        }
        let words = made.map(|made| count_words(&made.text));
        let produced = Produced { words, output_tokens: None };
        let now = self.deps.clock.now();
        payloads.extend(stage_done(&self.log.state, &stage.id, number, produced, now));
        if self.log.state.status != WorkflowStatus::Running {
            // A paused run ends when it is resumed, not while it waits.
            payloads.retain(|payload| !matches!(payload, EventPayload::WorkflowCompleted(_)));
        }
        Ok(payloads)
    }

    /// Something was begun when the last process ended. Finds out what became of it, or asks.
    async fn settle(&mut self, stage: &Stage, effect: &EffectRecord) -> Result<(), Stall> {
        let intended = effect.intended.clone();
        let number = intended.attempt.unwrap_or(1);
        let done = |outcome| EffectDone {
            effect_id: intended.effect_id.clone(),
            stage_id: stage.id.clone(),
            outcome,
            output: None,
        };
        let question = match intended.kind {
            EffectKind::Write => {
                let path = PathBuf::from(&intended.target);
                let looking = tokio::task::spawn_blocking(move || digest_of(&path));
                let now = looking.await.map_err(|error| Stall::Other(error.to_string()))?;
                match now {
                    Ok(now) if now.is_some() && now == intended.content => {
                        let done = done(EffectOutcome::Succeeded);
                        return self.record(stage, number, Ended { done, result: Ok(None) }).await;
                    }
                    Ok(now) if now == intended.before => {
                        let outcome = failed("it had not happened yet when Correx ended");
                        let _decide_again = self.log.append(vec![done(outcome).into()]).await?;
                        return Ok(());
                    }
                    _ => format!(
                        "Correx ended while \"{}\" wrote {}, and the file is neither what it was nor what \
                         was to be written: something else has changed it. Look at it. May it be written \
                         now?",
                        stage.title, intended.target,
                    ),
                }
            }
            EffectKind::Command => {
                let id = intended.effect_id.clone();
                let ending = tokio::task::spawn_blocking(move || end_leftovers(&id));
                let ended = ending.await.map_err(|error| Stall::Other(error.to_string()))?;
                let left = match ended {
                    0 => "It is not running any more",
                    _ => "What was still running of it was ended",
                };
                format!(
                    "Correx ended while \"{}\" ran {}, and nobody knows how far it came. {left}. Look at \
                     what it was to do. May it run once more, from its beginning?",
                    stage.title, intended.target,
                )
            }
        };
        let asked = self.consider(stage, None).await?;
        let considered = match asked {
            Ok((considered, _)) if considered.denial().is_none() => considered,
            // Going on finds out what stands against it.
            _ => {
                let outcome =
                    failed("Correx ended while it was at work; how far it came is unknown");
                let _decide_again = self.log.append(vec![done(outcome).into()]).await?;
                return Ok(());
            }
        };
        let attempt = next_attempt(&self.log.state, &stage.id);
        let mut payloads: Vec<EventPayload> =
            vec![StageStarted { stage_id: stage.id.clone(), attempt }.into()];
        payloads.extend(decided(stage, &considered));
        payloads
            .extend(self.question(stage, &considered, question, ApprovalCause::HalfDone).await?);
        let _either_way_decide_again = self.log.append(payloads).await?;
        Ok(())
    }

    fn effect_id(&self, stage: &Stage, number: u32) -> String {
        format!("{}/{}/{number}", self.log.session, stage.id)
    }
}

/// Whether a person said yes to what the attempt asked: it goes on.
fn goes_on(record: &StageRecord) -> bool {
    record.status == StageStatus::Running && record.approved.is_some()
}

/// What a person said yes to.
fn approved(record: &StageRecord) -> Option<Proposal> {
    let question = record.approved.as_ref()?;
    Some(Proposal {
        action: question.action.clone()?,
        content: question.artifact.clone(),
        before: question.before.clone(),
    })
}

/// What the log says of the decisions that do not forbid it.
fn decided(stage: &Stage, considered: &Considered) -> Vec<EventPayload> {
    let verdict = |verdict| match verdict {
        Verdict::Allowed => Some(PolicyVerdict::Allowed),
        Verdict::NeedsApproval => Some(PolicyVerdict::NeedsApproval),
        Verdict::Denied => None,
    };
    let events = considered.decisions.iter().filter_map(|decision| {
        Some(PolicyDecided {
            stage_id: stage.id.clone(),
            action: decision.action.clone(),
            verdict: verdict(decision.verdict)?,
            rule: decision.rule.clone(),
        })
    });
    events.map(Into::into).collect()
}

/// Policy forbids it: the run is over, and no approval changes that.
fn denied(stage: &Stage, attempt: u32, denial: &correx_effects::Decision) -> [EventPayload; 3] {
    let (action, rule) = (denial.action.clone(), denial.rule.clone());
    let reason = format!("it may not {action}, by {rule}: {}", denial.reason);
    let message = format!(
        "policy forbids what the stage \"{}\" wants: {action}, by {rule}: {}. Nothing of it was done, \
         and everything made before is kept",
        stage.title,
        denial.reason.trim_end_matches('.'),
    );
    [
        PolicyDenied { stage_id: stage.id.clone(), action, rule }.into(),
        StageFailed { stage_id: stage.id.clone(), attempt, reason }.into(),
        WorkflowFailed { reason: FailureReason::PolicyDenied, message }.into(),
    ]
}

fn limits(stage: &Stage, step: &CommandStep) -> CommandLimits {
    let usual = CommandLimits::default();
    let output = step.max_output_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    CommandLimits {
        time: stage.timeout.unwrap_or(usual.time),
        output: output.unwrap_or(usual.output),
        ..usual
    }
}

/// What a program has made, or why it counts as failed.
fn made_by(step: &CommandStep, ended: &correx_effects::CommandOutcome) -> Result<Made, String> {
    let is_fine = match ended.end {
        CommandEnd::Exited(code) => step.exit_codes.contains(&code),
        _ => false,
    };
    if !is_fine {
        return Err(match ended.end {
            CommandEnd::Exited(0) => {
                format!("{} ended with code 0, which exit_codes does not name", step.program)
            }
            _ => ended.to_string(),
        });
    }
    match String::from_utf8(ended.stdout.clone()) {
        Ok(text) => Ok(Made {
            name: step.output.clone(),
            media_type: step.media_type.clone(),
            text: text.replace("\r\n", "\n"),
        }),
        Err(error) => Err(format!(
            "{} wrote something that is no text (byte {} of its output); have it write into a file \
             instead. What it wrote was kept",
            step.program,
            error.utf8_error().valid_up_to(),
        )),
    }
}

fn failed(message: &str) -> EffectOutcome {
    EffectOutcome::Failed { message: message.to_owned() }
}

fn command_line(launch: &Launch) -> String {
    let mut line = launch.program().display().to_string();
    for arg in launch.args() {
        let is_plain =
            !arg.is_empty() && arg.chars().all(|c| c.is_alphanumeric() || "-_./=:,+@%".contains(c));
        match is_plain {
            true => line.push_str(&format!(" {arg}")),
            false => line.push_str(&format!(" {arg:?}")),
        }
    }
    line
}

/// SHA-256 of a file; `None` when there is none.
fn digest_of(path: &Path) -> std::io::Result<Option<BlobHash>> {
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => Ok(Some(BlobHash::of(&std::fs::read(path)?))),
        Ok(_) => Err(std::io::Error::other("it is no file")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn small_file(path: &Path) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok()?;
    let is_small = found.is_file() && found.len() <= MAX_INPUT_BYTES;
    is_small.then(|| std::fs::read(path).ok()).flatten()
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
