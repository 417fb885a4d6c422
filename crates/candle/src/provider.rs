//! The provider: a loaded model behind [`InferenceProvider`].

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{JoinHandle, available_parallelism};

use async_trait::async_trait;
use correx_context::{EncodeError, PromptEncoder};
use correx_cpu_kernels::{Threads, ThreadsError};
use correx_events::{Clock, SystemClock};
use correx_inference::{
    InferenceCancellationToken, InferenceError, InferenceProvider, InferenceRequest,
    InferenceResponse, ModelCapability, ModelDescription, ResponseFormat, StreamSink, ThinkingMode,
};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::checksum;
use crate::constraint::{Constraint, Forms};
use crate::decoder::{ConfigError, Decoder, DecoderConfig, WeightsError};
use crate::engine::{Engine, Job, ReplyForm};
use crate::memory::{
    DoesNotFit, MachineMemory, MemoryNeed, MemoryPlan, Overcommit, choose_context,
};
use crate::prompt::ChatEncoder;
use crate::template::{self, ChatTemplate, ModelFacts};
use crate::threads::compute_threads;
use crate::tokenizer::{Vocabulary, VocabularyError};
use correx_gguf::{Gguf, InspectError, inspect};

/// Why a model could not be loaded. The text says what happened and what to do.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file is not a sound GGUF file.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The model is of a kind that is not run.
    #[error("{}: {problem}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        problem: ConfigError,
    },
    /// The vocabulary cannot be used.
    #[error("{}: {problem}", path.display())]
    Vocabulary {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        problem: VocabularyError,
    },
    /// The weights could not be loaded.
    #[error("{}: {problem}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        problem: WeightsError,
    },
    /// The vocabulary and the weights do not belong together.
    #[error(
        "{}: the model file is damaged: it has {tokens} tokens and weights for {rows}. Download it again",
        path.display()
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Tokens of the vocabulary.
        tokens: usize,
        /// Rows of the embedding.
        rows: usize,
    },
    /// It does not fit into memory.
    #[error("{}: {problem}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The numbers.
        #[source]
        problem: DoesNotFit,
    },
    /// The control tokens cannot be searched for.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The threads that compute could not be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// The engine's thread could not be started.
    #[error("the model's thread could not be started ({0}). Close other programs and try again")]
    Thread(std::io::Error),
    /// Loading was cancelled.
    #[error("loading was cancelled")]
    Cancelled,
}

/// How far loading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of weights that are loaded.
    pub done: u64,
    /// Bytes of weights in all.
    pub total: u64,
}

/// How to load a model.
#[derive(Clone)]
pub struct LoadOptions {
    /// The most tokens of prompt and reply together; `None`: what the model was made for.
    pub context_limit: Option<usize>,
    /// The memory that there is for it; `None`: it is not looked at. The window may be smaller for
    /// it, and a model that does not fit is refused before its weights are read.
    pub machine: Option<MachineMemory>,
    /// What to do with a model that does not fit.
    pub overcommit: Overcommit,
    /// Threads that compute; `None`: [`compute_threads`].
    pub threads: Option<usize>,
    /// Bytes of caches that are kept for prompts that begin like an earlier one.
    pub kept_cache_bytes: usize,
    /// The rule that splits text, whatever the file says (one of
    /// [`pre_tokenizer_names`](crate::tokenizer::pre_tokenizer_names)); `None`: the file's.
    pub pre_tokenizer: Option<String>,
    /// The model's name for people; `None`: the one in the file.
    pub name: Option<String>,
    /// The file's SHA-256, when it is known already; else it is computed in the background.
    pub sha256: Option<String>,
    /// Tells chat templates the date.
    pub clock: Arc<dyn Clock>,
    /// Stops the loading.
    pub cancel: InferenceCancellationToken,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            context_limit: None,
            machine: None,
            overcommit: Overcommit::default(),
            threads: None,
            kept_cache_bytes: 512 << 20,
            pre_tokenizer: None,
            name: None,
            sha256: None,
            clock: Arc::new(SystemClock),
            cancel: InferenceCancellationToken::new(),
        }
    }
}

/// A loaded model. Dropping it ends its thread and frees the weights before it returns; what was
/// still running ends as cancelled.
pub struct CandleProvider {
    /// Taken when it is dropped: then the thread ends.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    need: MemoryNeed,
    encoder: Arc<ChatEncoder>,
    forms: Arc<Forms>,
    description: ModelDescription,
    sha256: Arc<OnceLock<String>>,
}

