//! Reading inputs: what is read, and what a person is told when it is not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use correx_events::InputKind;
use correx_orchestration::inputs::{MAX_INPUT_BYTES, read};
use correx_orchestration::{GivenInput, InputError, InputText, Workflow};
use tempfile::tempdir;

fn workflow(kind: &str) -> Workflow {
    let text = format!(
        "name = \"x\"\n[[input]]\nname = \"doc\"\ntype = \"{kind}\"\n[[stage]]\nid = \"s\"\nkind = \"generate\"\nprompt = \"go\""
    );
    Workflow::parse(&text).unwrap()
}

fn given(input: GivenInput) -> BTreeMap<String, GivenInput> {
    BTreeMap::from([("doc".to_owned(), input)])
}

fn path(path: &Path) -> BTreeMap<String, GivenInput> {
    given(GivenInput::Path(path.to_owned()))
}

fn file(bytes: &[u8]) -> Result<InputText, InputError> {
    let folder = tempdir().unwrap();
    let file = folder.path().join("näme with spaces.txt");
    fs::write(&file, bytes).unwrap();
    one(read(&workflow("file").inputs, &path(&file)))
}

fn one(
    result: Result<Vec<InputText>, correx_orchestration::InputErrors>,
) -> Result<InputText, InputError> {
    match result {
        Ok(mut texts) => Ok(texts.remove(0)),
        Err(mut errors) => Err(errors.0.remove(0)),
    }
}

#[test]
fn a_file_is_read_as_it_is_without_its_byte_order_mark() {
    let input = file("\u{FEFF}Zoë met Bo.\n".as_bytes()).unwrap();
    assert_eq!(input.text, "Zoë met Bo.\n");
    assert_eq!(input.kind, InputKind::File);
    assert!(input.path.unwrap().ends_with("näme with spaces.txt"));
}

#[test]
fn an_empty_a_binary_and_a_latin_1_file_are_refused_with_the_place() {
    assert!(matches!(file(b" \n\t"), Err(InputError::Empty { .. })));
    let binary = file(b"abc\0def").unwrap_err();
    assert!(binary.to_string().contains("not text: a NUL byte at byte 3"), "{binary}");
    let latin = file(b"caf\xe9").unwrap_err();
    assert!(latin.to_string().contains("not UTF-8 text (byte 3)"), "{latin}");
    assert!(latin.to_string().contains("save it as plain text (UTF-8)"), "{latin}");
}

#[test]
fn a_page_is_read_as_markdown_and_how_a_file_was_read_is_said() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("a.html"), "<h1>Ana</h1><ul><li>one</ul>").unwrap();
    fs::write(folder.path().join("b.csv"), "a,b\n1,2\n3\n").unwrap();
    fs::write(folder.path().join("c.pdf"), "no such file").unwrap();
    let input = one(read(&workflow("folder").inputs, &path(folder.path()))).unwrap();
    assert!(input.text.starts_with("# a.html\n\n# Ana\n\n- one\n\n# b.csv"), "{}", input.text);
    assert!(input.notes[0].starts_with("b.csv: 1 record"), "{:?}", input.notes);
    assert!(
        input.not_read[0].starts_with("c.pdf (it is damaged or no PDF"),
        "{:?}",
        input.not_read
    );
    let page = one(read(&workflow("file").inputs, &path(&folder.path().join("a.html")))).unwrap();
    assert_eq!(page.text, "# Ana\n\n- one\n");
}

#[test]
fn a_text_that_is_given_is_never_taken_for_a_file() {
    for text in ["%PDF-1.4 is how they begin", "<html><b>x</b>", "GIF8"] {
        let given = given(GivenInput::Text(text.to_owned()));
        assert_eq!(one(read(&workflow("text").inputs, &given)).unwrap().text, text);
    }
    let given = given(GivenInput::Text("a\0b".to_owned()));
    assert!(one(read(&workflow("text").inputs, &given)).is_err());
}

