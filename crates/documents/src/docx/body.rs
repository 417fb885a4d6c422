//! The document's own text, paragraph by paragraph, as it reads with every tracked change accepted.

use std::collections::BTreeMap;

use super::parts::{Numbering, Relations, Styles, level};
use super::xml::{Attributes, Step, walk};
use crate::document::MAX_TEXT_BYTES;
use crate::{DocumentError, markdown};

/// List levels that are indented.
const MAX_LEVEL: usize = 8;
/// Text boxes in text boxes and tables in tables that are told apart.
const MAX_DEPTH: usize = 64;
/// What is not part of the text as it reads now.
const LEFT_OUT: &[&str] = &[
    "del",
    "moveFrom",
    "Fallback",
    "instrText",
    "delText",
    "delInstrText",
    "pPrChange",
    "rPrChange",
    "sectPr",
    "tblPrChange",
    "tcPrChange",
    "trPrChange",
    "tblGridChange",
];

#[derive(Default)]
struct Paragraph {
    text: String,
    style: Option<String>,
    outline: Option<usize>,
    numbering: Option<String>,
    level: usize,
    /// Its end was deleted: it goes on in the next one.
    goes_on: bool,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
    row_is_deleted: bool,
}

pub(super) struct Body<'a> {
    styles: &'a Styles,
    numbering: &'a Numbering,
    links: &'a Relations,
    text: String,
    paragraphs: Vec<Paragraph>,
    tables: Vec<Table>,
    left_out: Option<(String, usize)>,
    in_paragraph_properties: bool,
    in_row_properties: bool,
    in_text: bool,
    hidden: bool,
    link: Option<(usize, String)>,
    /// Of each numbering, how far every level has counted.
    counters: BTreeMap<String, Vec<u64>>,
    last_was_item: bool,
    pictures: usize,
    hidden_runs: usize,
    comments: usize,
    footnotes: usize,
    bytes: usize,
}

impl<'a> Body<'a> {
    pub(super) fn new(styles: &'a Styles, numbering: &'a Numbering, links: &'a Relations) -> Self {
        Self {
            styles,
            numbering,
            links,
            text: String::new(),
            paragraphs: Vec::new(),
            tables: Vec::new(),
            left_out: None,
            in_paragraph_properties: false,
            in_row_properties: false,
            in_text: false,
            hidden: false,
            link: None,
            counters: BTreeMap::new(),
            last_was_item: false,
            pictures: 0,
            hidden_runs: 0,
            comments: 0,
            footnotes: 0,
            bytes: 0,
        }
    }

    pub(super) fn has_footnotes(&self) -> bool {
        self.footnotes > 0
    }

    pub(super) fn read(&mut self, part: &str) -> Result<(), DocumentError> {
        walk(part, |step| self.step(step))?;
        // What was begun and never ended.
        while !self.paragraphs.is_empty() {
            self.end_paragraph();
        }
        while !self.tables.is_empty() {
            self.end_table();
        }
        Ok(())
    }

    /// Footnotes or endnotes, written at the end under their numbers.
    pub(super) fn read_notes(&mut self, part: &str) -> Result<(), DocumentError> {
        walk(part, |step| {
            match step {
                Step::Start("footnote" | "endnote", attributes) => {
                    // The others are lines that separate the notes from the text.
                    if attributes.get("type").is_none() {
                        let id = attributes.get("id").unwrap_or_default();
                        self.paragraphs
                            .push(Paragraph { text: format!("[^{id}]:"), ..Paragraph::default() });
                    }
                }
                Step::End("footnote" | "endnote") => {
                    while !self.paragraphs.is_empty() {
                        self.end_paragraph();
                    }
                }
                // A note is one paragraph here, whatever it has in the file.
                Step::Start("p", _) => self.push(" "),
                Step::End("p") => {}
                step => return self.step(step),
            }
            Ok(())
        })
    }

