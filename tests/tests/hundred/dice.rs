//! Choices that fall the same way every time.

/// Uniform numbers from a seed (SplitMix64, Steele et al. 2014).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: usize) -> Self {
        Self(seed as u64)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap_or_default()
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// `count` different ones, in their order.
    pub(crate) fn several<T: Copy>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut left: Vec<T> = from.to_vec();
        while left.len() > count {
            left.remove(self.below(left.len()));
        }
        left
    }
}
