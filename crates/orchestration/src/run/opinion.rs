//! A judge: the model answers yes or no to a question about an answer that every check has passed.

use std::collections::BTreeMap;
use std::sync::Arc;

use correx_events::{ArtifactName, EventPayload};
use correx_inference::{
    FinishReason, GenerationConfig, InferenceError, InferenceProvider, ResponseFormat,
};

use super::attempt::{Attempt, Reply, Stopped};
use super::log::Landed;
use super::runner::{Runner, Stall};
use crate::{GenerateStep, OutputRefusal, Sampling, Template, TemplateValues};

/// The text stands first: small models follow what stands last.
const PROMPT: &str = "{{ piece }}\n\n{{ question }}\nAnswer with yes or no.";
const SYSTEM: &str = "You judge the text that you are shown. You answer with yes or no.";
const YES: &str = "yes";
const NO: &str = "no";
/// More than either answer has in any vocabulary.
const ANSWER_TOKENS: usize = 8;

impl Runner {
    /// Puts the stage's questions about `reply`, as far as it still counts. A "no" refuses it. When
    /// something comes in between, it is put aside as if it had been stopped itself.
    pub(super) async fn judged(
        &mut self,
        attempt: &Attempt<'_>,
        provider: &dyn InferenceProvider,
        mut reply: Reply,
    ) -> Result<Result<Reply, InferenceError>, Stall> {
        if attempt.step.judges.is_empty()
            || reply.verdict.is_err()
            || reply.stopped != Stopped::ByItself
        {
            return Ok(Ok(reply));
        }
        let template = Template::parse(PROMPT).map_err(|error| Stall::Other(error.to_string()))?;
        let step = step(attempt.step, template);
        for question in &attempt.step.judges {
            let opinion = Attempt {
                stage: attempt.stage,
                step: &step,
                number: attempt.number,
                generation: generation(),
                piece: attempt.piece,
                judges: true,
            };
            let own =
                BTreeMap::from([("piece", reply.text.clone()), ("question", question.clone())]);
            let values = Arc::new(TemplateValues { own, ..TemplateValues::default() });
            let stopped = match self.assemble(&opinion, values, provider).await? {
                None => Some(Stopped::ByUs),
                Some(Err(error)) => {
                    let said = format!("a judge could not be asked: {error}");
                    return Ok(Err(InferenceError::Engine(said)));
                }
                Some(Ok(pack)) => {
                    let shown = pack.prompt.ids.clone();
                    let answer = match self.infer(&opinion, provider, pack).await? {
                        Ok(answer) => answer,
                        Err(error) => return Ok(Err(error)),
                    };
                    let fed = &answer.response.prompt_ids;
                    if answer.response.finish_reason == FinishReason::Cancelled {
                        Some(answer.stopped)
                    } else if !shown.is_empty() && *fed != shown {
                        let said = "a judge was shown other tokens than were put together for it";
                        return Ok(Err(InferenceError::Engine(said.to_owned())));
                    } else {
                        match self.heard(attempt, answer.completed).await? {
                            true if answer.text == YES => None,
                            true => {
                                reply.verdict = Err(refusal(question));
                                return Ok(Ok(reply));
                            }
                            false => Some(Stopped::ByUs),
                        }
                    }
                }
            };
            if let Some(stopped) = stopped {
                reply.stopped = stopped;
                reply.response.finish_reason = FinishReason::Cancelled;
                return Ok(Ok(reply));
            }
        }
        Ok(Ok(reply))
    }

    /// Records how a judge's call went, unless its answer is not wanted any more.
    async fn heard(
        &mut self,
        attempt: &Attempt<'_>,
        completed: EventPayload,
    ) -> Result<bool, Stall> {
        while !self.is_in_vain(attempt) {
            if self.log.append(vec![completed.clone()]).await? == Landed::Yes {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The question as a request: it goes into the next attempt's prompt.
fn refusal(question: &str) -> OutputRefusal {
    let message = format!(
        "Write so that the answer to this question about your text is yes: {question} For the last answer \
         it was no."
    );
    OutputRefusal { validator: "judge", message }
}

/// What a judge is: a stage that is shown the answer and nothing else.
fn step(judged: &GenerateStep, prompt: Template) -> GenerateStep {
    GenerateStep {
        prompt,
        system: Some(SYSTEM.to_owned()),
        model: judged.model.clone(),
        output: ArtifactName::new("judge"),
        media_type: "text/plain".to_owned(),
        schema: None,
        sampling: Sampling { thinking: Some(false), ..Sampling::default() },
        retries: 0,
        checks: Vec::new(),
        judges: Vec::new(),
    }
}

fn generation() -> GenerationConfig {
    let mut generation = GenerationConfig::greedy(ANSWER_TOKENS);
    generation.format = ResponseFormat::Choice(vec![YES.to_owned(), NO.to_owned()]);
    generation
}