    pub(super) fn finish(self) -> (String, Vec<String>) {
        let mut notes = Vec::new();
        let mut note = |count: usize, one: &str, many: &str| {
            if count > 0 {
                let what = if count == 1 { one } else { many };
                notes.push(format!("{count} {what} left out"));
            }
        };
        note(self.pictures, "picture", "pictures");
        note(self.comments, "comment", "comments");
        note(self.hidden_runs, "piece of hidden text", "pieces of hidden text");
        let text = self.text.trim();
        (if text.is_empty() { String::new() } else { format!("{text}\n") }, notes)
    }

    fn step(&mut self, step: Step<'_>) -> Result<(), DocumentError> {
        if self.bytes > MAX_TEXT_BYTES {
            return Err(DocumentError::TooMuchInside { limit: MAX_TEXT_BYTES });
        }
        if let Some((name, depth)) = &mut self.left_out {
            match step {
                Step::Start(inner, _) if inner == name => *depth += 1,
                Step::End(inner) if inner == name => {
                    *depth -= 1;
                    if *depth == 0 {
                        self.left_out = None;
                    }
                }
                _ => {}
            }
            return Ok(());
        }
        match step {
            Step::Start(name, attributes) => self.start(name, &attributes),
            Step::End(name) => self.end(name),
            Step::Text(text) if self.in_text => self.push(text),
            Step::Text(_) => {}
        }
        Ok(())
    }

