//! Whose turn it is.

use std::time::Duration;

/// How long a chunk of a prompt may take, about. Nothing else happens in that time.
const CHUNK_TIME: Duration = Duration::from_millis(200);
/// Tokens of the first chunk, before anything is known about the model's speed.
const FIRST_CHUNK: usize = 16;
/// The most and the fewest tokens of a chunk.
const CHUNKS: std::ops::RangeInclusive<usize> = 4..=64;

/// What is to be stepped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing is live.
    None,
    /// At most so many tokens of this sequence's prompt.
    Prompt {
        /// The sequence.
        place: usize,
        /// Tokens.
        tokens: usize,
    },
    /// A token of every sequence that replies.
    Replies,
}

/// Shares the time between prompts and replies.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Time that prompts took from the replies and have not given back.
    owed: Duration,
    /// What a token of a prompt takes, smoothed.
    token_time: Option<Duration>,
    last_prompt: Option<usize>,
}

impl Turns {
    /// The next turn. `replying` says for every live sequence whether its prompt is done.
    pub(super) fn next(&mut self, replying: impl Iterator<Item = bool>) -> Turn {
        let replying: Vec<bool> = replying.collect();
        let any_replies = replying.contains(&true);
        if !any_replies {
            self.owed = Duration::ZERO;
        }
        let mut prompts = (0..replying.len()).filter(|place| !replying[*place]);
        let after = |place: &usize| self.last_prompt.is_some_and(|last| *place > last);
        let next = prompts.clone().find(after).or_else(|| prompts.next());
        match next {
            Some(place) if self.owed.is_zero() => {
                self.last_prompt = Some(place);
                Turn::Prompt { place, tokens: self.chunk() }
            }
            _ if any_replies => Turn::Replies,
            _ => Turn::None,
        }
    }

    /// A chunk of `tokens` was evaluated.
    pub(super) fn prompt_took(&mut self, tokens: usize, time: Duration) {
        self.owed += time;
        let each = time / u32::try_from(tokens.max(1)).unwrap_or(u32::MAX);
        self.token_time = Some(match self.token_time {
            Some(before) => (before + each) / 2,
            None => each,
        });
    }

    /// The replies took a step.
    pub(super) fn replies_took(&mut self, time: Duration) {
        self.owed = self.owed.saturating_sub(time);
    }

    fn chunk(&self) -> usize {
        let Some(each) = self.token_time else { return FIRST_CHUNK };
        let tokens = CHUNK_TIME.as_nanos() / each.as_nanos().max(1);
        usize::try_from(tokens).unwrap_or(usize::MAX).clamp(*CHUNKS.start(), *CHUNKS.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_prompt_gets_a_chunk_at_once_and_then_pays_the_replies_back() {
        let mut turns = Turns::default();
        let live = || [true, false].into_iter();
        assert_eq!(turns.next(live()), Turn::Prompt { place: 1, tokens: 16 });
        turns.prompt_took(16, 160 * MS);
        for _ in 0..4 {
            assert_eq!(turns.next(live()), Turn::Replies);
            turns.replies_took(40 * MS);
        }
        // 200 ms at 10 ms a token.
        assert_eq!(turns.next(live()), Turn::Prompt { place: 1, tokens: 20 });
    }

    #[test]
    fn prompts_alternate_and_owe_nothing_when_nobody_replies() {
        let mut turns = Turns::default();
        let mut places = Vec::new();
        for _ in 0..4 {
            let Turn::Prompt { place, tokens } = turns.next([false, false].into_iter()) else {
                panic!("nobody got a turn")
            };
            places.push(place);
            turns.prompt_took(tokens, 1000 * MS);
        }
        assert_eq!(places, [0, 1, 0, 1]);
        assert_eq!(turns.next([].into_iter()), Turn::None);
    }
}
