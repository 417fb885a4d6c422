//! A mixture of experts: every row asks the few whom a router chooses for it.
//!
//! An expert answers all its rows at once. A row adds up its answers in the order of the experts,
//! so that its sum does not depend on the rows beside it.

use candle_core::{Device, Result, Tensor};
use correx_cpu_kernels::Threads;

use super::config::{ExpertsConfig, Gate, Routing, Scores};
use super::feed::FeedForward;
use super::matrix::Matrix;
use super::ops::with_numbers;
use super::weights::{Source, WeightsError};

/// The least that shares are divided by: the smallest normal number of half precision.
const LEAST_SUM: f32 = 6.103_515_6e-5;

/// The experts of a layer, and who chooses.
pub(super) struct Experts {
    router: Matrix,
    /// Added to the scores when experts are chosen, not to their shares.
    bias: Option<Tensor>,
    routing: Routing,
    experts: Vec<FeedForward>,
    shared: Option<Shared>,
}

/// The expert whom every row asks.
struct Shared {
    /// What a row is multiplied by to give the logit of its share; `None`: it counts in full.
    gate: Option<Tensor>,
    feed: FeedForward,
}

impl Experts {
    /// Reads the experts of layer `number`.
    pub(super) fn load(
        source: &mut Source<'_>,
        number: usize,
        width: usize,
        config: &ExpertsConfig,
    ) -> std::result::Result<Self, WeightsError> {
        let name = |part: &str| format!("blk.{number}.{part}");
        let (count, inner) = (config.count, config.inner);
        let router = source.matrix(&name("ffn_gate_inp.weight"), count, width)?;
        let bias = source.vector_if(config.biased, &name("exp_probs_b.bias"), count)?;
        let gates = source.stacked(&name("ffn_gate_exps.weight"), count, inner, width)?;
        let ups = source.stacked(&name("ffn_up_exps.weight"), count, inner, width)?;
        let downs = source.stacked(&name("ffn_down_exps.weight"), count, width, inner)?;
        let experts = gates.into_iter().zip(ups).zip(downs);
        let experts = experts.map(|((gate, up), down)| FeedForward { gate, up, down }).collect();
        let shared = match config.shared {
            None => None,
            Some(inner) => Some(Shared {
                gate: match config.shared_is_gated {
                    true => Some(source.row(&name("ffn_gate_inp_shexp.weight"), width)?),
                    false => None,
                },
                feed: FeedForward {
                    gate: source.linear(&name("ffn_gate_shexp"), inner, width)?,
                    up: source.linear(&name("ffn_up_shexp"), inner, width)?,
                    down: source.linear(&name("ffn_down_shexp"), width, inner)?,
                },
            }),
        };
        Ok(Self { router, bias, routing: config.routing, experts, shared })
    }

