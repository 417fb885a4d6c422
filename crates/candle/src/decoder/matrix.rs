//! Weights that are multiplied with.

use std::borrow::Cow;

use candle_core::quantized::{GgmlDType, QStorage, QuantizedType};
use candle_core::{CpuStorage, Device, Error, Result, Tensor, bail};
use correx_cpu_kernels::{BlockKind, PackedMatrix, Product, QuantizedRows, Threads, multiply_many};

use super::ops::with_numbers;
use correx_gguf::TensorType;

/// A matrix of weights.
pub(super) enum Matrix {
    /// Of a type that our own kernels multiply.
    Packed(PackedMatrix),
    /// Of any other type: candle's.
    Candle(CandleMatrix),
}

/// A matrix that candle multiplies, by its plain products: those of `QTensor` are computed in
/// other ways for one row than for many, so that a result would depend on its neighbours, and
/// keep a second copy of the weights.
pub(super) struct CandleMatrix {
    rows: usize,
    columns: usize,
    weights: Box<dyn QuantizedType>,
}

impl CandleMatrix {
    pub(super) fn new(kind: TensorType, rows: usize, columns: usize, bytes: &[u8]) -> Result<Self> {
        let Some(dtype) = dtype(kind) else { bail!("{kind} is not computed") };
        match QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, dtype)? {
            QStorage::Cpu(weights) => Ok(Self { rows, columns, weights }),
            _ => bail!("the weights are not in this machine's memory"),
        }
    }

    fn multiply(&self, input: &Tensor) -> Result<Tensor> {
        let (rows, columns) = input.dims2()?;
        if columns != self.columns {
            bail!("rows of {columns} for a matrix of {} columns", self.columns);
        }
        let mut output = vec![0f32; rows * self.rows];
        with_numbers(input, |input| {
            self.weights.matmul_t((rows, columns, self.rows), input, &mut output)
        })?;
        Tensor::from_vec(output, (rows, self.rows), &Device::Cpu)
    }

    fn rows(&self, ids: &[u32]) -> Result<Tensor> {
        match self.weights.embedding(ids, self.rows, self.columns)? {
            CpuStorage::F32(rows) => {
                Tensor::from_vec(rows, (ids.len(), self.columns), &Device::Cpu)
            }
            _ => bail!("the rows are no single-precision numbers"),
        }
    }
}

/// candle's name of a tensor type; `None`: it cannot be computed with.
pub(super) fn dtype(kind: TensorType) -> Option<GgmlDType> {
    Some(match kind {
        TensorType::F32 => GgmlDType::F32,
        TensorType::F16 => GgmlDType::F16,
        TensorType::BF16 => GgmlDType::BF16,
        TensorType::Q4_0 => GgmlDType::Q4_0,
        TensorType::Q4_1 => GgmlDType::Q4_1,
        TensorType::Q5_0 => GgmlDType::Q5_0,
        TensorType::Q5_1 => GgmlDType::Q5_1,
        TensorType::Q8_0 => GgmlDType::Q8_0,
        TensorType::Q2K => GgmlDType::Q2K,
        TensorType::Q3K => GgmlDType::Q3K,
        TensorType::Q4K => GgmlDType::Q4K,
        TensorType::Q5K => GgmlDType::Q5K,
        TensorType::Q6K => GgmlDType::Q6K,
        _ => return None,
    })
}

/// The kind of blocks of a tensor type, where our own kernels know it.
pub(crate) fn packed_kind(kind: TensorType) -> Option<BlockKind> {
    match kind {
        TensorType::Q4_1 => Some(BlockKind::Q4_1),
        TensorType::Q5_0 => Some(BlockKind::Q5_0),
        TensorType::Q8_0 => Some(BlockKind::Q8_0),
        _ => None,
    }
}

impl Matrix {
    /// Every row of `input` times the matrix.
    pub(super) fn multiply(&self, input: &Tensor, threads: &Threads) -> Result<Tensor> {
        let [output] = multiply_all([self], input, threads)?;
        Ok(output)
    }

