//! A page being written as Markdown, element by element.

use html5ever::tokenizer::Tag;

use crate::markdown;

/// Lists in lists, and quotations in quotations, that are indented; deeper ones stay at this depth.
const MAX_INDENT: usize = 8;
/// Elements whose content is not read, with everything in them.
const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select",
    "datalist", "audio", "video", "canvas", "noembed", "noframes",
];
/// Elements that can be hidden by an attribute and always have an end tag.
const CLOSED: &[&str] = &[
    "div", "span", "section", "article", "aside", "nav", "form", "ul", "ol", "table", "a",
    "button", "details", "dialog",
];
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "body",
    "details",
    "dialog",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "html",
    "main",
    "nav",
    "p",
    "section",
    "summary",
    "caption",
    "head",
];

/// Text that is being collected: the page, or what will stand in one place of it.
#[derive(Default)]
struct Frame {
    text: String,
    /// White space came since the last word.
    space: bool,
    /// Line breaks that are due before the next word: 0, 1 or 2.
    breaks: usize,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    /// Tables inside this one, whose cells become part of its own.
    nested: usize,
}

#[derive(Default)]
pub(super) struct Page {
    frames: Vec<Frame>,
    bottom: Frame,
    finished_bytes: usize,
    skipped: Option<(String, usize)>,
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// How deep the last word was quoted.
    last_quotes: usize,
    /// Bullet or number that stands before the next word.
    marker: Option<String>,
    table: Option<Table>,
    in_cell: bool,
    /// An open link's address, and where its text begins once there is some.
    link: Option<(Option<usize>, String)>,
    code: Option<Option<usize>>,
    preformatted: bool,
    title: Option<String>,
    in_title: bool,
    has_heading: bool,
}

impl Page {
    /// What is held, in bytes.
    pub(super) fn size(&self) -> usize {
        self.finished_bytes + self.frame().text.len() + self.bottom.text.len()
    }

