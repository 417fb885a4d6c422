//! Where things are.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").into()
}

/// A program that this workspace builds.
///
/// # Panics
/// When it has not been built.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    // target/debug/deps/some_test → target/debug
    let folder = test.ancestors().nth(2).expect("tests are built into a folder of their own");
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "{} is missing: `cargo xtask test` builds it before the tests",
        path.display()
    );
    path
}

/// The default model's file.
///
/// # Panics
/// When it has not been fetched.
pub fn model() -> PathBuf {
    let path = std::env::var_os("CORREX_MODEL")
        .map_or_else(|| root().join("models/SmolLM2-135M-Instruct.Q4_1.gguf"), PathBuf::from);
    assert!(path.is_file(), "{} is missing: run `cargo xtask setup`", path.display());
    path
}

/// A file of an example.
pub fn example(path: &str) -> PathBuf {
    root().join("examples").join(path)
}
