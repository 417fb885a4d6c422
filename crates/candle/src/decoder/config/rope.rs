//! How positions are turned into rotations.
//!
//! Every pair of elements turns by its own speed, which falls by a power of the base. Longer
//! contexts than a model was trained on are reached by slowing down: all pairs (`linear`), each by
//! a factor from the file (Llama 3.1, LongRoPE), or the slow ones only, with a ramp between (YaRN:
//! Peng et al., <https://arxiv.org/abs/2309.00071>). Where llama.cpp reads a file in its own way,
//! so is it read here.

use correx_gguf::shown;

use super::ConfigError;
use super::family::{Factors, Family, Local, Pairs, Windows};
use super::keys::Keys;

/// YaRN's bounds: pairs that turn more often than the first in the context of the training stay,
/// those that turn less often than the second are slowed down.
const BETA_FAST: f64 = 32.0;
const BETA_SLOW: f64 = 1.0;

/// How positions are turned into rotations.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::decoder) struct RopeConfig {
    pub(in crate::decoder) pairs: Pairs,
    /// Elements of a head that are rotated.
    pub(in crate::decoder) rotated: usize,
    /// The context of the training.
    pub(in crate::decoder) original: usize,
    pub(in crate::decoder) factors: FactorNames,
    /// Layers that see everything.
    pub(in crate::decoder) global: Speeds,
    /// Layers with a window.
    pub(in crate::decoder) local: Speeds,
}

/// Which factors of the file divide the speeds, where it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) enum FactorNames {
    None,
    /// `rope_freqs`.
    One,
    /// `rope_factors_short` up to the context of the training, `rope_factors_long` beyond.
    ShortAndLong,
}

/// The speeds before the file's factors.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::decoder) struct Speeds {
    base: f64,
    /// What positions are multiplied by.
    scale: f64,
    yarn: Option<Ramp>,
    /// What rotated elements are multiplied by.
    magnitude: f64,
}

/// The pairs between which YaRN passes from keeping to slowing down.
#[derive(Debug, Clone, PartialEq)]
struct Ramp {
    low: f64,
    high: f64,
}

/// The angle per position of every rotated pair, and what rotated elements are multiplied by.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::decoder) struct Turns {
    pub(in crate::decoder) speeds: Vec<f64>,
    pub(in crate::decoder) magnitude: f64,
}

impl Speeds {
    /// The turns of `rotated` elements, with `factors` dividing the speeds.
    pub(in crate::decoder) fn turns(&self, rotated: usize, factors: Option<&[f32]>) -> Turns {
        let speed = |pair: usize| {
            let factor = factors.and_then(|factors| factors.get(pair)).copied().unwrap_or(1.0);
            let kept = self.base.powf(-2.0 * pair as f64 / rotated as f64) / f64::from(factor);
            let slowed = kept * self.scale;
            let share = self.yarn.as_ref().map_or(0.0, |ramp| ramp.kept(pair));
            slowed * (1.0 - share) + kept * share
        };
        Turns { speeds: (0..rotated / 2).map(speed).collect(), magnitude: self.magnitude }
    }
}

impl Ramp {
    fn new(rotated: usize, original: usize, base: f64, fast: f64, slow: f64) -> Self {
        let pair = |turns: f64| {
            let length = original as f64 / (turns * 2.0 * std::f64::consts::PI);
            rotated as f64 * length.ln() / (2.0 * base.ln())
        };
        Self { low: pair(fast).floor().max(0.0), high: pair(slow).ceil().min(rotated as f64 - 1.0) }
    }

    /// How much of a pair's speed is kept.
    fn kept(&self, pair: usize) -> f64 {
        1.0 - ((pair as f64 - self.low) / (self.high - self.low).max(0.001)).clamp(0.0, 1.0)
    }
}

/// What YaRN makes of scores that are spread over more positions.
fn yarn_magnitude(stretch: f64, by: f64) -> f64 {
    if stretch <= 1.0 { 1.0 } else { 0.1 * by * stretch.ln() + 1.0 }
}

