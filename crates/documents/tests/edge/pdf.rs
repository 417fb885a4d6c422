use correx_documents::{DocumentError, Format};

use crate::read;
use crate::writing::{pdf, pdf_pages, stream};

fn text(content: &str) -> String {
    read("a.pdf", pdf_pages(&[content])).unwrap().text
}

#[test]
fn lines_and_paragraphs_come_from_where_the_text_is_drawn() {
    let content = "BT /F1 12 Tf 72 720 Td (First line of a) Tj 0 -14 Td (paragraph.) Tj \
        0 -40 Td [(W) 120 (ords b) -20 (y p) 10 (lace:) -400 (Caf\\351)] TJ ET";
    assert_eq!(text(content), "First line of a\nparagraph.\n\nWords by place: Café\n");
}

#[test]
fn words_drawn_apart_are_told_apart_and_letters_drawn_together_are_not() {
    let content =
        "BT /F1 10 Tf 1 0 0 1 0 0 Tm (ab) Tj 1 0 0 1 10 0 Tm (cd) Tj 1 0 0 1 30 0 Tm (ef) Tj ET";
    assert_eq!(text(content), "abcd ef\n");
}

#[test]
fn text_inside_drawings_is_read_and_drawings_that_draw_themselves_end() {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>"
            .to_owned(),
        stream("", "q 1 0 0 1 0 700 cm /X Do Q"),
        stream(
            "/Type /XObject /Subtype /Form /Resources << /XObject << /X 5 0 R >> /Font << /F 6 0 R >> >>",
            "BT /F 12 Tf (inside) Tj ET q 1 0 0 1 0 -50 cm /X Do Q",
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let found = read("a.pdf", pdf(&objects)).unwrap().text;
    assert!(found.starts_with("inside\n\ninside\n"), "{found}");
}

#[test]
fn fonts_say_which_letters_their_codes_are() {
    let map = "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange \
        2 beginbfchar <0001> <0047> <0002> <D83DDE00> endbfchar \
        2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<00660069> <00FC>] endbfrange endcmap";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R /D 7 0 R >> >> >>".to_owned(),
        stream("", "BT /F 12 Tf <00010010001100120020002100020001> Tj 0 -14 Td /D 12 Tf (\\001\\002A) Tj ET"),
        "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R >>".to_owned(),
        stream("", map),
        "<< /Type /Font /Subtype /Type1 /Encoding << /Differences [1 /fi /Scaron /nonsense] >> >>".to_owned(),
    ];
    assert_eq!(read("a.pdf", pdf(&objects)).unwrap().text, "Gabcfiü😀G\nfiŠA\n");
}

#[test]
fn pages_without_text_are_named_and_a_file_of_pictures_is_refused() {
    let document =
        read("a.pdf", pdf_pages(&["BT /F1 12 Tf (one) Tj ET", "0 0 m 5 5 l S"])).unwrap();
    assert_eq!((document.text.as_str(), document.format), ("one\n", Format::Pdf));
    assert_eq!(document.notes, ["no text on page 2"]);
    let pictures = read("a.pdf", pdf_pages(&["q Q", ""])).unwrap_err();
    assert_eq!(pictures, DocumentError::OnlyPictures { pages: 2 });
}

#[test]
fn fonts_that_do_not_say_their_letters_are_refused_not_guessed() {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>"
            .to_owned(),
        stream("", "BT /F 12 Tf <00010010001100120020> Tj ET"),
        "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H >>".to_owned(),
    ];
    let refused = read("a.pdf", pdf(&objects)).unwrap_err().to_string();
    assert!(refused.contains("OCR"), "{refused}");
}

#[test]
fn an_encrypted_file_is_named() {
    let file = String::from_utf8(pdf_pages(&["BT /F1 12 Tf (one) Tj ET"])).unwrap();
    let encrypted =
        file.replace("/Root 1 0 R", "/Root 1 0 R /Encrypt << /Filter /Standard /V 1 /R 2 >>");
    assert_eq!(read("a.pdf", encrypted), Err(DocumentError::Encrypted));
    let about = pdf_pages(&["BT /F1 12 Tf (/Encrypt it) Tj ET"]);
    assert_eq!(read("a.pdf", about).unwrap().text, "/Encrypt it\n");
}

#[test]
fn a_damaged_file_is_read_as_far_as_it_goes_or_named() {
    let file = pdf_pages(&["BT /F1 12 Tf (one) Tj ET"]);
    let table = file.windows(4).position(|window| window == b"xref").unwrap();
    let without_table = [&file[..table], b"trailer\n<< /Root 1 0 R >>\n%%EOF"].concat();
    assert_eq!(read("a.pdf", without_table).unwrap().text, "one\n");
    let cut = file[..60].to_vec();
    assert!(matches!(read("a.pdf", cut), Err(DocumentError::Broken { format: "PDF", .. })));
}
