//! The tensors of a model, checked against its numbers.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use candle_core::quantized::{QStorage, QTensor};
use candle_core::{Device, Tensor, bail};
use correx_cpu_kernels::{PackedMatrix, Threads};
use thiserror::Error;

use super::config::DecoderConfig;
use super::matrix::{Matrix, dtype, multiply_all, packed_kind};
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

/// One layer.
pub(super) struct Layer {
    pub(super) attention_norm: Tensor,
    pub(super) query: Linear,
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) output: Linear,
    pub(super) feed_norm: Tensor,
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
}

/// All layers and what stands before and behind them.
pub(super) struct Weights {
    pub(super) embedding: Matrix,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Tensor,
    /// `None`: the embedding serves as the output too.
    pub(super) output: Option<Matrix>,
    /// Divides the speed of every rotated pair (Llama 3.1 and later).
    rope_factors: Option<Vec<f32>>,
}

impl Weights {
    pub(super) fn load(
        gguf: &Gguf,
        config: &DecoderConfig,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Self, WeightsError> {
        let mut source = Source {
            gguf,
            files: gguf
                .parts
                .iter()
                .map(|part| File::open(&part.path))
                .collect::<Result<_, _>>()?,
            buffer: Vec::new(),
            loaded: 0,
            total: gguf.tensors.values().map(|tensor| tensor.bytes).sum(),
            progress,
        };
        let (width, inner) = (config.width, config.inner);
        let embedding = source.matrix("token_embd.weight", config.vocabulary, width)?;
        let mut layers = Vec::new();
        for number in 0..config.layers {
            let name = |part: &str| format!("blk.{number}.{part}");
            layers.push(Layer {
                attention_norm: source.vector(&name("attn_norm.weight"), width)?,
                query: source.linear(&name("attn_q"), config.query_width(), width)?,
                key: source.linear(&name("attn_k"), config.kv_width(), width)?,
                value: source.linear(&name("attn_v"), config.kv_width(), width)?,
                output: source.linear(&name("attn_output"), width, config.query_width())?,
                feed_norm: source.vector(&name("ffn_norm.weight"), width)?,
                gate: source.linear(&name("ffn_gate"), inner, width)?,
                up: source.linear(&name("ffn_up"), inner, width)?,
                down: source.linear(&name("ffn_down"), width, inner)?,
            });
        }
        let output = match gguf.tensors.contains_key("output.weight") {
            true => Some(source.matrix("output.weight", config.vocabulary, width)?),
            false => None,
        };
        let rope_factors = match gguf.tensors.contains_key("rope_freqs.weight") {
            true => Some(
                source.vector("rope_freqs.weight", config.rope.speeds.len())?.to_vec1::<f32>()?,
            ),
            false => None,
        };
        Ok(Self {
            embedding,
            layers,
            norm: source.vector("output_norm.weight", width)?,
            output,
            rope_factors,
        })
    }

    /// The speeds of rotation with the file's own factors applied.
    pub(super) fn rope_speeds(&self, speeds: &[f64]) -> Vec<f64> {
        match &self.rope_factors {
            Some(factors) => speeds
                .iter()
                .zip(factors)
                .map(|(speed, factor)| speed / f64::from(*factor))
                .collect(),
            None => speeds.to_vec(),
        }
    }
}

/// Reads tensors one after another.
struct Source<'a> {
    gguf: &'a Gguf,
    /// One for every part of the model.
    files: Vec<File>,
    buffer: Vec<u8>,
    loaded: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>,
}

impl Source<'_> {
    fn linear(&mut self, name: &str, rows: usize, columns: usize) -> Result<Linear, WeightsError> {
        let bias = format!("{name}.bias");
        Ok(Linear {
            matrix: self.matrix(&format!("{name}.weight"), rows, columns)?,
            bias: match self.gguf.tensors.contains_key(&bias) {
                true => Some(self.vector(&bias, rows)?),
                false => None,
            },
        })
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, WeightsError> {
        self.tensor(name, &[rows, columns], |info, bytes| match packed_kind(info.kind) {
            Some(kind) => PackedMatrix::pack(kind, rows, columns, bytes)
                .map(Matrix::Packed)
                .map_err(|error| WeightsError::Failed(error.to_string())),
            None => Ok(Matrix::Candle(quantized(info, bytes)?)),
        })
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Tensor, WeightsError> {
        self.tensor(name, &[length], |info, bytes| {
            Ok(quantized(info, bytes)?.dequantize(&Device::Cpu)?)
        })
    }

    /// Reads a tensor's bytes and makes of them what is needed.
    fn tensor<T>(
        &mut self,
        name: &str,
        shape: &[usize],
        make: impl FnOnce(&TensorInfo, &[u8]) -> Result<T, WeightsError>,
    ) -> Result<T, WeightsError> {
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
        let file = self.files.get_mut(info.part);
        let file = file.ok_or_else(|| WeightsError::Missing(name.to_owned()))?;
        let bytes = read(file, &mut self.buffer, info)?;
        let tensor = make(info, bytes)?;
        self.loaded += info.bytes;
        match (self.progress)(self.loaded, self.total) {
            ControlFlow::Continue(()) => Ok(tensor),
            ControlFlow::Break(()) => Err(WeightsError::Cancelled),
        }
    }
}

/// candle's form of a tensor.
fn quantized(info: &TensorInfo, bytes: &[u8]) -> candle_core::Result<QTensor> {
    let Some(dtype) = dtype(info.kind) else { bail!("{} is not computed", info.kind) };
    let storage = QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, dtype)?;
    QTensor::new(storage, info.shape.as_slice())
}

/// Reads a tensor's bytes to a place in `buffer` that is aligned for any element. The file is
/// read, not mapped: a file that shrinks under a mapping ends the process.
fn read<'b>(
    file: &mut File,
    buffer: &'b mut Vec<u8>,
    info: &TensorInfo,
) -> Result<&'b [u8], WeightsError> {
    const ALIGN: usize = 64;
    let length = usize::try_from(info.bytes)
        .map_err(|_| WeightsError::Failed("a tensor is too large for this machine".into()))?;
    if buffer.len() < length + ALIGN {
        buffer.resize(length + ALIGN, 0);
    }
    let start = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
    let place = &mut buffer[start..start + length];
    file.seek(SeekFrom::Start(info.offset))?;
    file.read_exact(place)?;
    Ok(place)
}