impl RopeConfig {
    pub(super) fn read(
        keys: &Keys<'_>,
        family: &Family,
        head: usize,
        context: usize,
    ) -> Result<Self, ConfigError> {
        let rotated = keys.optional("rope.dimension_count", head as u64)?.unwrap_or(head);
        let base = base(keys, "rope.freq_base")?.unwrap_or(10_000.0);
        if rotated % 2 == 1 {
            return Err(ConfigError::Damaged(format!("it rotates {rotated} elements by {base}")));
        }
        let sections = keys.value("rope.dimension_sections").and_then(|value| value.as_numbers());
        if sections.is_some_and(|list| list.len() > 1 && list.iter().take(2).all(|each| each > 0)) {
            return Err(ConfigError::Unsupported("rotation in sections".into()));
        }
        let original =
            keys.optional("rope.scaling.original_context_length", 1 << 24)?.unwrap_or(context);
        let scaling = keys.text("rope.scaling.type").unwrap_or("linear");
        if !["none", "linear", "yarn", "longrope"].contains(&scaling) {
            let scaling = shown(scaling);
            return Err(ConfigError::Unsupported(format!("`{scaling}` scaling of positions")));
        }
        let stretch = match keys.positive("rope.scaling.factor")? {
            None => keys.positive("rope.scale_linear")?.unwrap_or(1.0),
            Some(stretch) => stretch,
        };
        let attention = keys.float("rope.scaling.attn_factor")?.unwrap_or(1.0);
        let tuned = |name: &str, default: f64| match family.tuned_yarn {
            true => Ok(keys.positive(name)?.unwrap_or(default)),
            false => Ok(default),
        };
        let speeds = |base: f64, stretch: f64| -> Result<Speeds, ConfigError> {
            let mut speeds =
                Speeds { base, scale: 1.0 / stretch, yarn: None, magnitude: attention };
            if scaling == "yarn" {
                let fast = tuned("rope.scaling.yarn_beta_fast", BETA_FAST)?;
                let slow = tuned("rope.scaling.yarn_beta_slow", BETA_SLOW)?;
                speeds.yarn = Some(Ramp::new(rotated, original, base, fast, slow));
                speeds.magnitude *= yarn_magnitude(stretch, 1.0);
                let by = tuned("rope.scaling.yarn_log_multiplier", 0.0)?;
                if by > 0.0 {
                    speeds.magnitude /= yarn_magnitude(stretch, by);
                }
            }
            Ok(speeds)
        };
        let global = speeds(base, if scaling == "none" { 1.0 } else { stretch })?;
        let local = match family.windows {
            Windows::Ignored => global.clone(),
            Windows::Pattern { local, .. } => {
                let own = self::base(keys, "rope.freq_base_swa")?;
                match local {
                    Local::AsOthers => speeds(own.unwrap_or(base), stretch)?,
                    Local::Unscaled { base } => speeds(own.unwrap_or(base), 1.0)?,
                    Local::Plain => Speeds { base, scale: 1.0, yarn: None, magnitude: 1.0 },
                }
            }
        };
        let factors = match family.factors {
            Factors::None => FactorNames::None,
            Factors::Scaling if scaling != "longrope" => FactorNames::One,
            Factors::Scaling | Factors::ShortAndLong => FactorNames::ShortAndLong,
        };
        Ok(Self { pairs: family.pairs, rotated, original, factors, global, local })
    }
}

fn base(keys: &Keys<'_>, name: &str) -> Result<Option<f64>, ConfigError> {
    let Some(value) = keys.value(name) else { return Ok(None) };
    match value.as_f64() {
        // YaRN divides by its logarithm.
        Some(base) if base.is_finite() && base > 1.0 => Ok(Some(base)),
        _ => Err(ConfigError::Damaged(format!("it rotates by {value}"))),
    }
}
