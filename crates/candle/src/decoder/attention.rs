//! Grouped-query attention over a cache.

use std::sync::{Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, bail};
use correx_cpu_kernels::Threads;

use super::ops::contiguous;

/// Products of queries and keys up to which one thread does everything.
const INLINE: usize = 200_000;

/// Rows of queries against a cache's keys and values.
///
/// Row `i` sees the `before` tokens that the cache held, and the new ones up to itself. Every
/// row and head is summed over the tokens in order, so threads and neighbours change nothing.
pub(super) struct Attention<'a> {
    /// Width of a head.
    pub(super) head: usize,
    /// Query heads per key head.
    pub(super) group: usize,
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
        let (rows, query_width) = layout.shape().dims2()?;
        let (capacity, width) = keys_layout.shape().dims2()?;
        if self.before + rows > capacity
            || query_width != width * self.group
            || !width.is_multiple_of(self.head)
            || keys_layout.shape() != values_layout.shape()
        {
            bail!("attention: {rows}×{query_width} over {capacity}×{width}");
        }
        let query = contiguous(query, layout)?;
        let keys = contiguous(keys, keys_layout)?;
        let values = contiguous(values, values_layout)?;
        let share = self.group * self.head;
        let mut output = vec![0f32; rows * query_width];
        // A piece of work is one row's heads over one key head; each is taken by one thread only.
        let work: Vec<Mutex<&mut [f32]>> = output.chunks_exact_mut(share).map(Mutex::new).collect();
        let kv_heads = width / self.head;
        let compute = |piece: usize| {
            let mut scores = Vec::new();
            {
                let (row, kv_head) = (piece / kv_heads, piece % kv_heads);
                let offset = kv_head * self.head;
                let seen = self.before + row + 1;
                let mut output = work[piece].lock().unwrap_or_else(PoisonError::into_inner);
                for (query, output) in query[piece * share..(piece + 1) * share]
                    .chunks_exact(self.head)
                    .zip(output.chunks_exact_mut(self.head))
                {
                    let of = |rows: &'_ [f32], token: usize| -> std::ops::Range<usize> {
                        debug_assert!(rows.len() >= (token + 1) * width);
                        token * width + offset..token * width + offset + self.head
                    };
                    scores.clear();
                    scores.extend((0..seen).map(|token| dot(query, &keys[of(keys, token)])));
                    softmax(&mut scores, 1.0 / (self.head as f32).sqrt());
                    for (token, share) in scores.iter().enumerate() {
                        for (sum, value) in output.iter_mut().zip(&values[of(values, token)]) {
                            *sum += share * value;
                        }
                    }
                }
            }
        };
        // Waking threads costs more than little work does.
        if rows * (self.before + rows) * query_width < INLINE {
            (0..work.len()).for_each(compute);
        } else {
            self.threads.each(work.len(), compute);
        }
        drop(work);
        Ok((CpuStorage::F32(output), layout.shape().clone()))
    }
}

/// In eight lanes that are added at the end, so that the compiler can use wide registers.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0f32; 8];
    let (lefts, rights) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest: f32 =
        lefts.remainder().iter().zip(rights.remainder()).map(|(left, right)| left * right).sum();
    for (left, right) in lefts.zip(rights) {
        for lane in 0..8 {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest
}

fn softmax(scores: &mut [f32], scale: f32) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = ((*score - most) * scale).exp();
        sum += *score;
    }
    for score in scores.iter_mut() {
        *score /= sum;
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{D, DType, Device, Tensor};

    use super::*;

    /// The same by whole-tensor operations.
    fn reference(query: &Tensor, keys: &Tensor, values: &Tensor, about: &Attention) -> Tensor {
        let (rows, width) = query.dims2().unwrap();
        let heads = width / about.head;
        let seen = about.before + rows;
        let split = |tensor: &Tensor, rows: usize, heads: usize| {
            tensor
                .narrow(0, 0, rows)
                .unwrap()
                .reshape((rows, heads, about.head))
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
                .expand((kv, about.group, seen, head))
                .unwrap()
                .reshape((kv * about.group, seen, head))
                .unwrap()
        };
        let query = split(query, rows, heads);
        let keys = spread(split(keys, seen, heads / about.group));
        let values = spread(split(values, seen, heads / about.group));
        let scores = (query.matmul(&keys.transpose(1, 2).unwrap().contiguous().unwrap()).unwrap()
            / (about.head as f64).sqrt())
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
            let about = Attention { head: 12, group, before, threads: &threads };
            let query = random((rows, 12 * 2 * group));
            let (keys, values) = (random((140, 24)), random((140, 24)));
            let found = query.apply_op3_no_bwd(&keys, &values, &about).unwrap();
            let expected = reference(&query, &keys, &values, &about);
            let worst = (found - expected).unwrap().abs().unwrap().max_all().unwrap();
            assert!(worst.to_scalar::<f32>().unwrap() < 1e-5);
        }
        let about = Attention { head: 12, group: 1, before: 20, threads: &threads };
        let too_many =
            random((1, 24)).apply_op3_no_bwd(&random((20, 24)), &random((20, 24)), &about);
        assert!(too_many.is_err());
    }
}
