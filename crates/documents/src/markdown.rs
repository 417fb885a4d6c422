//! Markdown that the readers write.

/// A table of these rows, the first one its head. Rows may have different lengths; line breaks in
/// a cell become spaces.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells: usize = rows.iter().map(Vec::len).sum();
    // A row of a million cells must not make every other row as long.
    let padded = rows.len().saturating_mul(columns) <= cells.saturating_mul(4) + 1000;
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        line(&mut text, row.iter().map(String::as_str), if padded { columns } else { row.len() });
        if index == 0 {
            let columns = if padded { columns } else { row.len() };
            line(&mut text, std::iter::repeat_n("---", columns), columns);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn line<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>, columns: usize) {
    text.push('|');
    for cell in cells.chain(std::iter::repeat("")).take(columns) {
        text.push(' ');
        for (index, word) in cell.split_whitespace().enumerate() {
            if index > 0 {
                text.push(' ');
            }
            text.push_str(&word.replace('|', "\\|"));
        }
        text.push_str(if cell.trim().is_empty() { "|" } else { " |" });
    }
    text.push('\n');
}

/// `text` as a link, unless the address leads nowhere outside the document.
pub(crate) fn link(text: &str, address: &str) -> String {
    let address = address.trim();
    let scheme = address.split(':').next().unwrap_or_default().to_lowercase();
    let dead = address.is_empty()
        || address.starts_with('#')
        || address.len() > 500
        || ["javascript", "data", "vbscript"].contains(&scheme.as_str());
    if dead || text.contains('\n') || text.trim() == address {
        return text.to_owned();
    }
    let address = address.replace(char::is_whitespace, "%20").replace(')', "%29");
    format!("[{}]({address})", text.trim())
}