impl CandleProvider {
    /// Loads the GGUF file at `path`. Blocks until it is loaded; `progress` hears how far it is.
    pub fn load(
        path: &Path,
        options: LoadOptions,
        progress: impl Fn(LoadProgress),
    ) -> Result<Self, LoadError> {
        let gguf = inspect(path)?;
        let pre_tokenizer = options.pre_tokenizer.as_deref();
        let (threads, fewer) = match options.threads {
            Some(asked) => at_most_all_cores(asked, available_parallelism().map_or(1, usize::from)),
            None => (compute_threads(), None),
        };
        let plan = memory_plan(&gguf, threads)?;
        let shorter = at_most_the_models(options.context_limit, plan.model_context);
        let chosen =
            choose_context(&plan, options.context_limit, options.machine, options.overcommit)
                .map_err(|problem| LoadError::Memory { path: path.to_owned(), problem })?;
        let window = chosen.tokens;
        let loaded = Loaded::new(&gguf, Some(threads), pre_tokenizer, &options.cancel, progress)?;
        let (bos, eos) = (loaded.vocabulary.bos_text(), loaded.vocabulary.eos_text());
        let facts = ModelFacts::from_gguf(&gguf, bos, eos);
        let template = ChatTemplate::new(template::source_in(&gguf), &facts, options.clock);
        let threads = loaded.decoder.threads();
        let description = ModelDescription {
            name: options.name.unwrap_or_else(|| name(&gguf)),
            sha256: None,
            location: path.display().to_string(),
            architecture: loaded.decoder.config().architecture.to_string(),
            quantization: gguf.quantization().map(|kind| kind.to_string()).unwrap_or_default(),
            device: device(threads),
            context_window: window,
            parameters: gguf.parameters(),
            file_bytes: gguf.file_bytes,
            notice: notices([chosen.notice(), shorter, fewer]),
        };
        let encoder = Arc::new(ChatEncoder::new(loaded.vocabulary.clone(), template)?);
        let forms = Arc::new(Forms::new(loaded.vocabulary.clone()));
        let (jobs, work) = mpsc::channel();
        let engine = Engine::new(
            Arc::new(loaded.decoder),
            loaded.vocabulary,
            ReplyForm { reasoning: encoder.reasoning() },
            description.device.clone(),
            window,
            chosen.spare_bytes(options.kept_cache_bytes),
        );
        let thread = std::thread::Builder::new()
            .name("correx-model".into())
            .spawn(move || engine.run(&work))
            .map_err(LoadError::Thread)?;
        let sha256 = Arc::new(OnceLock::new());
        match options.sha256 {
            Some(known) => {
                let _ = sha256.set(known);
            }
            None => {
                let files = gguf.parts.iter().map(|part| part.path.clone()).collect();
                checksum::compute_in_background(files, &sha256);
            }
        }
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            need: chosen.need,
            encoder,
            forms,
            description,
            sha256,
        })
    }

    /// What it needs, by the estimate that it was loaded by.
    pub fn memory_need(&self) -> MemoryNeed {
        self.need
    }

    /// What holds a reply to `format`. Whoever cancels does not wait for it: such a reply has no
    /// first token.
    async fn constraint(
        &self,
        format: &ResponseFormat,
        cancel: &InferenceCancellationToken,
    ) -> Result<Option<Constraint>, InferenceError> {
        if format.is_free() {
            return Ok(None);
        }
        let (forms, format) = (self.forms.clone(), format.clone());
        let compiling = tokio::task::spawn_blocking(move || forms.compile(&format));
        tokio::select! {
            compiled = compiling => match compiled {
                Ok(compiled) => Ok(compiled?),
                Err(error) => Err(InferenceError::Engine(error.to_string())),
            },
            () = cancel.cancelled() => Ok(None),
        }
    }

    /// The encoder with its vocabulary and template.
    pub fn chat_encoder(&self) -> &Arc<ChatEncoder> {
        &self.encoder
    }
}