    fn start(&mut self, name: &str, attributes: &Attributes) {
        if LEFT_OUT.contains(&name) {
            match self.paragraphs.last_mut() {
                Some(paragraph) if name == "del" && self.in_paragraph_properties => {
                    paragraph.goes_on = true;
                }
                _ if name == "del" && self.in_row_properties => {
                    if let Some(table) = self.tables.last_mut() {
                        table.row_is_deleted = true;
                    }
                }
                _ => {}
            }
            self.left_out = Some((name.to_owned(), 1));
            return;
        }
        match name {
            "p" if self.paragraphs.len() < MAX_DEPTH => {
                // A paragraph whose end was deleted is still open.
                match self.paragraphs.last_mut() {
                    Some(open) if open.goes_on => open.goes_on = false,
                    _ => self.paragraphs.push(Paragraph::default()),
                }
            }
            "pPr" => self.in_paragraph_properties = true,
            "trPr" => self.in_row_properties = true,
            "r" => self.hidden = false,
            "vanish" if !self.in_paragraph_properties && attributes.is_on() => {
                self.hidden = true;
                self.hidden_runs += 1;
            }
            "t" => self.in_text = true,
            "tab" if !self.in_paragraph_properties => self.push("\t"),
            "br" | "cr" => self.push("\n"),
            "noBreakHyphen" => self.push("-"),
            "pic" | "imagedata" => self.pictures += 1,
            "commentReference" => self.comments += 1,
            "footnoteReference" | "endnoteReference" => {
                self.footnotes += 1;
                let mark = format!("[^{}]", attributes.get("id").unwrap_or_default());
                self.push(&mark);
            }
            "hyperlink" => {
                let target = attributes.get("id").and_then(|id| self.links.target(id));
                let length = self.paragraphs.last().map(|paragraph| paragraph.text.len());
                self.link = length.zip(target.map(str::to_owned));
            }
            "txbxContent" => self.link = None,
            "tbl" if self.tables.len() < MAX_DEPTH => self.tables.push(Table::default()),
            "tr" => {
                if let Some(table) = self.tables.last_mut() {
                    table.rows.push(Vec::new());
                    table.row_is_deleted = false;
                }
            }
            "tc" => {
                if let Some(table) = self.tables.last_mut() {
                    table.cell.clear();
                }
            }
            _ => {}
        }
        let Some(paragraph) = self.paragraphs.last_mut().filter(|_| self.in_paragraph_properties)
        else {
            return;
        };
        let value = attributes.get("val").unwrap_or_default();
        match name {
            "pStyle" => paragraph.style = Some(value.to_owned()),
            "outlineLvl" => paragraph.outline = level(value),
            "numId" => paragraph.numbering = Some(value.to_owned()),
            "ilvl" => paragraph.level = value.parse().unwrap_or(0),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "p" => match self.paragraphs.last() {
                Some(paragraph) if paragraph.goes_on => {}
                _ => self.end_paragraph(),
            },
            "pPr" => self.in_paragraph_properties = false,
            "trPr" => self.in_row_properties = false,
            "t" => self.in_text = false,
            "hyperlink" => self.end_link(),
            "tc" => {
                if let Some(table) = self.tables.last_mut() {
                    let cell = std::mem::take(&mut table.cell);
                    match table.rows.last_mut() {
                        Some(row) => row.push(cell),
                        None => table.rows.push(vec![cell]),
                    }
                }
            }
            "tr" => {
                if let Some(table) = self.tables.last_mut().filter(|table| table.row_is_deleted) {
                    table.rows.pop();
                }
            }
            "tbl" => self.end_table(),
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        if !self.hidden
            && let Some(paragraph) = self.paragraphs.last_mut()
        {
            paragraph.text.push_str(text);
            self.bytes += text.len();
        }
    }

    fn end_link(&mut self) {
        let (Some((start, target)), Some(paragraph)) =
            (self.link.take(), self.paragraphs.last_mut())
        else {
            return;
        };
        if let Some(linked) = paragraph.text.get(start..).filter(|text| !text.trim().is_empty()) {
            let marked = markdown::link(linked, &target);
            paragraph.text.truncate(start);
            paragraph.text.push_str(&marked);
        }
    }

    fn end_paragraph(&mut self) {
        self.link = None;
        self.hidden = false;
        let Some(paragraph) = self.paragraphs.pop() else { return };
        let text = paragraph.text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(table) = self.tables.last_mut() {
            if !table.cell.is_empty() {
                table.cell.push(' ');
            }
            table.cell.push_str(text);
            return;
        }
        let style = paragraph.style.as_deref().unwrap_or_default();
        let heading = paragraph.outline.or_else(|| self.styles.level(style));
        let numbering = match paragraph.numbering.as_deref() {
            // 0 takes the numbering of the style away.
            Some("0") => None,
            Some(number) => Some(number.to_owned()),
            None => self.styles.numbering(style).map(str::to_owned),
        };
        match (heading, numbering) {
            (Some(heading), _) => {
                let words: Vec<&str> = text.split_whitespace().collect();
                let line = format!("{} {}", "#".repeat(heading), words.join(" "));
                self.block(&line, false);
            }
            (None, Some(number)) => {
                let level = paragraph.level.min(MAX_LEVEL);
                let marker = match self.numbering.counts(&number, paragraph.level) {
                    true => format!("{}. ", self.count(&number, level)),
                    false => "- ".to_owned(),
                };
                let indent = "  ".repeat(level);
                let lines = text.replace('\n', &format!("\n{indent}  "));
                let line = format!("{indent}{marker}{lines}");
                self.block(&line, true);
            }
            (None, None) => {
                let text = text.to_owned();
                self.block(&text, false);
            }
        }
    }

    fn count(&mut self, number: &str, level: usize) -> u64 {
        let levels = self.counters.entry(number.to_owned()).or_default();
        // What is deeper begins again.
        levels.resize(level + 1, 0);
        levels[level] += 1;
        levels[level]
    }

    fn block(&mut self, text: &str, is_item: bool) {
        if !self.text.is_empty() {
            self.text.push_str(if is_item && self.last_was_item { "\n" } else { "\n\n" });
        }
        self.text.push_str(text);
        self.last_was_item = is_item;
    }

    fn end_table(&mut self) {
        let Some(table) = self.tables.pop() else { return };
        let rows: Vec<Vec<String>> =
            table.rows.into_iter().filter(|row| row.iter().any(|cell| !cell.is_empty())).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        if let Some(outer) = self.tables.last_mut() {
            for cell in rows.iter().flatten().filter(|cell| !cell.is_empty()) {
                if !outer.cell.is_empty() {
                    outer.cell.push(' ');
                }
                outer.cell.push_str(cell);
            }
        } else if columns > 1 {
            let lines = markdown::table(&rows);
            self.block(&lines, false);
        } else {
            for cell in rows.iter().flatten().filter(|cell| !cell.is_empty()) {
                self.block(cell, false);
            }
        }
    }
}
