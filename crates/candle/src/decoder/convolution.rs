//! Short convolutions over the tokens of a sequence, in place of attention (LFM 2).
//!
//! What is convolved stays in the cache as one row per token, so that a sequence can be cut back
//! to any position and a prompt evaluated in any chunks.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use correx_cpu_kernels::Threads;

use super::Segment;
use super::cache::Rows;
use super::ops::contiguous;
use super::weights::{Linear, Source, WeightsError};

/// The weights of a layer that convolves.
pub(super) struct Convolution {
    /// What the other two parts are multiplied by before and behind, and what is convolved.
    before: Linear,
    behind: Linear,
    convolved: Linear,
    /// A row for every column of what is convolved: weights of the last tokens, the oldest first.
    kernel: Tensor,
    output: Linear,
}

impl Convolution {
    /// Reads layer `number`, in which every token sees `length` tokens, itself included.
    pub(super) fn load(
        source: &mut Source<'_>,
        number: usize,
        width: usize,
        length: usize,
    ) -> std::result::Result<Self, WeightsError> {
        let name = |part: &str| format!("blk.{number}.shortconv.{part}");
        let [before, behind, convolved] = source.fused(&name("in_proj"), [width; 3], width)?;
        let kernel = source.numbers(&name("conv.weight"), &[width, length])?;
        let output = source.linear(&name("out_proj"), width, width)?;
        Ok(Self { before, behind, convolved, kernel, output })
    }

    /// Every row by what its sequence holds in layer `number`.
    pub(super) fn apply(
        &self,
        number: usize,
        input: &Tensor,
        segments: &mut [Segment<'_>],
        threads: &Threads,
    ) -> Result<Tensor> {
        let parts = [&self.before, &self.behind, &self.convolved];
        let [before, behind, input] = Linear::apply_all(parts, input, threads)?;
        let input = (before * input)?;
        let mut convolved = Vec::with_capacity(segments.len());
        let mut row = 0;
        for segment in segments.iter_mut() {
            let rows = segment.ids.len();
            let new = input.narrow(0, row, rows)?;
            segment.cache.write_convolved(number, &new)?;
            let remembered = segment.cache.convolved(number)?;
            let before = segment.cache.len();
            convolved.push(new.apply_op2_no_bwd(&self.kernel, &Convolve { remembered, before })?);
            row += rows;
        }
        let convolved = Tensor::cat(&convolved, 0)?;
        self.output.apply(&(behind * convolved)?, threads)
    }
}

/// The last rows up to every new one, each times its weights, added up from the oldest on.
struct Convolve<'a> {
    /// What is convolved, the new rows included.
    remembered: &'a Rows,
    /// Tokens before the new ones.
    before: usize,
}

impl CustomOp2 for Convolve<'_> {
    fn name(&self) -> &'static str {
        "convolve"
    }

    fn cpu_fwd(
        &self,
        new: &CpuStorage,
        layout: &Layout,
        kernel: &CpuStorage,
        kernel_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, width) = layout.shape().dims2()?;
        let (columns, length) = kernel_layout.shape().dims2()?;
        if columns != width {
            bail!("convolve: rows of {width} by {columns}×{length}");
        }
        let kernel = contiguous(kernel, kernel_layout)?;
        let mut output = vec![0f32; contiguous(new, layout)?.len()];
        for (token, output) in (self.before..).zip(output.chunks_exact_mut(width)) {
            for place in 0..length {
                // What would stand before the first token is zero.
                let Some(seen) = (token + place + 1).checked_sub(length) else { continue };
                let Some(row) = self.remembered.row(seen) else {
                    bail!("there is no token {seen} to convolve")
                };
                let weights = kernel.chunks_exact(length).map(|weights| weights[place]);
                for ((sum, number), weight) in output.iter_mut().zip(row).zip(weights) {
                    *sum += number * weight;
                }
            }
        }
        Ok((CpuStorage::F32(output), layout.shape().clone()))
    }
}
