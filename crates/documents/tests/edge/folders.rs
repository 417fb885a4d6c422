use std::fs;

use correx_documents::walk;

#[test]
fn files_are_found_in_order_and_the_rest_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("b/c/d")).unwrap();
    for file in ["z.txt", "a.txt", ".hidden", "b/m.txt", "b/c/n.txt", "b/c/d/o.txt"] {
        fs::write(root.join(file), file).unwrap();
    }
    let found = walk(root, 2, 100).unwrap();
    let names: Vec<_> = found.files.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(names, ["a.txt", "b/c/n.txt", "b/m.txt", "z.txt"]);
    assert_eq!(found.left_out, ["b/c/d (too deep)"]);
    let few = walk(root, 8, 2).unwrap();
    assert_eq!(few.files.len(), 2);
    assert_eq!(few.left_out, ["3 more files (the most is 2)"]);
    assert!(walk(&root.join("nothing"), 2, 2).is_err());
}

#[cfg(unix)]
#[test]
fn links_are_named_but_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/", folder.path().join("all")).unwrap();
    let found = walk(folder.path(), 8, 100).unwrap();
    assert_eq!(found.files.len(), 0);
    assert_eq!(found.left_out, ["all (a link)"]);
}
