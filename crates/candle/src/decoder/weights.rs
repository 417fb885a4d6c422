//! The tensors of a model, checked against its numbers.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::{ControlFlow, Range};

use candle_core::quantized::{QStorage, QTensor};
use candle_core::{DType, Device, Tensor, bail};
use correx_cpu_kernels::{AlignedBytes, BlockKind, NoMemory, PackedMatrix, Threads};
use thiserror::Error;

use super::config::{DecoderConfig, FactorNames, QueryKeyNorms};
use super::convolution::Convolution;
use super::experts::Experts;
use super::feed::{Feed, FeedForward};
use super::matrix::{CandleMatrix, Matrix, dtype, multiply_all, packed_kind};
use super::rotations::RopeFactors;
use correx_gguf::{Gguf, TensorInfo, TensorType};

/// Why the weights could not be loaded.
#[derive(Debug, Error)]
pub enum WeightsError {
    /// The file could not be read to its end.
    #[error("the model file could not be read ({0}). Check the disk, or download it again")]
    Read(#[from] std::io::Error),
    /// A tensor that the model needs is not there.
    #[error("the model file lacks the weights `{0}`. Choose another file of this model")]
    Missing(String),
    /// A tensor has another form than the metadata says.
    #[error(
        "the model file is damaged: `{name}` has the shape {found:?}, not {expected:?}. Download it again"
    )]
    Shape {
        /// The tensor's name.
        name: String,
        /// The shape that the metadata asks for.
        expected: Vec<usize>,
        /// The shape that is there.
        found: Vec<usize>,
    },
    /// A tensor has a type that cannot be computed with.
    #[error(
        "the weights `{name}` are stored as {kind}, which Correx cannot run. Choose a file in Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, a K type, F16, BF16 or F32"
    )]
    TensorType {
        /// The tensor's name.
        name: String,
        /// How it is stored.
        kind: TensorType,
    },
    /// The numbers inside make no sense.
    #[error("the model could not be loaded: {0}")]
    Failed(String),
    /// Loading was cancelled.
    #[error("loading was cancelled")]
    Cancelled,
}

impl From<candle_core::Error> for WeightsError {
    fn from(error: candle_core::Error) -> Self {
        WeightsError::Failed(error.to_string())
    }
}

/// A matrix, and a bias where the family has one.
pub(super) struct Linear {
    matrix: Matrix,
    bias: Option<Tensor>,
}

impl Linear {
    /// Every row of `input` times the matrix.
    pub(super) fn apply(&self, input: &Tensor, threads: &Threads) -> candle_core::Result<Tensor> {
        self.biased(self.matrix.multiply(input, threads)?)
    }

    /// Every row of `input` times every matrix, computed together.
    pub(super) fn apply_all<const N: usize>(
        linears: [&Linear; N],
        input: &Tensor,
        threads: &Threads,
    ) -> candle_core::Result<[Tensor; N]> {
        let mut outputs = multiply_all(linears.map(|linear| &linear.matrix), input, threads)?;
        for (output, linear) in outputs.iter_mut().zip(linears) {
            *output = linear.biased(output.clone())?;
        }
        Ok(outputs)
    }

    fn biased(&self, output: Tensor) -> candle_core::Result<Tensor> {
        match &self.bias {
            Some(bias) => output.broadcast_add(bias),
            None => Ok(output),
        }
    }
}

/// One layer. Norms that a family lacks are `None`.
pub(super) struct Layer {
    pub(super) attention_norm: Option<Tensor>,
    pub(super) mixer: Mixer,
    pub(super) attention_post_norm: Option<Tensor>,
    pub(super) feed_norm: Option<Tensor>,
    pub(super) feed: Feed,
    pub(super) feed_post_norm: Option<Tensor>,
}

/// What brings tokens together.
pub(super) enum Mixer {
    Attention(AttentionWeights),
    Convolution(Convolution),
}