#[test]
fn a_missing_file_an_undeclared_name_and_a_missing_value_are_named() {
    let specs = workflow("file").inputs;
    let nowhere = one(read(&specs, &path(Path::new("no/such/file.txt")))).unwrap_err();
    assert!(matches!(nowhere, InputError::Missing { .. }), "{nowhere}");
    let errors = read(&specs, &BTreeMap::from([("dok".to_owned(), GivenInput::Text("x".into()))]))
        .unwrap_err();
    assert_eq!(errors.0.len(), 2);
    assert!(matches!(errors.0[0], InputError::Undeclared { .. }));
    assert!(matches!(errors.0[1], InputError::NotGiven { .. }));
    assert!(errors.to_string().contains("it has: doc"), "{errors}");
}

#[test]
fn a_file_that_is_too_large_is_refused_without_being_read() {
    let folder = tempdir().unwrap();
    let path_of = folder.path().join("big.txt");
    fs::File::create(&path_of).unwrap().set_len(MAX_INPUT_BYTES + 1).unwrap();
    let error = one(read(&workflow("file").inputs, &path(&path_of))).unwrap_err();
    assert!(matches!(error, InputError::TooLarge { bytes, .. } if bytes == MAX_INPUT_BYTES + 1));
    let text = GivenInput::Text("x".repeat(MAX_INPUT_BYTES as usize + 1));
    let error = one(read(&workflow("text").inputs, &given(text))).unwrap_err();
    assert!(matches!(error, InputError::TooLarge { .. }));
}

#[test]
fn a_folder_is_read_in_the_order_of_names_and_what_is_not_text_is_named() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("b.txt"), "Bo").unwrap();
    fs::write(folder.path().join("a.md"), "Ana\n").unwrap();
    fs::write(folder.path().join("c.png"), b"\x89PNG\0").unwrap();
    fs::write(folder.path().join(".hidden"), "no").unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/d.txt"), "Dee").unwrap();
    let input = one(read(&workflow("folder").inputs, &path(folder.path()))).unwrap();
    let d = Path::new("sub").join("d.txt").display().to_string();
    assert!(
        input.text.starts_with(&format!("# a.md\n\nAna\n\n# b.txt\n\nBo\n\n# {d}\n\nDee\n\n")),
        "{}",
        input.text
    );
    assert_eq!(input.not_read.len(), 1);
    assert!(input.not_read[0].starts_with("c.png (a picture"), "{:?}", input.not_read);
    assert!(input.text.contains("c.png"));
    assert!(!input.text.contains("no\n"));
}

#[cfg(unix)]
#[test]
fn a_link_in_a_folder_is_named_and_not_followed() {
    let outside = tempdir().unwrap();
    fs::write(outside.path().join("private.txt"), "private words").unwrap();
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "Ana").unwrap();
    let link = folder.path().join("link.txt");
    std::os::unix::fs::symlink(outside.path().join("private.txt"), link).unwrap();
    let input = one(read(&workflow("folder").inputs, &path(folder.path()))).unwrap();
    assert_eq!(input.not_read, ["link.txt (a link)"]);
    assert!(!input.text.contains("private words"));
}

#[test]
fn a_folder_without_text_is_empty_and_a_folder_in_place_of_a_file_is_refused() {
    let folder = tempdir().unwrap();
    let empty = one(read(&workflow("folder").inputs, &path(folder.path()))).unwrap_err();
    assert!(matches!(empty, InputError::Empty { .. }));
    let wrong = one(read(&workflow("file").inputs, &path(folder.path()))).unwrap_err();
    assert!(matches!(wrong, InputError::WrongKind { .. }));
    let text = given(GivenInput::Text("x".into()));
    let wrong = one(read(&workflow("folder").inputs, &text)).unwrap_err();
    assert!(matches!(wrong, InputError::WrongKind { .. }));
}
