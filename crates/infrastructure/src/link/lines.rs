//! Newline-delimited messages of bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its newline.
    Text(String),
    /// A line with more bytes than allowed; it was skipped.
    TooLong,
    /// A line that is not UTF-8; it was skipped.
    NotText,
    /// There will be no more.
    End,
}

/// Reads the next line of at most `limit` bytes. What is longer is read away without being kept.
pub(super) async fn next(
    reader: &mut (impl AsyncBufRead + Unpin),
    limit: usize,
) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            // What was not ended by a newline was cut off: it is no message.
            return Ok(Line::End);
        }
        let newline = available.iter().position(|byte| *byte == b'\n');
        let piece = &available[..newline.unwrap_or(available.len())];
        too_long = too_long || line.len() + piece.len() > limit;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        let used = newline.map_or(available.len(), |at| at + 1);
        reader.consume(used);
        if newline.is_some() {
            break;
        }
    }
    if too_long {
        return Ok(Line::TooLong);
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(String::from_utf8(line).map_or(Line::NotText, Line::Text))
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn all(input: &[u8], limit: usize) -> Vec<Line> {
        // A tiny buffer, so that lines come in pieces.
        let mut reader = BufReader::with_capacity(3, input);
        let mut lines = Vec::new();
        loop {
            match next(&mut reader, limit).await.unwrap() {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    #[tokio::test]
    async fn bad_lines_are_skipped_and_the_next_is_read() {
        let text = |text: &str| Line::Text(text.into());
        let lines = all(b"one\r\n\nlong line\n\xff\xfe\nfour\ncut off", 5).await;
        assert_eq!(lines, [text("one"), text(""), Line::TooLong, Line::NotText, text("four")]);
        assert_eq!(all(b"12345\n123456\n", 5).await, [text("12345"), Line::TooLong]);
    }
}
