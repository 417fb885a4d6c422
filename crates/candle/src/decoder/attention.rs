//! Grouped-query attention over a cache.

use candle_core::{CpuStorage, CustomOp3, Error, Layout, Result, Shape, bail};
use correx_cpu_kernels::{Heads, Threads, attend};

use super::ops::contiguous;

/// Rows of queries against a cache's keys and values.
///
/// Row `i` sees the `before` tokens that the cache held, and the new ones up to itself.
pub(super) struct Attention<'a> {
    pub(super) heads: Heads,
    /// Tokens in the cache before the new ones.
    pub(super) before: usize,
    /// Who computes.
    pub(super) threads: &'a Threads,
}

impl CustomOp3 for Attention<'_> {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        query: &CpuStorage,
        layout: &Layout,
        keys: &CpuStorage,
        keys_layout: &Layout,
        values: &CpuStorage,
        values_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let Heads { width, kv, group } = self.heads;
        let (rows, query_width) = layout.shape().dims2()?;
        let (capacity, kv_width) = keys_layout.shape().dims2()?;
        if query_width != width * kv * group
            || kv_width != width * kv
            || keys_layout.shape() != values_layout.shape()
        {
            bail!("attention: {rows}×{query_width} over {capacity}×{kv_width}");
        }
        let mut output = vec![0f32; rows * query_width];
        attend(
            self.heads,
            self.before,
            contiguous(query, layout)?,
            contiguous(keys, keys_layout)?,
            contiguous(values, values_layout)?,
            &mut output,
            self.threads,
        )
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
        let seen = about.before + rows;
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
            / (about.heads.width as f64).sqrt())
        .unwrap();
        let mask: Vec<f32> = (0..rows)
            .flat_map(|row| (0..seen).map(move |token| (row, token)))
            .map(|(row, token)| if token <= about.before + row { 0.0 } else { f32::NEG_INFINITY })
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
            let about =
                Attention { heads: Heads { width: 12, kv: 2, group }, before, threads: &threads };
            let query = random((rows, 12 * 2 * group));
            let (keys, values) = (random((140, 24)), random((140, 24)));
            let found = query.apply_op3_no_bwd(&keys, &values, &about).unwrap();
            let expected = reference(&query, &keys, &values, &about);
            let worst = (found - expected).unwrap().abs().unwrap().max_all().unwrap();
            assert!(worst.to_scalar::<f32>().unwrap() < 1e-5);
        }
        let about = Attention {
            heads: Heads { width: 12, kv: 2, group: 1 },
            before: 20,
            threads: &threads,
        };
        let too_many =
            random((1, 24)).apply_op3_no_bwd(&random((20, 24)), &random((20, 24)), &about);
        assert!(too_many.is_err());
    }
}