/// The weights of a layer that attends.
pub(super) struct AttentionWeights {
    pub(super) query: Linear,
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) query_norm: Option<Tensor>,
    pub(super) key_norm: Option<Tensor>,
    pub(super) output: Linear,
}

/// All layers and what stands before and behind them.
pub(super) struct Weights {
    pub(super) embedding: Matrix,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Tensor,
    /// `None`: the embedding serves as the output too.
    pub(super) output: Option<Matrix>,
    pub(super) output_bias: Option<Tensor>,
    pub(super) rope_factors: RopeFactors,
}

impl Weights {
    pub(super) fn load(
        gguf: &Gguf,
        config: &DecoderConfig,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Self, WeightsError> {
        let files = gguf.parts.iter().map(|part| File::open(&part.path));
        let work = Work::Read(Reader {
            files: files.collect::<Result<_, _>>()?,
            buffer: AlignedBytes::zeroed(0).map_err(no_memory)?,
            loaded: 0,
            total: gguf.tensors.values().map(|tensor| tensor.bytes).sum(),
            progress,
        });
        Self::made(&mut Source { gguf, work }, config)
    }

    /// What would keep the weights from being loaded, as far as the header tells. Nothing is read:
    /// loading is gone through with stand-ins for the weights.
    pub(super) fn problems(gguf: &Gguf, config: &DecoderConfig) -> Vec<WeightsError> {
        let mut source = Source { gguf, work: Work::Check(Vec::new()) };
        let made = Self::made(&mut source, config);
        let Work::Check(mut problems) = source.work else { return Vec::new() };
        problems.extend(made.err());
        problems
    }

    fn made(source: &mut Source<'_>, config: &DecoderConfig) -> Result<Self, WeightsError> {
        let width = config.width;
        let embedding = source.matrix("token_embd.weight", config.vocabulary, width)?;
        let layers = (0..config.layers)
            .map(|number| source.layer(number, config))
            .collect::<Result<_, _>>()?;
        let output = match source.has("output.weight") {
            true => Some(source.matrix("output.weight", config.vocabulary, width)?),
            false => None,
        };
        Ok(Self {
            embedding,
            layers,
            norm: source.vector(config.family().output_norm, width)?,
            output,
            output_bias: source.optional("output.bias", config.vocabulary)?,
            rope_factors: source.rope_factors(config)?,
        })
    }

    /// All weights that are stored in a type that cannot be computed with.
    pub(super) fn uncomputed(gguf: &Gguf) -> Vec<WeightsError> {
        let mut names: Vec<(&String, TensorType)> =
            gguf.tensors.iter().map(|(name, tensor)| (name, tensor.kind)).collect();
        names.retain(|(_, kind)| dtype(*kind).is_none());
        names.sort_unstable();
        let problem =
            |(name, kind): (&String, _)| WeightsError::TensorType { name: name.clone(), kind };
        names.into_iter().map(problem).collect()
    }
}

/// Finds tensors one after another.
pub(super) struct Source<'a> {
    gguf: &'a Gguf,
    work: Work<'a>,
}

/// What is done with the tensors.
enum Work<'a> {
    /// They are read.
    Read(Reader<'a>),
    /// They are only looked for; what is wrong with them is noted.
    Check(Vec<WeightsError>),
}

/// Reads the bytes of tensors.
struct Reader<'a> {
    /// One for every part of the model.
    files: Vec<File>,
    buffer: AlignedBytes,
    loaded: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>,
}

