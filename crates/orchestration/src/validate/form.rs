//! The forms that an output can be held to.

use serde_json::Value;

/// A form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Markdown whose code blocks end and whose tables are whole.
    Markdown,
    /// A JSON value and nothing else.
    Json,
    /// Rows with the same number of fields, between commas.
    Csv {
        /// The names in the first row, where they are given.
        columns: Option<Vec<String>>,
    },
}

impl Form {
    /// What is wrong with `text`, if anything, as a request.
    pub fn objection(&self, text: &str) -> Option<String> {
        match self {
            Self::Markdown => markdown(text),
            Self::Json => json(text).err(),
            Self::Csv { columns } => csv(text, columns.as_deref()),
        }
    }
}

/// The JSON value that `text` is, or what is wrong with it, as a request.
pub(super) fn json(text: &str) -> Result<Value, String> {
    if let Some(request) = fenced(text, "JSON") {
        return Err(request);
    }
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let wrong = match error.classify() {
            serde_json::error::Category::Eof => "ended too early".to_owned(),
            _ => format!("had a mistake in line {line}, column {column}"),
        };
        format!("Write one valid JSON value and nothing else; the last answer {wrong}.")
    })
}

/// Models like to put marks around what was asked for.
fn fenced(text: &str, what: &str) -> Option<String> {
    text.trim_start()
        .starts_with("```")
        .then(|| format!("Write only the {what}, without ``` around it; the last answer had them."))
}

fn csv(text: &str, columns: Option<&[String]>) -> Option<String> {
    if let Some(request) = fenced(text, "CSV") {
        return Some(request);
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.trim().as_bytes());
    let mut width = columns.map(<[String]>::len);
    for (index, record) in reader.records().enumerate() {
        let Ok(record) = record else {
            return Some("Write valid CSV; the last answer could not be read as such.".to_owned());
        };
        if let Some(columns) = columns.filter(|_| index == 0)
            && !record.iter().map(str::trim).eq(columns.iter().map(|column| column.trim()))
        {
            let columns = columns.join(",");
            return Some(format!(
                "Write CSV whose first row is {columns}; the last answer began otherwise."
            ));
        }
        let width = *width.get_or_insert(record.len());
        if record.len() != width {
            let (row, had) = (index + 1, record.len());
            return Some(format!(
                "Write CSV with {width} fields in every row and quotation marks around fields with \
                 commas; row {row} of the last answer had {had}."
            ));
        }
    }
    None
}

fn markdown(text: &str) -> Option<String> {
    let mut fence: Option<String> = None;
    let mut prose: Vec<&str> = Vec::new();
    for line in text.lines() {
        let inner = line.trim_start();
        let mark = inner.chars().next().unwrap_or_default();
        let length = inner.len() - inner.trim_start_matches(mark).len();
        match &fence {
            Some(open) => {
                if inner.starts_with(open.as_str()) && inner[length..].trim().is_empty() {
                    fence = None;
                }
                prose.push("");
            }
            None if matches!(mark, '`' | '~') && length >= 3 && !inner[length..].contains(mark) => {
                fence = Some(inner[..length].to_owned());
                prose.push("");
            }
            None => prose.push(line),
        }
    }
    if fence.is_some() {
        let request = "Close every code block with ```; the last answer left one open.";
        return Some(request.to_owned());
    }
    tables(&prose)
}

/// Tables are a head, a line of dashes and rows, all with the same number of cells.
fn tables(lines: &[&str]) -> Option<String> {
    let mut index = 0;
    while index < lines.len() {
        let table = lines[index..].iter().take_while(|line| line.contains('|'));
        let table: Vec<&str> = table.copied().collect();
        let begin = index;
        index += table.len().max(1);
        let is_table = table.first().is_some_and(|line| line.trim_start().starts_with('|'))
            || table.get(1).is_some_and(|line| is_rule(line));
        if !is_table {
            continue;
        }
        if !table.get(1).is_some_and(|line| is_rule(line)) {
            return Some(
                "Put a line such as | --- | --- | under the head of every table; the last answer \
                 had none."
                    .to_owned(),
            );
        }
        let width = cells(table[0]);
        if let Some(row) = table.iter().position(|row| cells(row) != width) {
            let (line, had) = (begin + row + 1, cells(table[row]));
            return Some(format!(
                "Write tables with the same number of cells in every row; line {line} of the last \
                 answer had {had} in place of {width}."
            ));
        }
    }
    None
}

fn is_rule(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

fn cells(row: &str) -> usize {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let bars = |row: &str| {
        let (mut bars, mut escaped, mut code) = (0, false, false);
        let mut at_end = false;
        for letter in row.chars() {
            at_end = letter == '|' && !escaped && !code;
            bars += usize::from(at_end);
            code ^= letter == '`' && !escaped;
            escaped = letter == '\\' && !escaped;
        }
        bars - usize::from(at_end)
    };
    bars(row) + 1
}