    /// The rows that `ids` name, as numbers.
    pub(super) fn rows(&self, ids: &[u32]) -> Result<Tensor> {
        match self {
            Matrix::Candle(matrix) => matrix.rows(ids),
            Matrix::Packed(matrix) => {
                let mut rows = vec![0f32; ids.len() * matrix.columns()];
                for (id, row) in ids.iter().zip(rows.chunks_exact_mut(matrix.columns())) {
                    matrix.row(*id as usize, row).map_err(Error::wrap)?;
                }
                Tensor::from_vec(rows, (ids.len(), matrix.columns()), &Device::Cpu)
            }
        }
    }
}

/// Every row of `input` times every matrix. What can be is computed in one go.
pub(super) fn multiply_all<const N: usize>(
    matrices: [&Matrix; N],
    input: &Tensor,
    threads: &Threads,
) -> Result<[Tensor; N]> {
    let rows = input.dim(0)?;
    let mut outputs: [Vec<f32>; N] = std::array::from_fn(|_| Vec::new());
    let mut products = Vec::with_capacity(N);
    for (matrix, output) in matrices.iter().zip(&mut outputs) {
        if let Matrix::Packed(matrix) = matrix {
            *output = vec![0.0; rows * matrix.rows()];
            products.push(Product { matrix, output });
        }
    }
    if !products.is_empty() {
        let columns = input.dim(1)?;
        with_numbers(input, |input| {
            let input = QuantizedRows::new(input, columns).map_err(Error::wrap)?;
            multiply_many(&input, products, threads).map_err(Error::wrap)
        })?;
    }
    let mut tensors = Vec::with_capacity(N);
    for (matrix, output) in matrices.iter().zip(outputs) {
        tensors.push(match matrix {
            Matrix::Packed(matrix) => {
                Tensor::from_vec(output, (rows, matrix.rows()), &Device::Cpu)?
            }
            Matrix::Candle(matrix) => matrix.multiply(input)?,
        });
    }
    match <[Tensor; N]>::try_from(tensors) {
        Ok(tensors) => Ok(tensors),
        Err(_) => bail!("a product is missing"),
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::QTensor;

    use super::*;

    #[test]
    fn a_row_times_any_matrix_is_the_same_beside_other_rows() {
        let random = |rows: usize| Tensor::rand(-1f32, 1.0, (rows, 512), &Device::Cpu).unwrap();
        let (weights, input) = (random(33), random(40));
        let threads = Threads::new(2).unwrap();
        for kind in [
            TensorType::F32,
            TensorType::F16,
            TensorType::BF16,
            TensorType::Q4_0,
            TensorType::Q5_1,
            TensorType::Q2K,
            TensorType::Q3K,
            TensorType::Q4K,
            TensorType::Q5K,
            TensorType::Q6K,
        ] {
            let stored = QTensor::quantize(&weights, dtype(kind).unwrap()).unwrap();
            let matrix = CandleMatrix::new(kind, 33, 512, &stored.data().unwrap()).unwrap();
            let matrix = Matrix::Candle(matrix);
            let together = matrix.multiply(&input, &threads).unwrap().to_vec2::<f32>().unwrap();
            let exact = stored.dequantize(&Device::Cpu).unwrap();
            let exact = input.matmul(&exact.t().unwrap()).unwrap().to_vec2::<f32>().unwrap();
            for row in 0..40 {
                let alone = input.narrow(0, row, 1).unwrap();
                let alone = matrix.multiply(&alone, &threads).unwrap().to_vec2::<f32>().unwrap();
                assert_eq!(alone[0], together[row], "{kind}");
                for (found, exact) in together[row].iter().zip(&exact[row]) {
                    assert!((found - exact).abs() < 0.2, "{kind}: {found} for {exact}");
                }
            }
        }
    }
}
