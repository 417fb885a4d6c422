//! Numbers and names of an answer against those of what the model was shown.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;

use super::wording;

/// How many numbers of the answer are in none of `shown`. Numbers of a list's items do not count.
pub fn unknown_numbers(answer: &str, shown: &[&str]) -> u64 {
    let known: BTreeSet<String> = shown.iter().flat_map(|text| readings_in(text)).collect();
    let is_known = |number: &Number| number.readings.iter().any(|one| known.contains(one));
    numbers(answer).iter().filter(|number| !is_known(number)).count() as u64
}

/// The numbers of `shown` that are not in the answer, as they are written there, each once.
pub fn lost_numbers(answer: &str, shown: &[&str]) -> Vec<String> {
    let kept: BTreeSet<String> = readings_in(answer);
    let mut lost: Vec<String> = Vec::new();
    for number in shown.iter().flat_map(|text| numbers(text)) {
        let is_kept = number.readings.iter().any(|one| kept.contains(one));
        if !is_kept && !lost.contains(&number.written) {
            lost.push(number.written);
        }
    }
    lost
}

/// How many different names of the answer are in none of `shown`: words with a capital letter and
/// small ones that begin no sentence, line or quotation. Headings are not looked at.
pub fn unknown_names(answer: &str, shown: &[&str]) -> u64 {
    let known: BTreeSet<String> =
        shown.iter().flat_map(|text| words(text)).map(|(word, _)| fold(word)).collect();
    let prose = answer.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut unknown = BTreeSet::new();
    for (word, begins) in prose.flat_map(words) {
        let is_name = word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
        let folded = fold(word);
        if is_name && !begins && !known.contains(&folded) {
            unknown.insert(folded);
        }
    }
    unknown.len() as u64
}

/// A word as names are compared: without case and without the `'s` that says whose.
fn fold(word: &str) -> String {
    let word = wording::plain(word);
    word.strip_suffix("'s").unwrap_or(&word).trim_end_matches('\'').to_owned()
}

/// Words, and whether each begins a sentence, a line or a quotation.
fn words(text: &str) -> Vec<(&str, bool)> {
    let is_in_word = |letter: char| {
        letter.is_alphanumeric() || matches!(letter, '\'' | '’' | '\u{300}'..='\u{36F}')
    };
    let (mut words, mut begins, mut start) = (Vec::new(), true, None);
    for (at, letter) in text.char_indices().chain([(text.len(), '\n')]) {
        if is_in_word(letter) {
            start.get_or_insert(at);
            continue;
        }
        if let Some(from) = start.take() {
            words.push((&text[from..at], begins));
            begins = false;
        }
        begins |= !matches!(letter, ' ' | '\t' | ',' | ';' | '-' | '/' | '&' | '\u{A0}' | ')');
    }
    words
}

/// A number, as it is written, and what it can mean: `1.500` is 1500 or 1.5.
struct Number {
    written: String,
    readings: Vec<String>,
}

/// Everything that the numbers of `text` can mean, also where spaces part thousands.
fn readings_in(text: &str) -> BTreeSet<String> {
    let mut readings: BTreeSet<String> =
        numbers(text).into_iter().flat_map(|number| number.readings).collect();
    let parts: Vec<&str> = text.split_whitespace().collect();
    for (index, first) in parts.iter().enumerate() {
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !(1..=3).contains(&first.len()) || !is_digits(first) {
            continue;
        }
        let mut joined = (*first).to_owned();
        for part in parts[index + 1..].iter().take(4) {
            let part = part.trim_end_matches(|letter: char| letter.is_ascii_punctuation());
            if part.len() != 3 || !is_digits(part) {
                break;
            }
            joined.push_str(part);
            readings.insert(whole(&joined));
        }
    }
    readings
}

/// The numbers of a text. Runs of digits that are parted in another way than a number's, such as
/// those of a date, are numbers of their own; so are those around a colon.
fn numbers(text: &str) -> Vec<Number> {
    let text: String = text
        .chars()
        // Spaces that do not break part the thousands of one number.
        .map(|letter| if matches!(letter, '\u{A0}' | '\u{202F}' | '’') { '\'' } else { letter })
        .nfkc()
        .collect();
    text.lines().flat_map(numbers_of_line).collect()
}

fn numbers_of_line(line: &str) -> Vec<Number> {
    let line = without_item_number(line);
    let letters: Vec<char> = line.chars().collect();
    let digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
    let (mut numbers, mut at) = (Vec::new(), 0);
    while at < letters.len() {
        if !digit(at) {
            at += 1;
            continue;
        }
        let start = at;
        while digit(at) || (matches!(letters.get(at), Some('.' | ',' | '\'')) && digit(at + 1)) {
            at += 1;
        }
        let written: String = letters[start..at].iter().collect();
        let readings = readings(&written);
        if readings.is_empty() {
            let parts = written.split(['.', ',', '\'']);
            numbers.extend(
                parts.map(|part| Number { written: part.to_owned(), readings: vec![whole(part)] }),
            );
        } else {
            numbers.push(Number { written, readings });
        }
    }
    numbers
}

/// A line without the `1.` or `1)` of a list's item in front.
fn without_item_number(line: &str) -> &str {
    let trimmed = line.trim_start_matches([' ', '\t', '>', '*']);
    let rest = trimmed.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = trimmed.len() - rest.len();
    match rest.strip_prefix(['.', ')']) {
        Some(item) if (1..=3).contains(&digits) && item.starts_with([' ', '\t', '*']) => item,
        _ => line,
    }
}

/// What `written`, digits with single marks between them, can mean as one number; nothing when its
/// marks are not those of a number.
fn readings(written: &str) -> Vec<String> {
    let marks: Vec<char> = written.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    let parts: Vec<&str> = written.split(['.', ',', '\'']).collect();
    let Some(&last_mark) = marks.last() else { return vec![whole(written)] };
    let is_grouped = |parts: &[&str], marks: &[char]| {
        marks.iter().all(|mark| *mark == marks[0])
            && (1..=3).contains(&parts[0].len())
            && parts[1..].iter().all(|part| part.len() == 3)
    };
    let mut readings = Vec::new();
    if is_grouped(&parts, &marks) {
        readings.push(whole(&parts.concat()));
    }
    let (before, fraction) = parts.split_at(parts.len() - 1);
    let groups = &marks[..marks.len() - 1];
    let is_decimal = last_mark != '\''
        && !groups.contains(&last_mark)
        && (groups.is_empty() || is_grouped(before, groups));
    if is_decimal {
        let fraction = fraction.concat();
        let fraction = fraction.trim_end_matches('0');
        let before = whole(&before.concat());
        readings.push(match fraction {
            "" => before,
            fraction => format!("{before}.{fraction}"),
        });
    }
    readings
}

/// Digits without zeros in front.
fn whole(digits: &str) -> String {
    match digits.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    }
}
