//! Whatever a file holds, reading it ends, and says what it was.

use std::io::Write;

use correx_documents::DocumentError;
use proptest::prelude::*;

use crate::read;
use crate::writing::{docx, paragraph, pdf, pdf_pages, stream};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_damage_to_any_format_is_read_or_refused(
        which in 0..4_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        end in any::<prop::sample::Index>(),
    ) {
        let (name, mut bytes) = match which {
            0 => ("a.pdf", pdf_pages(&["BT /F1 12 Tf (one) Tj 0 -14 Td [(two) -300 (three)] TJ ET"])),
            1 => ("a.docx", docx(&paragraph("<w:pStyle w:val=\"Heading1\"/>", "Report"))),
            2 => ("a.html", b"<h1>A</h1><table><tr><td>1<td>2</table><ul><li>x</ul><a href=u>v</a>".to_vec()),
            _ => ("a.csv", b"a,b\n\"1\",2\n".to_vec()),
        };
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let end = end.index(bytes.len() * 4).min(bytes.len());
        bytes.truncate(end);
        let _ = read(name, bytes);
    }

    #[test]
    fn any_tags_in_any_order_are_read(tags in prop::collection::vec(
        prop::sample::select(vec![
            "<h1>", "</h1>", "<table>", "</table>", "<tr>", "<td>", "</td>", "<pre>", "</pre>", "<ul>",
            "</ul>", "<li>", "<a href=x>", "</a>", "<code>", "</code>", "<blockquote>", "</blockquote>",
            "<title>", "</title>", "<p>", "word", " ", "<svg>", "</svg>", "é",
        ]), 0..60))
    {
        let html: String = tags.concat();
        prop_assert!(read("a.html", html).is_ok());
    }
}

#[test]
fn depth_costs_neither_stack_nor_memory() {
    for tag in
        ["<div>", "<ul><li>", "<table><tr><td>", "<blockquote>", "<b id=1>", "<a href=x>", "<h1>"]
    {
        assert!(read("a.html", tag.repeat(20_000) + "end").unwrap().text.contains("end"), "{tag}");
    }
    assert!(read("a.docx", docx(&"<w:p>".repeat(20_000))).is_ok());
    assert!(read("a.docx", docx(&"<w:tbl><w:tr><w:tc>".repeat(20_000))).is_ok());
    let nested = "[".repeat(20_000);
    let _ = read("a.pdf", pdf_pages(&[&nested]));
    let _ = read("a.pdf", pdf(&[nested]));
}

/// A stream packed with deflate, as a whole file: its bytes are not text.
fn packed(dictionary: &str, content: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(content).expect("memory takes it");
    let bytes = packer.finish().expect("memory takes it");
    let mut object =
        format!("<< {dictionary} /Filter /FlateDecode /Length {} >>\nstream\n", bytes.len())
            .into_bytes();
    object.extend_from_slice(&bytes);
    object.extend_from_slice(b"\nendstream");
    object
}

/// A file without a table of its objects, which readers look for themselves.
fn loose(objects: &[&[u8]]) -> Vec<u8> {
    let mut file = b"%PDF-1.5\n".to_vec();
    for (index, object) in objects.iter().enumerate() {
        file.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    file.extend_from_slice(b"trailer\n<< /Root 1 0 R >>\n%%EOF");
    file
}

const CATALOG: &[u8] = b"<< /Type /Catalog /Pages 2 0 R >>";
const PAGES: &[u8] =
    b"<< /Type /Pages /Count 1 /Kids [3 0 R] /Resources << /Font << /F1 5 0 R >> >> >>";
const PAGE: &[u8] = b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>";

#[test]
fn a_page_that_unpacks_to_gigabytes_is_cut_short() {
    let content = packed("", &vec![b' '; 40 * 1024 * 1024]);
    let text = stream("", "BT /F1 12 Tf (one) Tj ET").into_bytes();
    let font = b"<< /Type /Font /Subtype /Type1 >>";
    let bomb = loose(&[CATALOG, PAGES, PAGE, &content, font]);
    assert_eq!(read("a.pdf", bomb), Err(DocumentError::OnlyPictures { pages: 1 }));
    let fine = loose(&[CATALOG, PAGES, PAGE, &text, font]);
    assert_eq!(read("a.pdf", fine).unwrap().text, "one\n");
}

#[test]
fn objects_that_lie_inside_one_another_are_read_once() {
    // A thousand objects that all claim the same long list would take gigabytes.
    let list = format!("[{}]", "1 ".repeat(200_000));
    for offset in ["0", "step"] {
        let index: String = (0..1000)
            .map(|number| match offset {
                "0" => format!("{} 0 ", number + 100),
                _ => format!("{} {} ", number + 100, number),
            })
            .collect();
        let body = match offset {
            "0" => list.clone(),
            _ => format!("{}{list}", "[".repeat(1000)),
        };
        let dictionary = format!("/Type /ObjStm /N 1000 /First {}", index.len());
        let objects = packed(&dictionary, format!("{index}{body}").as_bytes());
        let text = stream("", "BT /F1 12 Tf (one) Tj ET").into_bytes();
        let font = b"<< /Type /Font /Subtype /Type1 >>";
        let file = loose(&[CATALOG, PAGES, PAGE, &text, font, &objects]);
        assert_eq!(read("a.pdf", file).unwrap().text, "one\n");
    }
}

#[test]
fn a_font_that_maps_every_code_is_read_in_time() {
    let map = "1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange \
        1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange";
    let text = stream("", "BT /F1 12 Tf <0000000100000002> Tj ET").into_bytes();
    let font = b"<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R >>";
    let file = loose(&[CATALOG, PAGES, PAGE, &text, font, stream("", map).as_bytes()]);
    assert_eq!(read("a.pdf", file).unwrap().text, "BC\n");
}
