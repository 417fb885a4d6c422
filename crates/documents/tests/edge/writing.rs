//! Small files of each format, written here.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;

/// A package with these parts.
pub(crate) fn package(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).expect("a part begins");
        writer.write_all(text.as_bytes()).expect("a part is written");
    }
    writer.finish().expect("the package ends").into_inner()
}

/// A Word file with this body, heading styles, a bullet list (1), a numbered list (2) and a link.
pub(crate) fn docx(body: &str) -> Vec<u8> {
    docx_with(body, &[])
}

pub(crate) fn docx_with(body: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let document =
        format!("<?xml version=\"1.0\"?><w:document><w:body>{body}</w:body></w:document>");
    let styles = r#"<w:styles>
        <w:style w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>
        <w:style w:styleId="Ueberschrift2"><w:name w:val="heading 2"/></w:style>
        <w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="Ueberschrift2"/></w:style>
        <w:style w:styleId="A"><w:basedOn w:val="B"/></w:style>
        <w:style w:styleId="B"><w:basedOn w:val="A"/></w:style>
        </w:styles>"#;
    let numbering = r#"<w:numbering>
        <w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>
        <w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
        <w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
        <w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>
        <w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num></w:numbering>"#;
    let links = r#"<Relationships><Relationship Id="r1" Type="x/hyperlink"
        Target="https://example.org/a?b=1&amp;c=2" TargetMode="External"/></Relationships>"#;
    let mut parts = vec![
        ("word/document.xml", document.as_str()),
        ("word/styles.xml", styles),
        ("word/numbering.xml", numbering),
        ("word/_rels/document.xml.rels", links),
    ];
    parts.extend(more);
    package(&parts)
}

/// A paragraph with properties and text.
pub(crate) fn paragraph(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// A PDF file of these objects, the first of which is numbered 1 and is the catalogue.
pub(crate) fn pdf(objects: &[String]) -> Vec<u8> {
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for place in places {
        file.push_str(&format!("{place:010} 00000 n \n"));
    }
    file.push_str(&format!(
        "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n",
        objects.len() + 1
    ));
    file.into_bytes()
}

/// A stream object.
pub(crate) fn stream(dictionary: &str, content: &str) -> String {
    format!("<< {dictionary} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// A PDF file with a page for each of these contents, and the font `F1` in Helvetica.
pub(crate) fn pdf_pages(contents: &[&str]) -> Vec<u8> {
    let pages: Vec<String> =
        (0..contents.len()).map(|index| format!("{} 0 R", 4 + index * 2)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Count {} /Kids [{}] /Resources << /Font << /F1 3 0 R >> >> >>",
            contents.len(),
            pages.join(" ")
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (index, content) in contents.iter().enumerate() {
        objects.push(format!("<< /Type /Page /Parent 2 0 R /Contents {} 0 R >>", 5 + index * 2));
        objects.push(stream("", content));
    }
    pdf(&objects)
}