    pub(super) fn finish(mut self) -> String {
        if self.preformatted {
            self.end_preformatted();
        }
        if self.table.is_some() {
            self.end_table();
        }
        // What was begun and never ended.
        while let Some(frame) = self.frames.pop() {
            self.words(&frame.text);
        }
        let body = self.bottom.text.trim().to_owned();
        match self.title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" ")) {
            Some(title) if !title.is_empty() && !self.has_heading => match body.is_empty() {
                true => format!("# {title}\n"),
                false => format!("# {title}\n\n{body}\n"),
            },
            _ if body.is_empty() => body,
            _ => body + "\n",
        }
    }

    fn frame(&self) -> &Frame {
        self.frames.last().unwrap_or(&self.bottom)
    }

    fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().unwrap_or(&mut self.bottom)
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
        } else if self.preformatted {
            self.frame_mut().text.push_str(text);
        } else if self.table.is_some() && !self.in_cell {
            // Between the cells of a table there is nothing but white space.
            if !text.trim().is_empty() {
                self.words(text);
            }
        } else {
            self.words(text);
        }
    }

    fn words(&mut self, text: &str) {
        let blank = |c: char| c.is_whitespace() && c != '\u{A0}' && c != '\u{202F}';
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if blank(first) {
                self.frame_mut().space = true;
                rest = rest.trim_start_matches(blank);
                continue;
            }
            let (word, after) = rest.split_at(rest.find(blank).unwrap_or(rest.len()));
            rest = after;
            self.word(word);
        }
    }

    fn word(&mut self, word: &str) {
        let nested = !self.frames.is_empty();
        let marker = if nested { None } else { self.marker.take() };
        let depth = self.lists.len().min(MAX_INDENT);
        let quotes = "> ".repeat(self.quotes.min(MAX_INDENT));
        let outside = usize::from(marker.is_some());
        let indent = "  ".repeat(depth.saturating_sub(outside));
        let between = "> ".repeat(self.quotes.min(self.last_quotes).min(MAX_INDENT));
        if !nested {
            self.last_quotes = self.quotes;
        }
        let frame = self.frame_mut();
        if frame.text.is_empty() || frame.breaks > 0 {
            if !frame.text.is_empty() {
                let quoted = if nested { "" } else { between.trim_end() };
                for index in 0..frame.breaks {
                    if index > 0 {
                        frame.text.push_str(quoted);
                    }
                    frame.text.push('\n');
                }
            }
            if !nested {
                frame.text.push_str(&quotes);
                frame.text.push_str(&indent);
                frame.text.push_str(marker.as_deref().unwrap_or_default());
            }
        } else if frame.space {
            frame.text.push(' ');
        }
        frame.space = false;
        frame.breaks = 0;
        let at = frame.text.len();
        match word.contains('\n') && !nested {
            // Tables and code keep the indentation of what they stand in.
            true => frame.text.push_str(&word.replace('\n', &format!("\n{quotes}{indent}"))),
            false => frame.text.push_str(word),
        }
        if let Some((start, _)) = &mut self.link {
            start.get_or_insert(at);
        }
        if let Some(start) = &mut self.code {
            start.get_or_insert(at);
        }
    }

    fn due(&mut self, breaks: usize) {
        self.close_inline();
        let frame = self.frame_mut();
        frame.breaks = frame.breaks.max(breaks);
    }

    /// Links and code do not reach over the end of a block.
    fn close_inline(&mut self) {
        self.end_code();
        self.end_link();
    }

    pub(super) fn start(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if let Some((skipped, depth)) = &mut self.skipped {
            if *skipped == *name && !tag.self_closing {
                *depth += 1;
            }
            return;
        }
        if SKIPPED.contains(&name) || (CLOSED.contains(&name) && is_hidden(tag)) {
            if !(tag.self_closing && matches!(name, "svg" | "math")) {
                self.skipped = Some((name.to_owned(), 1));
            }
            return;
        }
        if self.preformatted {
            if name == "br" {
                self.frame_mut().text.push('\n');
            }
            return;
        }
        match name {
            "title" => self.in_title = self.title.is_none(),
            "br" => self.due(1),
            "hr" => {
                self.due(2);
                if self.frames.is_empty() {
                    self.word("---");
                }
                self.due(2);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.due(2);
                if self.frames.is_empty() {
                    self.has_heading = true;
                    self.frames.push(Frame::default());
                }
            }
            "ul" | "ol" | "menu" => {
                self.due(if self.lists.is_empty() { 2 } else { 1 });
                let first = attribute(tag, "start").and_then(|start| start.parse().ok());
                self.lists.push((name == "ol").then_some(first.unwrap_or(1)));
            }
            "li" => {
                self.due(1);
                self.marker = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    _ => "- ".to_owned(),
                });
            }
            "dt" | "dd" => self.due(1),
            "blockquote" => {
                self.due(2);
                self.quotes += 1;
            }
            "pre" | "xmp" | "textarea" => self.start_preformatted(),
            "code" | "kbd" | "samp" => {
                self.end_code();
                self.code = Some(None);
            }
            "a" => {
                self.end_link();
                if let Some(address) = attribute(tag, "href") {
                    self.link = Some((None, address.to_owned()));
                }
            }
            "img" => {
                if let Some(words) = attribute(tag, "alt").filter(|alt| !alt.trim().is_empty()) {
                    let words = format!("[{}]", words.trim());
                    self.words(&words);
                }
            }
            "table" => match &mut self.table {
                Some(table) => table.nested += 1,
                None => {
                    self.due(2);
                    self.table = Some(Table::default());
                }
            },
            "tr" if self.is_nested() => self.frame_mut().space = true,
            "tr" => {
                self.end_cell();
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            "td" | "th" if self.is_nested() || self.table.is_none() => {
                self.frame_mut().space = true
            }
            "td" | "th" => {
                self.end_cell();
                self.frames.push(Frame::default());
                self.in_cell = true;
            }
            block if BLOCKS.contains(&block) => self.due(2),
            _ => {}
        }
    }

    pub(super) fn end(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            if *skipped == *name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "pre" | "xmp" | "textarea" => self.end_preformatted(),
            _ if self.preformatted => {}
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.end_heading(name),
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.marker = None;
                self.due(if self.lists.is_empty() { 2 } else { 1 });
            }
            "li" | "dt" | "dd" => self.due(1),
            "blockquote" => {
                self.due(2);
                self.quotes = self.quotes.saturating_sub(1);
            }
            "code" | "kbd" | "samp" => self.end_code(),
            "a" => self.end_link(),
            "td" | "th" | "tr" if !self.is_nested() => self.end_cell(),
            "table" => match &mut self.table {
                Some(table) if table.nested > 0 => table.nested -= 1,
                _ => self.end_table(),
            },
            block if BLOCKS.contains(&block) => self.due(2),
            _ => {}
        }
    }

    /// Whether this is a table in the cell of another one.
    fn is_nested(&self) -> bool {
        self.table.as_ref().is_some_and(|table| table.nested > 0)
    }

    fn end_heading(&mut self, name: &str) {
        self.close_inline();
        if self.in_cell {
            return;
        }
        if let Some(frame) = self.frames.pop() {
            let words: Vec<&str> = frame.text.split_whitespace().collect();
            if !words.is_empty() {
                let level = name[1..].parse().unwrap_or(1);
                let line = format!("{} {}", "#".repeat(level), words.join(" "));
                self.word(&line);
            }
        }
        self.due(2);
    }

    fn end_code(&mut self) {
        if let Some(Some(start)) = self.code.take() {
            let text = &mut self.frame_mut().text;
            if let Some(code) = text.get(start..).filter(|code| !code.contains(['`', '\n'])) {
                let marked = format!("`{code}`");
                text.truncate(start);
                text.push_str(&marked);
            }
        }
    }

    fn end_link(&mut self) {
        if let Some((Some(start), address)) = self.link.take() {
            self.end_code();
            let text = &mut self.frame_mut().text;
            if let Some(linked) = text.get(start..) {
                let marked = markdown::link(linked, &address);
                text.truncate(start);
                text.push_str(&marked);
            }
        }
    }

    fn start_preformatted(&mut self) {
        self.due(2);
        self.frames.push(Frame::default());
        self.preformatted = true;
    }

    fn end_preformatted(&mut self) {
        if !std::mem::take(&mut self.preformatted) {
            return;
        }
        let Some(frame) = self.frames.pop() else { return };
        let code = frame.text.trim_matches(['\n', '\r']).trim_end();
        if !code.trim().is_empty() {
            if self.frames.is_empty() {
                let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
                let fence = "`".repeat((longest + 1).max(3));
                self.word(&format!("{fence}\n{code}\n{fence}"));
            } else {
                self.words(code);
            }
        }
        self.due(2);
    }

    fn end_cell(&mut self) {
        self.close_inline();
        if !std::mem::take(&mut self.in_cell) {
            return;
        }
        let cell = self.frames.pop().map(|frame| frame.text).unwrap_or_default();
        self.finished_bytes += cell.len();
        if let Some(table) = &mut self.table {
            match table.rows.last_mut() {
                Some(row) => row.push(cell),
                None => table.rows.push(vec![cell]),
            }
        }
    }

    fn end_table(&mut self) {
        self.end_cell();
        let Some(table) = self.table.take() else { return };
        self.finished_bytes = 0;
        let mut rows = table.rows;
        let filled = |row: &Vec<String>| row.iter().any(|cell| !cell.trim().is_empty());
        rows.retain(filled);
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        self.due(2);
        if columns > 1 && rows.len() > 1 && self.frames.is_empty() {
            let lines = markdown::table(&rows);
            self.word(&lines);
        } else {
            // A table of one row or one column only places things on the page.
            for cell in rows.iter().flatten().filter(|cell| !cell.trim().is_empty()) {
                self.word(cell.trim());
                self.due(2);
            }
        }
        self.due(2);
    }
}

fn attribute<'t>(tag: &'t Tag, name: &str) -> Option<&'t str> {
    let found = tag.attrs.iter().find(|attribute| &*attribute.name.local == name);
    found.map(|attribute| &*attribute.value)
}

fn is_hidden(tag: &Tag) -> bool {
    let style = attribute(tag, "style").unwrap_or_default().to_lowercase();
    attribute(tag, "hidden").is_some()
        || style.replace(' ', "").contains("display:none")
        || style.replace(' ', "").contains("visibility:hidden")
}
