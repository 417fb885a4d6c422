//! What happens between the matrix products. Every row by itself, in one fixed order.

use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, Device, Error, Layout, Result, Shape, Storage, Tensor, bail,
};
use correx_cpu_kernels::{Threads, geglu, swiglu};

use super::config::{Gate, Pairs, Turns};

/// The numbers of a tensor that lies in one piece.
pub(super) fn contiguous<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => bail!("the tensor does not lie in one piece"),
    }
}

/// What `work` makes of the numbers of a tensor that lies in one piece.
pub(super) fn with_numbers<T>(
    tensor: &Tensor,
    work: impl FnOnce(&[f32]) -> Result<T>,
) -> Result<T> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => work(contiguous(storage, layout)?),
        _ => bail!("the tensor is not in this machine's memory"),
    }
}

/// Root-mean-square norm of every row, or of every part of it as long as the weight, times a
/// weight per column.
pub(super) struct RmsNorm {
    pub(super) epsilon: f32,
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(
        &self,
        input: &CpuStorage,
        layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let input = contiguous(input, layout)?;
        let weight = contiguous(weight, weight_layout)?;
        let mut output = Vec::with_capacity(input.len());
        for row in input.chunks_exact(weight.len()) {
            let mean = sum_of_squares(row) / row.len() as f32;
            let scale = 1.0 / (mean + self.epsilon).sqrt();
            output.extend(row.iter().zip(weight).map(|(element, weight)| element * scale * weight));
        }
        Ok((CpuStorage::F32(output), layout.shape().clone()))
    }
}

/// In eight lanes that are added at the end, so that the compiler can use wide registers.
fn sum_of_squares(row: &[f32]) -> f32 {
    let mut lanes = [0f32; 8];
    let chunks = row.chunks_exact(8);
    let rest: f32 = chunks.remainder().iter().map(|element| element * element).sum();
    for chunk in chunks {
        for (lane, element) in lanes.iter_mut().zip(chunk) {
            *lane += element * element;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// `silu(gate) * up` or `gelu(gate) * up`, element by element.
pub(super) struct Gated<'a> {
    pub(super) gate: Gate,
    /// Who computes.
    pub(super) threads: &'a Threads,
}

impl CustomOp2 for Gated<'_> {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn cpu_fwd(
        &self,
        gate: &CpuStorage,
        layout: &Layout,
        up: &CpuStorage,
        up_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let mut output = contiguous(gate, layout)?.to_vec();
        let gate = match self.gate {
            Gate::Silu => swiglu,
            Gate::Gelu => geglu,
        };
        gate(&mut output, contiguous(up, up_layout)?, self.threads).map_err(Error::wrap)?;
        Ok((CpuStorage::F32(output), layout.shape().clone()))
    }
}

/// `cap * tanh(number / cap)`, element by element.
pub(super) struct SoftCap {
    pub(super) cap: f32,
}

impl CustomOp1 for SoftCap {
    fn name(&self) -> &'static str {
        "soft-cap"
    }

    fn cpu_fwd(&self, input: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let capped = |number: &f32| self.cap * (number / self.cap).tanh();
        let output = contiguous(input, layout)?.iter().map(capped).collect();
        Ok((CpuStorage::F32(output), layout.shape().clone()))
    }
}

/// The rotation of every position by its turns: a row of cosines, then sines, one each per
/// rotated pair.
pub(super) fn rotation(positions: &[(usize, &Turns)]) -> Result<Tensor> {
    let pairs = positions.first().map_or(0, |(_, turns)| turns.speeds.len());
    let mut table = Vec::with_capacity(positions.len() * pairs * 2);
    for (position, turns) in positions {
        let angles = turns.speeds.iter().map(|speed| *position as f64 * speed);
        let part = |part: fn(f64) -> f64| move |angle: f64| (part(angle) * turns.magnitude) as f32;
        table.extend(angles.clone().map(part(f64::cos)));
        table.extend(angles.map(part(f64::sin)));
    }
    Tensor::from_vec(table, (positions.len(), pairs * 2), &Device::Cpu)
}

/// Rotates the pairs of every head by the rotation of its row; what is not rotated stays.
pub(super) struct Rope {
    pub(super) pairs: Pairs,
    /// Width of a head.
    pub(super) head: usize,
}

impl CustomOp2 for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn cpu_fwd(
        &self,
        input: &CpuStorage,
        layout: &Layout,
        rotation: &CpuStorage,
        rotation_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (rows, width) = layout.shape().dims2()?;
        let (turns, twice) = rotation_layout.shape().dims2()?;
        let pairs = twice / 2;
        if rows != turns || !width.is_multiple_of(self.head) || twice > self.head {
            bail!("rope: {rows}×{width} by {turns}×{twice}");
        }
        let mut output = contiguous(input, layout)?.to_vec();
        let rotation = contiguous(rotation, rotation_layout)?;
        for (row, turn) in output.chunks_exact_mut(width).zip(rotation.chunks_exact(twice)) {
            let (cosines, sines) = turn.split_at(pairs);
            for head in row.chunks_exact_mut(self.head) {
                for pair in 0..pairs {
                    let (first, second) = match self.pairs {
                        Pairs::Neighbours => (2 * pair, 2 * pair + 1),
                        Pairs::Halves => (pair, pair + pairs),
                    };
                    let (x, y) = (head[first], head[second]);
                    head[first] = x * cosines[pair] - y * sines[pair];
                    head[second] = x * sines[pair] + y * cosines[pair];
                }
            }
        }
        Ok((CpuStorage::F32(output), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &Tensor, expected: &[f32]) {
        let found = found.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
        }
    }

    #[test]
    fn a_norm_scales_every_row_to_its_weights() {
        let rows = Tensor::new(&[[3f32, 4.0], [0.0, 2.0]], &Device::Cpu).unwrap();
        let weight = Tensor::new(&[1f32, 2.0], &Device::Cpu).unwrap();
        let found = rows.apply_op2_no_bwd(&weight, &RmsNorm { epsilon: 0.0 }).unwrap();
        let root = 12.5f32.sqrt();
        close(&found, &[3.0 / root, 8.0 / root, 0.0, 2.0 * 2f32.sqrt()]);
    }

    #[test]
    fn a_soft_cap_keeps_small_numbers_and_bounds_large_ones() {
        let row = Tensor::new(&[[0f32, 0.01, 5.0, -1000.0]], &Device::Cpu).unwrap();
        let found = row.apply_op1_no_bwd(&SoftCap { cap: 10.0 }).unwrap();
        close(&found, &[0.0, 0.01, 10.0 * 0.5f32.tanh(), -10.0]);
    }

    #[test]
    fn rope_turns_neighbours_or_halves_and_leaves_the_rest() {
        let quarter = std::f64::consts::FRAC_PI_2;
        let turns = Turns { speeds: vec![quarter, 2.0 * quarter], magnitude: 2.0 };
        let table = rotation(&[(1, &turns)]).unwrap();
        let row = Tensor::new(&[[1f32, 2.0, 3.0, 4.0, 9.0, 9.0]], &Device::Cpu).unwrap();
        let turn = |pairs| row.apply_op2_no_bwd(&table, &Rope { pairs, head: 6 }).unwrap();
        close(&turn(Pairs::Neighbours), &[-4.0, 2.0, -6.0, -8.0, 9.0, 9.0]);
        close(&turn(Pairs::Halves), &[-6.0, -4.0, 2.0, -8.0, 9.0, 9.0]);
    }
}
