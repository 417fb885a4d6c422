//! Opening a data directory that is not as it should be.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use correx_events::{RandomIds, SystemClock};
use correx_store::{FORMAT_VERSION, OpenError, STORE_FILE, Store};
use redb::TableDefinition;

use crate::support::{all, append, new_store, open, session};

fn try_open(dir: &Path) -> Result<Store, OpenError> {
    Store::open(dir, Arc::new(SystemClock), Arc::new(RandomIds))
}

fn refusal(dir: &Path) -> OpenError {
    match try_open(dir) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_data_directory_is_made_with_everything_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("ä b").join("c");
    append(&open(&deep), &session("a"), &[1]).await;
    assert_eq!(all(&open(&deep), &session("a")).await.len(), 1);
}

#[cfg(unix)]
#[test]
fn a_new_store_can_be_read_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drop(open(&data));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join(STORE_FILE)), 0o600);
}

#[test]
fn a_file_in_the_place_of_the_data_directory_is_named_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    for place in [file.clone(), file.join("below")] {
        let error = refusal(&place);
        assert!(matches!(error, OpenError::NotAFolder { .. }), "{error:?}");
        assert!(error.to_string().contains(place.to_str().unwrap()), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_that_is_read_only_is_named() {
    // The kernel's own files: nobody can make any there, root neither.
    let error = refusal(Path::new("/proc/correx"));
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_second_opening_of_the_same_directory_is_refused_and_harms_nothing() {
    let (dir, store) = new_store();
    append(&store, &session("a"), &[1]).await;
    let error = refusal(dir.path());
    assert!(matches!(error, OpenError::AlreadyOpen { .. }), "{error:?}");
    assert!(error.to_string().contains("in use by another Correx"), "{error}");
    append(&store, &session("a"), &[2]).await;

    let clone = store.clone();
    drop(store);
    assert!(matches!(refusal(dir.path()), OpenError::AlreadyOpen { .. }), "a clone has it open");
    drop(clone);
    assert_eq!(all(&open(dir.path()), &session("a")).await.len(), 2);
}

#[test]
fn a_file_that_is_not_a_store_is_kept_as_it_is() {
    let foreign = [
        ("empty", Vec::new()),
        ("zeros", vec![0; 200_000]),
        ("text", b"<html>not found</html>".to_vec()),
        ("short", b"redb".to_vec()),
    ];
    for (what, bytes) in foreign {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(STORE_FILE);
        fs::write(&path, &bytes).unwrap();
        let error = refusal(dir.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("left as it is"), "{what}: {error}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "{what}");
    }
}

#[tokio::test]
async fn a_store_that_was_cut_off_or_overwritten_is_refused_and_kept() {
    let (dir, store) = new_store();
    append(&store, &session("a"), &(0..2000).collect::<Vec<_>>()).await;
    drop(store);
    let path = dir.path().join(STORE_FILE);
    let whole = fs::read(&path).unwrap();
    let mut zeroed = whole.clone();
    zeroed[4096..].fill(0);
    for damaged in [whole[..whole.len() / 2].to_vec(), whole[..4096].to_vec(), zeroed] {
        fs::write(&path, &damaged).unwrap();
        let error = refusal(dir.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(all(&open(dir.path()), &session("a")).await.len(), 2000, "a backup put back works");
}

#[test]
fn a_database_of_another_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let table: TableDefinition<&str, &str> = TableDefinition::new("meta");
    let database = redb::Database::create(dir.path().join(STORE_FILE)).unwrap();
    let tx = database.begin_write().unwrap();
    tx.open_table(table).unwrap().insert("format", "x").unwrap();
    tx.commit().unwrap();
    drop(database);
    let error = refusal(dir.path());
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
}

#[test]
fn a_store_of_a_newer_format_is_refused_with_both_versions() {
    let (dir, store) = new_store();
    drop(store);
    let meta: TableDefinition<&str, u64> = TableDefinition::new("meta");
    let database = redb::Database::open(dir.path().join(STORE_FILE)).unwrap();
    let tx = database.begin_write().unwrap();
    tx.open_table(meta).unwrap().insert("format", FORMAT_VERSION + 1).unwrap();
    tx.commit().unwrap();
    drop(database);
    let error = refusal(dir.path());
    assert!(
        matches!(error, OpenError::NewerFormat { found, known, .. }
            if (found, known) == (FORMAT_VERSION + 1, FORMAT_VERSION)),
        "{error:?}"
    );
}

#[test]
fn a_first_start_that_was_cut_off_is_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("correx.redb.new"), vec![0; 4096]).unwrap();
    drop(open(dir.path()));
    let names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.contains(&"correx.redb.new".into()), "{names:?}");
}
