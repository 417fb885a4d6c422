//! Tables with one record a line: kept as they are, looked at for their delimiter and their shape.

use crate::{Document, Format};

const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];
/// Records that the delimiter is told by.
const SAMPLE: usize = 50;

pub(crate) fn read(text: String, expected: Option<char>, mut notes: Vec<String>) -> Document {
    let delimiter = expected.unwrap_or_else(|| delimiter(&text));
    let widths = widths(&text, delimiter, usize::MAX);
    if let Some(usual) = usual(&widths) {
        let odd: Vec<usize> =
            widths.iter().filter(|(_, width)| *width != usual).map(|(line, _)| *line).collect();
        if let Some(first) = odd.first() {
            let (records, s) = (odd.len(), if odd.len() == 1 { "" } else { "s" });
            notes.push(format!(
                "{records} record{s} without the {usual} fields of the others, the first in line {first}"
            ));
        }
    }
    Document { text, format: Format::Csv { delimiter }, notes }
}

/// The one that cuts the most records into the same number of fields, above one.
fn delimiter(text: &str) -> char {
    let score = |delimiter: &char| {
        let widths = widths(text, *delimiter, SAMPLE);
        match usual(&widths) {
            Some(usual) if usual > 1 => {
                let same = widths.iter().filter(|(_, width)| *width == usual).count();
                (same * 1000 / widths.len(), usual)
            }
            _ => (0, 0),
        }
    };
    let mut best = (',', (0, 0));
    for delimiter in DELIMITERS {
        let score = score(&delimiter);
        if score > best.1 {
            best = (delimiter, score);
        }
    }
    best.0
}

/// Line and number of fields of each record.
fn widths(text: &str, delimiter: char, records: usize) -> Vec<(usize, usize)> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(u8::try_from(delimiter).unwrap_or(b','))
        .from_reader(text.as_bytes());
    let mut record = csv::ByteRecord::new();
    let mut widths = Vec::new();
    while widths.len() < records && reader.read_byte_record(&mut record).unwrap_or(false) {
        let line = record.position().map_or(0, |position| position.line());
        widths.push((usize::try_from(line).unwrap_or(usize::MAX), record.len()));
    }
    widths
}

/// The number of fields that most records have.
fn usual(widths: &[(usize, usize)]) -> Option<usize> {
    let mut counts = std::collections::BTreeMap::<usize, usize>::new();
    for (_, width) in widths {
        *counts.entry(*width).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(width, count)| (*count, *width)).map(|(width, _)| width)
}
