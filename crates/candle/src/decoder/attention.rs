//! Grouped-query attention over a cache.

use candle_core::{CpuStorage, CustomOp1, Error, Layout, Result, Shape, bail};
use correx_cpu_kernels::{Heads, Remembered, Threads, View, attend};

use super::ops::contiguous;

/// Rows of queries against what a layer remembers.
///
/// Row `i` sees the tokens that the cache held before, and the new ones up to itself; of them
/// the last ones only where there is a window.
pub(super) struct Attention<'a> {
    pub(super) heads: Heads,
    pub(super) view: View,
    pub(super) remembered: &'a Remembered,
    /// Who computes.
    pub(super) threads: &'a Threads,
}

impl CustomOp1 for Attention<'_> {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(&self, query: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Heads { width, kv, group } = self.heads;
        let (rows, query_width) = layout.shape().dims2()?;
        if query_width != width * kv * group {
            bail!("attention: queries of {query_width} for {width}×{kv}×{group}");
        }
        let mut output = vec![0f32; rows * query_width];
        let query = contiguous(query, layout)?;
        attend(self.heads, self.view, query, self.remembered, &mut output, self.threads)
            .map_err(Error::wrap)?;
        Ok((CpuStorage::F32(output), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{D, DType, Device, Tensor};

    use super::*;

    /// The same by whole-tensor operations.
    fn reference(query: &Tensor, keys: &Tensor, values: &Tensor, about: &Attention) -> Tensor {
        let (rows, width) = query.dims2().unwrap();
        let heads = width / about.heads.width;
        let before = about.view.before;
        let seen = before + rows;
        let split = |tensor: &Tensor, rows: usize, heads: usize| {
            tensor
                .narrow(0, 0, rows)
                .unwrap()
                .reshape((rows, heads, about.heads.width))
                .unwrap()
                .transpose(0, 1)
                .unwrap()
                .contiguous()
                .unwrap()
        };
        let spread = |tensor: Tensor| {
            let (kv, seen, head) = tensor.dims3().unwrap();
            tensor
                .unsqueeze(1)
                .unwrap()
                .expand((kv, about.heads.group, seen, head))
                .unwrap()
                .reshape((kv * about.heads.group, seen, head))
                .unwrap()
        };
        let query = split(query, rows, heads);
        let keys = spread(split(keys, seen, heads / about.heads.group));
        let values = spread(split(values, seen, heads / about.heads.group));
        let scores = (query.matmul(&keys.transpose(1, 2).unwrap().contiguous().unwrap()).unwrap()
            * f64::from(about.view.scale))
        .unwrap();
        let mask: Vec<f32> = (0..rows)
            .flat_map(|row| (0..seen).map(move |token| (row, token)))
            .map(|(row, token)| if token <= before + row { 0.0 } else { f32::NEG_INFINITY })
            .collect();
        let mask = Tensor::from_vec(mask, (1, rows, seen), &Device::Cpu).unwrap();
        let scores = scores.broadcast_add(&mask).unwrap();
        let weights =
            scores.broadcast_sub(&scores.max_keepdim(D::Minus1).unwrap()).unwrap().exp().unwrap();
        let weights = weights.broadcast_div(&weights.sum_keepdim(D::Minus1).unwrap()).unwrap();
        weights.matmul(&values).unwrap().transpose(0, 1).unwrap().reshape((rows, width)).unwrap()
    }

    #[test]
    fn it_agrees_with_whole_tensor_arithmetic_and_sees_no_later_token() {
        let random = |shape: (usize, usize)| {
            Tensor::rand(-1f32, 1.0, shape, &Device::Cpu).unwrap().to_dtype(DType::F32).unwrap()
        };
        let threads = Threads::new(2).unwrap();
        for (before, rows, group) in [(0, 1, 1), (0, 5, 3), (11, 4, 3), (7, 1, 2), (90, 40, 3)] {
            let heads = Heads { width: 12, kv: 2, group };
            let query = random((rows, 12 * 2 * group));
            let (keys, values) = (random((144, 24)), random((144, 24)));
            let flat = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let mut remembered = Remembered::new(24);
            remembered.reserve(144).unwrap();
            remembered.write(0, &flat(&keys), &flat(&values)).unwrap();
            let view = View { before, window: None, scale: 0.3, cap: None };
            let about = Attention { heads, view, remembered: &remembered, threads: &threads };
            let found = query.apply_op1_no_bwd(&about).unwrap();
            let expected = reference(&query, &keys, &values, &about);
            let worst = (found - expected).unwrap().abs().unwrap().max_all().unwrap();
            assert!(worst.to_scalar::<f32>().unwrap() < 1e-5);
            let too_many = Attention { view: View { before: 144, ..view }, ..about };
            assert!(query.apply_op1_no_bwd(&too_many).is_err());
            assert!(random((1, 12)).apply_op1_no_bwd(&too_many).is_err());
        }
    }
}
