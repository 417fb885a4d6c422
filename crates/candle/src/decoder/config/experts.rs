//! The numbers of a mixture of experts.

use super::ConfigError;
use super::family::{Mixture, Scores, Shared};
use super::keys::Keys;

/// Experts of the layers that have some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::decoder) struct ExpertsConfig {
    /// How many there are in a layer.
    pub(in crate::decoder) count: usize,
    pub(in crate::decoder) routing: Routing,
    /// Width inside an expert.
    pub(in crate::decoder) inner: usize,
    /// Width inside the shared expert.
    pub(in crate::decoder) shared: Option<usize>,
    /// What the shared expert gives is multiplied by a share.
    pub(in crate::decoder) shared_is_gated: bool,
    /// Layers at the beginning that do without.
    pub(in crate::decoder) dense: usize,
    /// A bias has a say in which experts are chosen.
    pub(in crate::decoder) biased: bool,
}

/// How a token comes to its experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) struct Routing {
    /// How many of them it gets.
    pub(in crate::decoder) used: usize,
    pub(in crate::decoder) scores: Scores,
    /// Their shares are divided by their sum.
    pub(in crate::decoder) whole: bool,
}

impl ExpertsConfig {
    /// `None`: the model has no experts.
    pub(super) fn read(
        keys: &Keys<'_>,
        mixture: Option<Mixture>,
        layers: usize,
    ) -> Result<Option<Self>, ConfigError> {
        let name = "expert_count";
        if keys.value(name).is_none_or(|value| value.as_u64() == Some(0)) {
            return Ok(None);
        }
        let unsupported = |what: &str| Err(ConfigError::Unsupported(what.to_owned()));
        let Some(mixture) = mixture else { return unsupported("a mixture of experts") };
        let count = keys.required(name, 1 << 12)?;
        if keys.value("expert_group_count").and_then(|value| value.as_u64()).is_some_and(|n| n > 1)
        {
            return unsupported("groups of experts");
        }
        let scores = match (mixture.scores, keys.value("expert_gating_func")) {
            (Some(scores), _) => scores,
            (None, Some(value)) => match value.as_u64() {
                Some(1) => Scores::Softmax,
                Some(2) => Scores::Sigmoid,
                _ => return unsupported("scores of experts of another kind"),
            },
            (None, None) => return Err(keys.missing("expert_gating_func")),
        };
        let used = keys
            .of_layers("expert_used_count", count as u64, layers)?
            .ok_or_else(|| keys.missing("expert_used_count"))?;
        let feed_forward = || keys.of_layers("feed_forward_length", 1 << 22, layers);
        let own = match mixture.own_width {
            true => keys.of_layers("expert_feed_forward_length", 1 << 22, layers)?,
            false => None,
        };
        let inner = match own {
            Some(inner) => inner,
            None => {
                let inner = feed_forward()?.ok_or_else(|| keys.missing("feed_forward_length"))?;
                if mixture.own_width { (inner / used).max(1) } else { inner }
            }
        };
        let shared = match mixture.shared {
            Shared::None => None,
            Shared::Added | Shared::Gated => {
                let name = "expert_shared_feed_forward_length";
                let none = keys.value(name).is_some_and(|value| value.as_u64() == Some(0));
                let told = if none { None } else { keys.optional(name, 1 << 22)? };
                match told {
                    None if mixture.shared == Shared::Gated => feed_forward()?,
                    told => told,
                }
            }
        };
        let dense = match mixture.led {
            true => keys.count("leading_dense_block_count")?.unwrap_or(0),
            false => 0,
        };
        Ok(Some(Self {
            count,
            routing: Routing { used, scores, whole: mixture.whole },
            inner,
            shared,
            shared_is_gated: mixture.shared == Shared::Gated,
            dense,
            biased: mixture.led,
        }))
    }
}
