use correx_documents::{DocumentError, Format};

use crate::read;

#[test]
fn utf_8_is_kept_as_it_is_without_its_mark() {
    let document = read("a.txt", "\u{FEFF}Grüße\r\n").unwrap();
    assert_eq!((document.text.as_str(), document.format), ("Grüße\r\n", Format::Text));
    assert!(document.notes.is_empty());
    assert_eq!(read("a.md", "# A").unwrap().format, Format::Markdown);
    assert_eq!(read("a", "").unwrap().text, "");
}

#[test]
fn utf_16_is_read_when_its_mark_says_so() {
    let words = "Grüße 😀";
    let little: Vec<u8> = words.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = words.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(read("a.txt", [b"\xFF\xFE", little.as_slice()].concat()).unwrap().text, words);
    assert_eq!(read("a.txt", [b"\xFE\xFF", big.as_slice()].concat()).unwrap().text, words);
    let broken = read("a.txt", *b"\xFF\xFE\x00\xD8");
    assert!(matches!(broken, Err(DocumentError::NotText { .. })), "{broken:?}");
}

#[test]
fn windows_1252_is_read_when_it_is_sure_and_said_so() {
    let text = "Sehr geehrte Frau Müller, die Verträge über die Räume in Köln sind geprüft.";
    let bytes: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
    let document = read("a.txt", bytes).unwrap();
    assert_eq!(document.text, text);
    assert!(document.notes[0].contains("windows-1252"), "{:?}", document.notes);
    let (french, _, _) =
        encoding_rs::WINDOWS_1252.encode("L’été dernier, la société a payé 5 000 € à l’hôtel.");
    let bytes = french.into_owned();
    assert!(read("a.txt", bytes).unwrap().text.contains("5 000 € à l’hôtel"));
}

#[test]
fn what_is_not_sure_is_refused_with_the_place_and_a_guess() {
    assert!(matches!(
        read("a.txt", *b"abc\xE9"),
        Err(DocumentError::Encoding { offset: 3, guess: None })
    ));
    let (russian, _, _) = encoding_rs::WINDOWS_1251.encode("Договор аренды помещения в Москве");
    let refused = read("a.txt", russian.into_owned()).unwrap_err();
    assert!(refused.to_string().contains("windows-1251"), "{refused}");
    assert!(matches!(read("a.txt", *b"abc\0def"), Err(DocumentError::NotText { offset: 3, .. })));
}

#[test]
fn tables_are_kept_and_their_delimiter_is_told() {
    let of = |name: &str, text: &str| {
        let document = read(name, text).unwrap();
        assert_eq!(document.text, text);
        (document.format, document.notes)
    };
    let csv = |delimiter| Format::Csv { delimiter };
    assert_eq!(of("a.csv", "a,b\n1,2\n").0, csv(','));
    assert_eq!(of("a.csv", "name;sum\n\"x;y\";1,5\nz;2,5\n").0, csv(';'));
    assert_eq!(of("a.tsv", "a\tb\n1\t2\n").0, csv('\t'));
    assert_eq!(of("a.csv", "only\none\n").0, csv(','));
    let (_, notes) = of("a.csv", "a,b\n1,2\n3\n4,5\n\"6\n7\",8\n9,10,11\n");
    assert_eq!(notes, ["2 records without the 2 fields of the others, the first in line 3"]);
}

#[test]
fn what_is_known_and_not_read_is_named_with_what_to_do() {
    for (bytes, what) in [
        (b"\x89PNG\r\n".as_slice(), "a picture"),
        (b"\xD0\xCF\x11\xE0\xA1", "an old Office file"),
        (b"{\\rtf1 x}", "RTF"),
        (b"\x1F\x8B\x08", "an archive"),
    ] {
        let refused = read("a.bin", bytes).unwrap_err().to_string();
        assert!(refused.contains(what) && refused.contains("; "), "{refused}");
    }
}

#[test]
fn a_name_does_not_make_a_file() {
    assert!(matches!(read("a.pdf", "text"), Err(DocumentError::Broken { format: "PDF", .. })));
    assert!(matches!(read("a.docx", "text"), Err(DocumentError::Broken { format: "DOCX", .. })));
    assert_eq!(read("a.txt", "How a %PDF-1.4 file begins").unwrap().format, Format::Text);
}
