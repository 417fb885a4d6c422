use correx_documents::{DocumentError, Format};

use crate::read;
use crate::writing::{docx, docx_with, package, paragraph};

fn text(body: &str) -> String {
    let document = read("a.docx", docx(body)).unwrap();
    assert_eq!(document.format, Format::Docx);
    document.text
}

#[test]
fn headings_lists_tables_and_links_become_markdown() {
    let list = |number: u8, level: u8| {
        format!("<w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{number}\"/></w:numPr>")
    };
    let body = [
        paragraph("<w:pStyle w:val=\"Heading1\"/>", "Report"),
        paragraph("", "Text &amp; more."),
        paragraph("<w:pStyle w:val=\"Mine\"/>", "Part"),
        paragraph(&list(1, 0), "one"),
        paragraph(&list(1, 1), "inner"),
        paragraph(&list(2, 0), "first"),
        paragraph(&list(2, 0), "second"),
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Name</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Sum</w:t></w:r></w:p></w:tc></w:tr>\
         <w:tr><w:tc><w:p><w:r><w:t>A|B</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>5</w:t></w:r></w:p></w:tc></w:tr></w:tbl>".to_owned(),
        "<w:p><w:r><w:t xml:space=\"preserve\">See </w:t></w:r><w:hyperlink r:id=\"r1\"><w:r><w:t>here</w:t></w:r></w:hyperlink><w:r><w:br/><w:t>next</w:t></w:r></w:p>".to_owned(),
    ];
    let expected = "# Report\n\nText & more.\n\n## Part\n\n- one\n  - inner\n1. first\n2. second\n\n\
        | Name | Sum |\n| --- | --- |\n| A\\|B | 5 |\n\n\
        See [here](https://example.org/a?b=1&c=2)\nnext\n";
    assert_eq!(text(&body.concat()), expected);
}

#[test]
fn tracked_changes_read_as_accepted() {
    let body = "<w:p><w:r><w:t>The price is </w:t></w:r><w:del><w:r><w:delText>10</w:delText></w:r></w:del>\
        <w:ins><w:r><w:t>12</w:t></w:r></w:ins><w:moveFrom><w:r><w:t> gone</w:t></w:r></w:moveFrom>\
        <w:moveTo><w:r><w:t> here</w:t></w:r></w:moveTo></w:p>\
        <w:p><w:pPr><w:rPr><w:del w:id=\"1\"/></w:rPr></w:pPr><w:r><w:t>One </w:t></w:r></w:p>\
        <w:p><w:r><w:t>line.</w:t></w:r></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>kept</w:t></w:r></w:p></w:tc><w:tc><w:p/></w:tc></w:tr>\
        <w:tr><w:trPr><w:del w:id=\"2\"/></w:trPr><w:tc><w:p><w:r><w:t>dropped</w:t></w:r></w:p></w:tc></w:tr></w:tbl>";
    assert_eq!(text(body), "The price is 12 here\n\nOne line.\n\n| kept | |\n| --- | --- |\n");
}

#[test]
fn text_boxes_are_read_once_and_what_is_left_out_is_counted() {
    let body = "<w:p><w:r><mc:AlternateContent><mc:Choice><w:drawing><pic:pic/><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:drawing></mc:Choice>\
        <mc:Fallback><w:pict><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:pict></mc:Fallback></mc:AlternateContent></w:r>\
        <w:r><w:t>outside</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r><w:r><w:commentReference w:id=\"0\"/></w:r></w:p>";
    let document = read("a.docx", docx(body)).unwrap();
    assert_eq!(document.text, "boxed\n\noutside\n");
    assert_eq!(
        document.notes,
        ["1 picture left out", "1 comment left out", "1 piece of hidden text left out"]
    );
}

#[test]
fn footnotes_stand_at_the_end() {
    let body = "<w:p><w:r><w:t>Claim</w:t></w:r><w:r><w:footnoteReference w:id=\"2\"/></w:r></w:p>";
    let notes = "<w:footnotes><w:footnote w:type=\"separator\" w:id=\"0\"><w:p/></w:footnote>\
        <w:footnote w:id=\"2\"><w:p><w:r><w:t>Source.</w:t></w:r></w:p></w:footnote></w:footnotes>";
    let document = read("a.docx", docx_with(body, &[("word/footnotes.xml", notes)])).unwrap();
    assert_eq!(document.text, "Claim[^2]\n\n[^2]: Source.\n");
}

#[test]
fn other_packages_are_named() {
    let refused = |parts: &[(&str, &str)]| read("a.docx", package(parts)).unwrap_err().to_string();
    assert!(refused(&[("xl/workbook.xml", "")]).starts_with("a spreadsheet"));
    assert!(refused(&[("ppt/presentation.xml", "")]).starts_with("a presentation"));
    assert!(refused(&[("content.xml", "")]).starts_with("an OpenDocument file"));
    assert!(refused(&[("a.txt", "x")]).starts_with("an archive"));
}

#[test]
fn a_damaged_file_is_named_and_a_bomb_is_limited() {
    let mut cut = docx(&paragraph("", "text"));
    cut.truncate(cut.len() / 2);
    assert!(matches!(read("a.docx", cut), Err(DocumentError::Broken { format: "DOCX", .. })));
    let unclosed = package(&[("word/document.xml", "<w:document><w:body><w:p><w:t>a</w:t")]);
    assert!(matches!(read("a.docx", unclosed), Err(DocumentError::Broken { .. })));
    let bomb = " ".repeat(40 * 1024 * 1024);
    let bomb = package(&[("word/document.xml", &bomb)]);
    assert!(bomb.len() < 100_000);
    assert!(matches!(read("a.docx", bomb), Err(DocumentError::TooMuchInside { .. })));
    let entities = r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><w:document><w:body><w:p><w:r><w:t>x&b;y</w:t></w:r></w:p></w:body></w:document>"#;
    assert_eq!(read("a.docx", package(&[("word/document.xml", entities)])).unwrap().text, "xy\n");
}