impl Source<'_> {
    fn layer(&mut self, number: usize, config: &DecoderConfig) -> Result<Layer, WeightsError> {
        let (norms, width) = (config.family().norms, config.width);
        let mut norm = |there: bool, part: &str| {
            self.vector_if(there, &format!("blk.{number}.{part}.weight"), width)
        };
        Ok(Layer {
            attention_norm: norm(norms.before(), "attn_norm")?,
            attention_post_norm: norm(norms.after(), "post_attention_norm")?,
            feed_norm: norm(norms.before(), "ffn_norm")?,
            feed_post_norm: norm(norms.after(), "post_ffw_norm")?,
            mixer: match config.convolves(number) {
                true => {
                    let length = config.convolved;
                    Mixer::Convolution(Convolution::load(self, number, width, length)?)
                }
                false => Mixer::Attention(self.attention(number, config)?),
            },
            feed: match config.experts(number) {
                Some(experts) => Feed::Experts(Experts::load(self, number, width, experts)?),
                None => Feed::Dense(self.feed_forward(number, config)?),
            },
        })
    }

    fn attention(
        &mut self,
        number: usize,
        config: &DecoderConfig,
    ) -> Result<AttentionWeights, WeightsError> {
        let width = config.width;
        let (query_width, kv_width) = (config.query_width(), config.kv_width());
        let name = |part: &str| format!("blk.{number}.{part}");
        let [query, key, value] = if self.has(&name("attn_qkv.weight")) {
            let rows = [query_width, kv_width, kv_width];
            self.fused(&name("attn_qkv"), rows, width)?
        } else {
            [
                self.linear(&name("attn_q"), query_width, width)?,
                self.linear(&name("attn_k"), kv_width, width)?,
                self.linear(&name("attn_v"), kv_width, width)?,
            ]
        };
        let (there, query_norm, key_norm) = match config.family().query_key_norms {
            QueryKeyNorms::None => (false, 0, 0),
            QueryKeyNorms::Head => (true, config.head, config.head),
            QueryKeyNorms::Row => (true, query_width, kv_width),
        };
        Ok(AttentionWeights {
            query,
            key,
            value,
            query_norm: self.vector_if(there, &name("attn_q_norm.weight"), query_norm)?,
            key_norm: self.vector_if(there, &name("attn_k_norm.weight"), key_norm)?,
            output: self.linear(&name("attn_output"), width, query_width)?,
        })
    }

    fn feed_forward(
        &mut self,
        number: usize,
        config: &DecoderConfig,
    ) -> Result<FeedForward, WeightsError> {
        let (width, inner) = (config.width, config.inner);
        let name = |part: &str| format!("blk.{number}.{part}");
        let [gate, up] = if config.family().fused_gate {
            self.fused(&name("ffn_up"), [inner, inner], width)?
        } else {
            [
                self.linear(&name("ffn_gate"), inner, width)?,
                self.linear(&name("ffn_up"), inner, width)?,
            ]
        };
        Ok(FeedForward { gate, up, down: self.linear(&name("ffn_down"), width, inner)? })
    }

    /// The factors of the file, if it has any.
    fn rope_factors(&mut self, config: &DecoderConfig) -> Result<RopeFactors, WeightsError> {
        let mut factors = |name: &str| -> Result<Option<Vec<f32>>, WeightsError> {
            let Some(factors) = self.optional(name, config.rope.rotated / 2)? else {
                return Ok(None);
            };
            let factors = factors.to_vec1::<f32>()?;
            match factors.iter().all(|factor| factor.is_finite() && *factor > 0.0) {
                true => Ok(Some(factors)),
                false => Err(WeightsError::Failed(format!("`{name}` makes no sense"))),
            }
        };
        Ok(match config.rope.factors {
            FactorNames::None => RopeFactors::default(),
            FactorNames::One => {
                let one = factors("rope_freqs.weight")?;
                RopeFactors { short: one.clone(), long: one }
            }
            FactorNames::ShortAndLong => RopeFactors {
                short: factors("rope_factors_short.weight")?,
                long: factors("rope_factors_long.weight")?,
            },
        })
    }

    fn has(&self, name: &str) -> bool {
        self.gguf.tensors.contains_key(name)
    }

    pub(super) fn linear(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Linear, WeightsError> {
        let [linear] = self.fused(name, [rows], columns)?;
        Ok(linear)
    }

    /// Several matrices that lie in one tensor, of so many rows each.
    pub(super) fn fused<const N: usize>(
        &mut self,
        name: &str,
        rows: [usize; N],
        columns: usize,
    ) -> Result<[Linear; N], WeightsError> {
        let all: usize = rows.iter().sum();
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let bias = self.optional(&bias, all)?;
        let mut linears = Vec::with_capacity(N);
        let mut first = 0;
        for rows in rows {
            linears.push(Linear {
                matrix: self.matrix_part(&weight, all, first..first + rows, columns)?,
                bias: match &bias {
                    Some(bias) => Some(bias.narrow(0, first, rows)?),
                    None => None,
                },
            });
            first += rows;
        }
        <[Linear; N]>::try_from(linears)
            .map_err(|_| WeightsError::Failed(format!("`{weight}` lacks a part")))
    }

    pub(super) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Matrix, WeightsError> {
        self.matrix_part(name, rows, 0..rows, columns)
    }

    /// Some rows of a tensor that has `all`.
    fn matrix_part(
        &mut self,
        name: &str,
        all: usize,
        rows: Range<usize>,
        columns: usize,
    ) -> Result<Matrix, WeightsError> {
        match self.tensor(name, &[all, columns])? {
            Some(whole) => self.rows(&whole, all, rows, columns),
            None => stand_in(),
        }
    }

    /// Matrices that lie one after another in one tensor, without biases.
    pub(super) fn stacked(
        &mut self,
        name: &str,
        count: usize,
        rows: usize,
        columns: usize,
    ) -> Result<Vec<Linear>, WeightsError> {
        let linear = |matrix| Linear { matrix, bias: None };
        let Some(whole) = self.tensor(name, &[count, rows, columns])? else {
            return Ok(vec![linear(stand_in()?)]);
        };
        (0..count)
            .map(|number| {
                let rows = number * rows..(number + 1) * rows;
                self.rows(&whole, count * rows.len(), rows, columns).map(linear)
            })
            .collect()
    }

    /// Some of `all` rows of a tensor.
    fn rows(
        &mut self,
        whole: &TensorInfo,
        all: usize,
        rows: Range<usize>,
        columns: usize,
    ) -> Result<Matrix, WeightsError> {
        let row = whole.bytes / all.max(1) as u64;
        let part = TensorInfo {
            shape: vec![rows.len(), columns],
            offset: whole.offset + rows.start as u64 * row,
            bytes: rows.len() as u64 * row,
            ..whole.clone()
        };
        self.read(&part, |bytes| match packed_kind(part.kind) {
            Some(kind) => PackedMatrix::pack(kind, rows.len(), columns, bytes)
                .map(Matrix::Packed)
                .map_err(|error| WeightsError::Failed(error.to_string())),
            None => {
                let matrix = CandleMatrix::new(part.kind, rows.len(), columns, bytes)?;
                Ok(Matrix::Candle(matrix))
            }
        })
    }

    pub(super) fn vector(&mut self, name: &str, length: usize) -> Result<Tensor, WeightsError> {
        self.numbers(name, &[length])
    }

    pub(super) fn vector_if(
        &mut self,
        there: bool,
        name: &str,
        length: usize,
    ) -> Result<Option<Tensor>, WeightsError> {
        there.then(|| self.vector(name, length)).transpose()
    }

    /// Numbers that some files store as a matrix of one row.
    pub(super) fn row(&mut self, name: &str, length: usize) -> Result<Tensor, WeightsError> {
        match self.gguf.tensors.get(name) {
            Some(tensor) if tensor.shape.len() == 2 => {
                Ok(self.numbers(name, &[1, length])?.squeeze(0)?)
            }
            _ => self.vector(name, length),
        }
    }

    /// A tensor as numbers.
    pub(super) fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Tensor, WeightsError> {
        let Some(info) = self.tensor(name, shape)? else {
            // Of any shape, it takes no memory.
            return Ok(Tensor::ones(1, DType::F32, &Device::Cpu)?.broadcast_as(shape)?);
        };
        self.read(&info, |bytes| Ok(quantized(&info, bytes)?.dequantize(&Device::Cpu)?))
    }

    fn optional(&mut self, name: &str, length: usize) -> Result<Option<Tensor>, WeightsError> {
        match self.has(name) {
            true => self.vector(name, length).map(Some),
            false => Ok(None),
        }
    }

    /// Where a tensor lies, which has to have this shape. `None`: it was only looked for.
    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Option<TensorInfo>, WeightsError> {
        let found = self.sound(name, shape);
        match &mut self.work {
            Work::Read(_) => found.map(Some),
            Work::Check(problems) => {
                let problem = found.err();
                // Parts of one tensor are asked for one after another.
                let same = |problem: &WeightsError| {
                    problems.last().is_some_and(|last| last.to_string() == problem.to_string())
                };
                if let Some(problem) = problem.filter(|problem| !same(problem)) {
                    problems.push(problem);
                }
                Ok(None)
            }
        }
    }

    fn sound(&self, name: &str, shape: &[usize]) -> Result<TensorInfo, WeightsError> {
        let info =
            self.gguf.tensors.get(name).ok_or_else(|| WeightsError::Missing(name.to_owned()))?;
        if info.shape != shape {
            return Err(WeightsError::Shape {
                name: name.to_owned(),
                expected: shape.to_vec(),
                found: info.shape.clone(),
            });
        }
        if dtype(info.kind).is_none() {
            return Err(WeightsError::TensorType { name: name.to_owned(), kind: info.kind });
        }
        Ok(info.clone())
    }

    /// Reads bytes and makes of them what is needed.
    fn read<T>(
        &mut self,
        info: &TensorInfo,
        make: impl FnOnce(&[u8]) -> Result<T, WeightsError>,
    ) -> Result<T, WeightsError> {
        let Work::Read(reader) = &mut self.work else {
            return Err(WeightsError::Failed("its weights are not read".into()));
        };
        let file = reader.files.get_mut(info.part);
        let file = file.ok_or_else(|| WeightsError::Failed("a part of it is missing".into()))?;
        let made = make(read(file, &mut reader.buffer, info)?)?;
        reader.loaded += info.bytes;
        match (reader.progress)(reader.loaded, reader.total) {
            ControlFlow::Continue(()) => Ok(made),
            ControlFlow::Break(()) => Err(WeightsError::Cancelled),
        }
    }
}