    /// What the experts make of every row. `stop` is asked between experts; `None`: it said so.
    pub(super) fn apply(
        &self,
        input: &Tensor,
        gate: Gate,
        threads: &Threads,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Tensor>> {
        let (rows, width) = input.dims2()?;
        let mut asked = vec![Vec::new(); self.experts.len()];
        let bias = self.bias.as_ref().map(Tensor::to_vec1::<f32>).transpose()?;
        let logits = self.router.multiply(input, threads)?.to_vec2::<f32>()?;
        for (row, logits) in logits.into_iter().enumerate() {
            for (expert, share) in self.routing.choose(logits, bias.as_deref()) {
                asked[expert].push((row, share));
            }
        }
        let mut output = vec![0f32; rows * width];
        for (expert, rows) in self.experts.iter().zip(asked).filter(|(_, rows)| !rows.is_empty()) {
            if stop() {
                return Ok(None);
            }
            let answers = expert.apply(&gathered(input, &rows)?, gate, threads)?;
            with_numbers(&answers, |answers| {
                for ((row, share), answer) in rows.iter().zip(answers.chunks_exact(width)) {
                    add(&mut output[row * width..][..width], answer, *share);
                }
                Ok(())
            })?;
        }
        if let Some(shared) = &self.shared {
            let answers = shared.feed.apply(input, gate, threads)?;
            let gate = shared.gate.as_ref().map(Tensor::to_vec1::<f32>).transpose()?;
            with_numbers(input, |input| {
                with_numbers(&answers, |answers| {
                    let rows = input.chunks_exact(width).zip(answers.chunks_exact(width));
                    for (sum, (row, answer)) in output.chunks_exact_mut(width).zip(rows) {
                        add(sum, answer, share(row, gate.as_deref()));
                    }
                    Ok(())
                })
            })?;
        }
        Ok(Some(Tensor::from_vec(output, (rows, width), &Device::Cpu)?))
    }
}

/// How much of the shared expert's answer a row takes.
fn share(row: &[f32], gate: Option<&[f32]>) -> f32 {
    match gate {
        None => 1.0,
        Some(gate) => sigmoid(row.iter().zip(gate).map(|(number, by)| number * by).sum()),
    }
}

impl Routing {
    /// The experts of a row, and the share of each, by the router's logits.
    fn choose(&self, mut scores: Vec<f32>, bias: Option<&[f32]>) -> Vec<(usize, f32)> {
        match self.scores {
            Scores::Softmax => softmax(&mut scores),
            Scores::Sigmoid => scores.iter_mut().for_each(|score| *score = sigmoid(*score)),
        }
        let rank = |expert: usize| {
            let bias = bias.and_then(|bias| bias.get(expert)).copied().unwrap_or(0.0);
            scores[expert] + bias
        };
        let mut order: Vec<usize> = (0..scores.len()).collect();
        // Of equals the first.
        order.sort_by(|one, other| rank(*other).total_cmp(&rank(*one)));
        order.truncate(self.used);
        let sum = match self.whole {
            true => order.iter().map(|expert| scores[*expert]).sum::<f32>().max(LEAST_SUM),
            false => 1.0,
        };
        order.into_iter().map(|expert| (expert, scores[expert] / sum)).collect()
    }
}

/// The rows that are named.
fn gathered(input: &Tensor, rows: &[(usize, f32)]) -> Result<Tensor> {
    let (_, width) = input.dims2()?;
    let mut chosen = Vec::with_capacity(rows.len() * width);
    with_numbers(input, |input| {
        rows.iter().for_each(|(row, _)| chosen.extend_from_slice(&input[row * width..][..width]));
        Ok(())
    })?;
    Tensor::from_vec(chosen, (rows.len(), width), &Device::Cpu)
}

/// Adds an answer, times its share.
fn add(sum: &mut [f32], answer: &[f32], share: f32) {
    for (sum, number) in sum.iter_mut().zip(answer) {
        *sum += share * number;
    }
}

fn softmax(numbers: &mut [f32]) {
    let most = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    numbers.iter_mut().for_each(|number| *number = (*number - most).exp());
    let sum: f32 = numbers.iter().sum();
    numbers.iter_mut().for_each(|number| *number /= sum);
}

fn sigmoid(number: f32) -> f32 {
    1.0 / (1.0 + (-number).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(routing: Routing, logits: &[f32], bias: Option<&[f32]>) -> Vec<(usize, f32)> {
        routing.choose(logits.to_vec(), bias)
    }

    #[test]
    fn shares_are_those_of_the_best_whole_or_as_they_are() {
        let third = (3f32).ln();
        let logits = [0.0, third, 0.0, third];
        let routing = Routing { used: 3, scores: Scores::Softmax, whole: false };
        let found = choose(routing, &logits, None);
        // Of equals the first.
        assert_eq!(found.iter().map(|(expert, _)| *expert).collect::<Vec<_>>(), [1, 3, 0]);
        let close = |found: &[(usize, f32)], expected: [f32; 3]| {
            found.iter().zip(expected).all(|((_, share), expected)| (share - expected).abs() < 1e-6)
        };
        assert!(close(&found, [0.375, 0.375, 0.125]), "{found:?}");
        let found = choose(Routing { whole: true, ..routing }, &logits, None);
        assert!(close(&found, [3.0 / 7.0, 3.0 / 7.0, 1.0 / 7.0]), "{found:?}");
    }

    #[test]
    fn a_bias_chooses_but_does_not_weigh() {
        let routing = Routing { used: 1, scores: Scores::Sigmoid, whole: false };
        assert_eq!(choose(routing, &[0.0, 0.0], Some(&[0.0, 0.5])), [(1, 0.5)]);
        assert_eq!(choose(routing, &[1.0, 0.0], Some(&[0.0, 0.1]))[0].0, 0);
    }

    #[test]
    fn numbers_that_are_none_do_not_panic() {
        let routing = Routing { used: 2, scores: Scores::Softmax, whole: true };
        for logits in [[f32::NAN; 3], [f32::INFINITY; 3], [f32::NEG_INFINITY; 3]] {
            assert_eq!(choose(routing, &logits, None).len(), 2);
        }
    }
}
