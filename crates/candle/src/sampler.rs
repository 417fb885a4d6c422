//! Choosing the next token.

use std::cmp::Ordering;
use std::collections::HashSet;

use correx_inference::GenerationConfig;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

/// The logits cannot be chosen from.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the model computed nonsense (no usable logit)")]
pub struct NoChoice;

/// Chooses tokens by one configuration, with a random generator of its own.
///
/// In this order: the repetition penalty, `top_k`, `top_p`, `min_p`, then the temperature over
/// what is left; so the shares that `top_p` and `min_p` speak of are the model's own. Equally
/// likely tokens rank by id. The penalty looks at the reply only: words of the prompt are often
/// what the reply has to repeat.
#[derive(Debug, Clone)]
pub struct Sampler {
    config: GenerationConfig,
    random: ChaCha8Rng,
}

/// A token that may be chosen.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: u32,
    logit: f32,
}

impl Candidate {
    /// The likeliest first, ties by id.
    fn rank(&self, other: &Self) -> Ordering {
        other.logit.total_cmp(&self.logit).then(self.id.cmp(&other.id))
    }
}

impl Sampler {
    /// A sampler at the beginning of a reply.
    pub fn new(config: &GenerationConfig) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(config.seed), config: config.clone() }
    }

    /// Chooses from `logits` (one per token of the vocabulary), after the reply so far.
    pub fn choose(&mut self, logits: &mut [f32], reply: &[u32]) -> Result<u32, NoChoice> {
        self.penalize(logits, reply);
        self.pick((0u32..).zip(logits.iter()).map(|(id, logit)| Candidate { id, logit: *logit }))
    }

    /// The same among the ids `permitted` alone; the others are not looked at.
    pub fn choose_among(
        &mut self,
        permitted: &[u32],
        logits: &mut [f32],
        reply: &[u32],
    ) -> Result<u32, NoChoice> {
        self.penalize(logits, reply);
        self.pick(
            permitted
                .iter()
                .filter_map(|id| Some(Candidate { id: *id, logit: *logits.get(*id as usize)? })),
        )
    }

    fn pick(&mut self, candidates: impl Iterator<Item = Candidate>) -> Result<u32, NoChoice> {
        let candidates = candidates.filter(|each| each.logit.is_finite());
        let config = &self.config;
        if config.temperature.is_nan() || config.temperature <= 0.0 || config.top_k == 1 {
            return likeliest(candidates);
        }
        let mut candidates: Vec<Candidate> = candidates.collect();
        if config.top_k > 0 && config.top_k < candidates.len() {
            // Only the kept few are sorted, never the vocabulary.
            candidates.select_nth_unstable_by(config.top_k - 1, Candidate::rank);
            candidates.truncate(config.top_k);
        }
        candidates.sort_unstable_by(Candidate::rank);
        let best = candidates.first().ok_or(NoChoice)?.logit;
        self.cut_tail(&mut candidates, best);
        let weights: Vec<f64> = candidates
            .iter()
            .map(|each| (f64::from(each.logit - best) / self.config.temperature).exp())
            .collect();
        let mut left = self.random.random::<f64>() * weights.iter().sum::<f64>();
        for (candidate, weight) in candidates.iter().zip(&weights) {
            left -= weight;
            if left < 0.0 {
                return Ok(candidate.id);
            }
        }
        // Rounding can leave a crumb; it belongs to the likeliest.
        Ok(candidates[0].id)
    }

    fn penalize(&self, logits: &mut [f32], reply: &[u32]) {
        let penalty = self.config.repetition_penalty;
        if penalty == 1.0 || !penalty.is_finite() || penalty <= 0.0 {
            return;
        }
        let recent = reply.len().saturating_sub(self.config.repetition_window);
        for id in reply[recent..].iter().collect::<HashSet<_>>() {
            if let Some(logit) = logits.get_mut(*id as usize) {
                let penalized = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
                // Made unlikely, never impossible: it may be the only one that is permitted.
                *logit = if logit.is_finite() { penalized.max(f32::MIN) } else { *logit };
            }
        }
    }

    /// Applies `top_p` and `min_p` to ranked candidates; the likeliest always stays.
    fn cut_tail(&self, candidates: &mut Vec<Candidate>, best: f32) {
        let shares: Vec<f64> =
            candidates.iter().map(|each| f64::from(each.logit - best).exp()).collect();
        let mut kept = candidates.len();
        if self.config.top_p < 1.0 {
            let wanted = self.config.top_p * shares.iter().sum::<f64>();
            let mut sum = 0.0;
            kept = 1 + shares
                .iter()
                .take_while(|share| {
                    sum += **share;
                    sum < wanted
                })
                .count();
        }
        if self.config.min_p > 0.0 {
            // The likeliest has share 1, so a share is already relative to it.
            kept = kept.min(shares.partition_point(|share| *share >= self.config.min_p));
        }
        candidates.truncate(kept.max(1));
    }
}