impl Drop for CandleProvider {
    fn drop(&mut self) {
        self.jobs = None;
        // A job's sink may hold the last handle; a thread cannot wait for itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // One that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

/// What the model of `gguf` needs when `threads` threads compute it. Reads no weights; refuses what
/// loading would refuse for its numbers.
pub fn memory_plan(gguf: &Gguf, threads: usize) -> Result<MemoryPlan, LoadError> {
    let config = DecoderConfig::from_gguf(gguf)
        .map_err(|problem| LoadError::Config { path: gguf.path.clone(), problem })?;
    Ok(MemoryPlan::new(gguf, &config, threads))
}

/// As many threads as were asked for and there are cores for, and what to know about that.
fn at_most_all_cores(asked: usize, cores: usize) -> (usize, Option<String>) {
    if asked <= cores {
        return (asked, None);
    }
    let notice = format!("{asked} threads were asked for; this machine has cores for {cores}.");
    (cores, Some(notice))
}

/// What to know about a context that was asked for and is more than the model was made for.
fn at_most_the_models(asked: Option<usize>, made_for: usize) -> Option<String> {
    let asked = asked.filter(|asked| *asked > made_for)?;
    Some(format!("A context of {asked} tokens was asked for; the model was made for {made_for}."))
}

/// What there is to know, one sentence after another.
fn notices<const N: usize>(notices: [Option<String>; N]) -> Option<String> {
    let notices: Vec<String> = notices.into_iter().flatten().collect();
    (!notices.is_empty()).then(|| notices.join(" "))
}

/// Weights and vocabulary that belong together.
pub(crate) struct Loaded {
    pub(crate) decoder: Decoder,
    pub(crate) vocabulary: Arc<Vocabulary>,
}

impl Loaded {
    /// Loads both; whatever is refused is refused before the weights are read.
    pub(crate) fn new(
        gguf: &Gguf,
        threads: Option<usize>,
        pre_tokenizer: Option<&str>,
        cancel: &InferenceCancellationToken,
        progress: impl Fn(LoadProgress),
    ) -> Result<Self, LoadError> {
        let path = || gguf.path.clone();
        let config = DecoderConfig::from_gguf(gguf)
            .map_err(|problem| LoadError::Config { path: path(), problem })?;
        let vocabulary = Vocabulary::from_gguf_with(gguf, pre_tokenizer)
            .map_err(|problem| LoadError::Vocabulary { path: path(), problem })?;
        // Some files pad the embedding; tokens without a row would be a mistake.
        if vocabulary.len() > config.vocabulary {
            return Err(LoadError::Mismatch {
                path: path(),
                tokens: vocabulary.len(),
                rows: config.vocabulary,
            });
        }
        if let Some(problem) = Decoder::problems(gguf, Some(&config)).into_iter().next() {
            return Err(LoadError::Weights { path: path(), problem });
        }
        let threads = Threads::new(threads.unwrap_or_else(compute_threads))?;
        let decoder = Decoder::load(gguf, config, threads, &mut |done, total| {
            progress(LoadProgress { done, total });
            match cancel.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .map_err(|problem| match problem {
            WeightsError::Cancelled => LoadError::Cancelled,
            problem => LoadError::Weights { path: path(), problem },
        })?;
        Ok(Self { decoder, vocabulary: Arc::new(vocabulary) })
    }
}

/// A device for people.
fn device(threads: usize) -> String {
    match threads {
        1 => "CPU (1 thread)".to_owned(),
        threads => format!("CPU ({threads} threads)"),
    }
}

fn name(gguf: &Gguf) -> String {
    gguf.text("general.name")
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .or_else(|| gguf.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .unwrap_or_default()
}

#[async_trait]
impl InferenceProvider for CandleProvider {
    fn describe(&self) -> ModelDescription {
        let template = self.encoder.template().notice().map(str::to_owned);
        ModelDescription {
            sha256: self.sha256.get().cloned(),
            notice: notices([template, self.description.notice.clone()]),
            ..self.description.clone()
        }
    }

    fn capabilities(&self) -> &[ModelCapability] {
        &[
            ModelCapability::Chat,
            ModelCapability::Batch,
            ModelCapability::CutBack,
            ModelCapability::CancelInPrompt,
            ModelCapability::Constrained,
        ]
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        self.encoder.clone()
    }

    fn encoder_for(&self, thinking: ThinkingMode) -> Arc<dyn PromptEncoder> {
        self.encoder.clone().thinking(thinking)
    }

    fn context_window(&self) -> usize {
        self.description.context_window
    }

    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError> {
        let constraint = self.constraint(&request.generation.format, &cancel).await?;
        let (answer, answered) = oneshot::channel();
        let job = Job {
            ids: request.context_pack.prompt.ids,
            reply_start: request.context_pack.prompt.reply_start,
            stop_text: self.encoder.template().stop_text(),
            generation: request.generation,
            constraint,
            cache_key: request.cache_key,
            cancel,
            sink,
            answer,
        };
        let jobs = self.jobs.as_ref().ok_or(InferenceError::Gone)?;
        jobs.send(job).map_err(|_| InferenceError::Gone)?;
        answered.await.map_err(|_| InferenceError::Gone)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_beyond_the_machine_or_the_model_is_cut_and_said() {
        assert_eq!(at_most_all_cores(2, 2), (2, None));
        let (threads, notice) = at_most_all_cores(64, 2);
        assert!(threads == 2 && notice.unwrap().contains("64 threads"));
        assert_eq!(at_most_the_models(None, 8192), None);
        assert_eq!(at_most_the_models(Some(8192), 8192), None);
        assert!(at_most_the_models(Some(9000), 8192).unwrap().contains("made for 8192"));
    }
}
