//! Texts compared as people read them: case, white space, typographic marks do not matter.

use std::collections::HashMap;

use caseless::default_case_fold_str;
use unicode_normalization::UnicodeNormalization;

/// A text that is looked for in another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    text: String,
    plain: String,
}

impl Phrase {
    /// Refuses what has nothing in it.
    pub fn new(text: &str) -> Option<Self> {
        let plain = plain(text);
        (!plain.is_empty()).then(|| Self { text: text.trim().to_owned(), plain })
    }

    /// As it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it occurs in `text`.
    pub fn is_in(&self, text: &str) -> bool {
        plain(text).contains(&self.plain)
    }
}

/// The text without what does not matter when it is read: folded case, compatible characters,
/// plain quotation marks and dashes, single spaces, nothing invisible.
pub(super) fn plain(text: &str) -> String {
    let letters = text.nfkc().filter(|letter| !is_invisible(*letter)).map(|letter| match letter {
        '‘' | '’' | '‚' | '‹' | '›' | '`' | '´' => '\'',
        '“' | '”' | '„' | '«' | '»' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '−' => '-',
        letter => letter,
    });
    let folded = default_case_fold_str(&letters.collect::<String>());
    let folded: String = folded.nfkc().collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}')
}

/// The most words in a row that `answer` shares with one of `texts`. Words are compared without
/// case and without the marks around them. Takes time in proportion to all texts together.
pub fn longest_copy(answer: &str, texts: &[&str]) -> u64 {
    let answer = plain(answer);
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut runs = Runs::new();
    for word in words(&answer) {
        let next = numbers.len();
        runs.push(*numbers.entry(word).or_insert(next));
    }
    let mut longest = 0;
    for text in texts {
        let text = plain(text);
        let words = words(&text).map(|word| numbers.get(word).copied());
        longest = longest.max(runs.longest_in(words));
    }
    longest
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
}

/// Every run of words of one text, as a suffix automaton (Blumer and others, 1985): its size is in
/// proportion to the text, and a step costs the same for every word.
struct Runs {
    states: Vec<State>,
    last: usize,
}

struct State {
    /// The most words of a run that ends here.
    length: u64,
    /// Where the longest run that ends elsewhere too goes on.
    link: Option<usize>,
    next: HashMap<usize, usize>,
}

impl Runs {
    fn new() -> Self {
        Self { states: vec![State { length: 0, link: None, next: HashMap::new() }], last: 0 }
    }

    fn push(&mut self, word: usize) {
        let length = self.states[self.last].length + 1;
        let new = self.add(State { length, link: Some(0), next: HashMap::new() });
        let mut at = Some(self.last);
        self.last = new;
        while let Some(state) = at.filter(|state| !self.states[*state].next.contains_key(&word)) {
            self.states[state].next.insert(word, new);
            at = self.states[state].link;
        }
        let Some(from) = at else { return };
        let to = self.states[from].next[&word];
        if self.states[to].length == self.states[from].length + 1 {
            self.states[new].link = Some(to);
            return;
        }
        let (link, next) = (self.states[to].link, self.states[to].next.clone());
        let copy = self.add(State { length: self.states[from].length + 1, link, next });
        self.states[to].link = Some(copy);
        self.states[new].link = Some(copy);
        let mut at = Some(from);
        while let Some(state) = at.filter(|at| self.states[*at].next.get(&word) == Some(&to)) {
            self.states[state].next.insert(word, copy);
            at = self.states[state].link;
        }
    }

    fn add(&mut self, state: State) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    /// The longest run that `words` share with the text; `None` is a word that it does not have.
    fn longest_in(&self, words: impl Iterator<Item = Option<usize>>) -> u64 {
        let (mut at, mut length, mut longest) = (0, 0, 0);
        for word in words {
            let Some(word) = word else {
                (at, length) = (0, 0);
                continue;
            };
            while !self.states[at].next.contains_key(&word)
                && let Some(link) = self.states[at].link
            {
                at = link;
                length = self.states[at].length;
            }
            if let Some(next) = self.states[at].next.get(&word) {
                at = *next;
                length += 1;
            }
            longest = longest.max(length);
        }
        longest
    }
}