/// The first of the likeliest.
fn likeliest(candidates: impl Iterator<Item = Candidate>) -> Result<u32, NoChoice> {
    let mut best: Option<Candidate> = None;
    for candidate in candidates {
        if best.is_none_or(|best| candidate.logit > best.logit) {
            best = Some(candidate);
        }
    }
    best.map(|best| best.id).ok_or(NoChoice)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn plain() -> GenerationConfig {
        GenerationConfig {
            temperature: 1.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            ..GenerationConfig::default()
        }
    }

    /// How often each token comes in 4000 draws.
    fn draws(config: &GenerationConfig, logits: &[f32]) -> HashMap<u32, usize> {
        let mut sampler = Sampler::new(config);
        let mut counts = HashMap::new();
        for _ in 0..4000 {
            *counts.entry(sampler.choose(&mut logits.to_vec(), &[]).unwrap()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn greedy_takes_the_likeliest_and_the_first_of_equals() {
        let mut sampler = Sampler::new(&GenerationConfig::greedy(1));
        assert_eq!(sampler.choose(&mut [0.0, 3.0, 3.0, f32::NAN], &[]), Ok(1));
        assert_eq!(sampler.choose(&mut [f32::NAN, f32::NEG_INFINITY], &[]), Err(NoChoice));
        assert_eq!(Sampler::new(&plain()).choose(&mut [], &[]), Err(NoChoice));
    }

    #[test]
    fn draws_follow_the_probabilities_and_the_temperature() {
        // Probabilities 1/2, 1/4, 1/4.
        let logits = [2f32.ln(), 0.0, 0.0];
        let counts = draws(&plain(), &logits);
        assert!((1850..2150).contains(&counts[&0]), "{counts:?}");
        let cold = draws(&GenerationConfig { temperature: 0.25, ..plain() }, &logits);
        // 16 : 1 : 1.
        assert!((3450..3650).contains(&cold[&0]), "{cold:?}");
    }

    #[test]
    fn each_limit_keeps_exactly_the_tokens_it_describes() {
        // 0.5, 0.3, 0.15, 0.05.
        let logits: Vec<f32> = [0.15f32, 0.5, 0.05, 0.3].iter().map(|share| share.ln()).collect();
        let kept = |config: GenerationConfig| {
            let mut ids: Vec<u32> = draws(&config, &logits).into_keys().collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(kept(GenerationConfig { top_k: 2, ..plain() }), [1, 3]);
        assert_eq!(kept(GenerationConfig { top_p: 0.79, ..plain() }), [1, 3]);
        assert_eq!(kept(GenerationConfig { top_p: 0.81, ..plain() }), [0, 1, 3]);
        assert_eq!(kept(GenerationConfig { top_p: 0.0, ..plain() }), [1]);
        assert_eq!(kept(GenerationConfig { min_p: 0.29, ..plain() }), [0, 1, 3]);
        assert_eq!(kept(GenerationConfig { min_p: 0.31, ..plain() }), [1, 3]);
        assert_eq!(kept(GenerationConfig { top_k: 3, min_p: 0.5, ..plain() }), [1, 3]);
        // A limit sees the model's own shares, not those of a cold temperature.
        let cold = GenerationConfig { temperature: 3.0, top_p: 0.79, ..plain() };
        assert_eq!(kept(cold), [1, 3]);
    }

    #[test]
    fn the_penalty_lowers_recent_tokens_once_and_forgets_old_ones() {
        let config = GenerationConfig {
            repetition_penalty: 2.0,
            repetition_window: 2,
            ..GenerationConfig::greedy(1)
        };
        let mut logits = [8.0, 8.0, -1.0, 3.0];
        Sampler::new(&config).choose(&mut logits, &[1, 0, 2, 2]).unwrap();
        assert_eq!(logits, [8.0, 8.0, -2.0, 3.0]);
        Sampler::new(&config).choose(&mut logits, &[0, 3]).unwrap();
        assert_eq!(logits, [4.0, 8.0, -2.0, 1.5]);
    }

    #[test]
    fn the_only_permitted_token_is_chosen_whatever_the_penalty() {
        for (logit, penalty) in [(8.0, f32::MAX), (-8.0, f32::MAX), (f32::MIN, 2.0)] {
            for temperature in [0.0, 1.0] {
                let config =
                    GenerationConfig { repetition_penalty: penalty, temperature, ..plain() };
                let mut logits = [9.0, logit, 9.0];
                let chosen = Sampler::new(&config).choose_among(&[1], &mut logits, &[1]);
                assert_eq!(chosen, Ok(1), "{logit} {penalty}");
            }
        }
        let greedy = GenerationConfig::greedy(1);
        let choose =
            |ids: &[u32]| Sampler::new(&greedy).choose_among(ids, &mut [9.0, 1.0, 2.0], &[]);
        assert_eq!((choose(&[1, 2]), choose(&[7])), (Ok(2), Err(NoChoice)));
    }

    proptest! {
        #[test]
        fn equal_seeds_give_equal_tokens_and_limits_hold(
            logits in prop::collection::vec(-20f32..20.0, 1..200),
            seed in any::<u64>(),
            top_k in 0usize..20,
            top_p in 0.0f64..1.2,
            min_p in 0.0f64..1.0,
            temperature in 0.0f64..3.0,
        ) {
            let config = GenerationConfig { seed, top_k, top_p, min_p, temperature, ..plain() };
            let run = |mut sampler: Sampler| -> Vec<u32> {
                (0..5).map(|_| sampler.choose(&mut logits.clone(), &[]).unwrap()).collect()
            };
            let ids = run(Sampler::new(&config));
            prop_assert_eq!(&ids, &run(Sampler::new(&config)));
            let best = logits.iter().copied().fold(f32::MIN, f32::max);
            for id in ids {
                let logit = logits[id as usize];
                let better = logits.iter().filter(|each| **each > logit).count();
                prop_assert!(top_k == 0 || better < top_k);
                prop_assert!(f64::from(logit - best).exp() >= min_p - 1e-6);
            }
        }
    }
}