/// A matrix in place of one that is only looked for.
fn stand_in() -> Result<Matrix, WeightsError> {
    PackedMatrix::pack(BlockKind::Q8_0, 1, 32, &[0; 34])
        .map(Matrix::Packed)
        .map_err(|error| WeightsError::Failed(error.to_string()))
}

/// candle's form of a tensor.
fn quantized(info: &TensorInfo, bytes: &[u8]) -> candle_core::Result<QTensor> {
    let Some(dtype) = dtype(info.kind) else { bail!("{} is not computed", info.kind) };
    let storage = QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, dtype)?;
    QTensor::new(storage, info.shape.as_slice())
}

/// Reads a tensor's bytes to `buffer`, which is aligned for any element and no larger than it has to
/// be for long. The file is read, not mapped: a file that shrinks under a mapping ends the process.
fn read<'b>(
    file: &mut File,
    buffer: &'b mut AlignedBytes,
    info: &TensorInfo,
) -> Result<&'b [u8], WeightsError> {
    const LARGE: usize = 16 << 20;
    let length = usize::try_from(info.bytes)
        .map_err(|_| WeightsError::Failed("a tensor is too large for this machine".into()))?;
    let size = buffer.as_slice().len();
    if size < length || size > LARGE.saturating_add(length) {
        // The old one is free before the new one is there.
        *buffer = AlignedBytes::zeroed(0).map_err(no_memory)?;
        *buffer = AlignedBytes::zeroed(length).map_err(no_memory)?;
    }
    let place = &mut buffer.as_mut_slice()[..length];
    file.seek(SeekFrom::Start(info.offset))?;
    file.read_exact(place)?;
    Ok(place)
}

fn no_memory(error: NoMemory) -> WeightsError {
    WeightsError::Failed(format!("{error}. Close other programs, or choose a smaller model"))
}
