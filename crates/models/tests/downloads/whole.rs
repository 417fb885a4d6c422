//! What a download leaves behind when nothing goes wrong.

use std::fs;

use correx_gguf::TensorType;
use correx_models::download::Phase;
use correx_models::hub::{HubFile, Token};
use correx_models::library::{FileState, Origin};
use correx_models::testing::{model_of, model_with_type, small_model};

use crate::given::{FILE, REPO, ended, file, given};

#[tokio::test]
async fn a_file_arrives_whole_where_the_hubs_tools_look_for_it_and_is_recorded() {
    let given = given();
    let download = given.whole().await;
    assert_eq!(download.total, Some(given.content.len() as u64));

    let cache = hf_hub::Cache::new(given.settings.cache.clone());
    let found = cache.model(REPO.into()).get(FILE).unwrap();
    assert!(fs::read(&found).unwrap() == given.content);

    let [installed] = &given.library().list()[..] else { panic!("one record") };
    let Phase::Done { installed: id, path } = &download.phase else { panic!() };
    assert_eq!((&installed.id, installed.path().unwrap()), (id, path.as_path()));
    let Origin::Hub { file: from, commit } = &installed.origin else { panic!() };
    assert_eq!((from, commit.len()), (&file(), 40));
    assert_eq!(installed.files[0].etag.as_ref(), Some(&installed.files[0].sha256));
    let compared = given.library().compare(installed, true, &mut || true).unwrap();
    assert_eq!(compared, FileState::AsRecorded);
}

#[tokio::test]
async fn what_is_here_is_not_fetched_again() {
    let given = given();
    given.whole().await;
    let asked = given.hub.content_asked().len();
    let again = given.ended().await;
    given.assert_whole(&again);
    assert_eq!(given.hub.content_asked().len(), asked);
    assert_eq!(given.library().list().len(), 1);
    assert!(given.library().list()[0].files[0].ours, "it stays ours");
}

#[tokio::test]
async fn what_another_tool_has_fetched_is_used_after_it_was_checked() {
    let given = given();
    given.whole().await;
    given.library().forget(&given.library().list()[0].id.clone()).unwrap();
    let again = given.whole().await;
    assert!(!given.library().list()[0].files[0].ours, "Correx did not put it there");
    let Phase::Done { path, .. } = again.phase else { panic!() };

    // The same size, other bytes: it is not believed for its name.
    let mut damaged = given.content.clone();
    damaged[1000] ^= 1;
    fs::write(path.canonicalize().unwrap(), damaged).unwrap();
    let repaired = given.whole().await;
    assert!(repaired.notice.unwrap().contains("damaged"));
}

#[tokio::test]
async fn the_header_is_checked_before_the_rest_comes() {
    let given = given();
    given.hub.put(REPO, FILE, model_of("tomorrow", 8_000_000));
    let (error, download) = given.failed().await;
    assert!(error.to_string().contains("tomorrow is not supported"), "{error}");
    let correx_models::DownloadError::Unsuitable { seen, .. } = error else { panic!() };
    assert!(seen < 1_000_000, "{seen} bytes came first");
    assert_eq!((given.left().len(), download.done), (0, 0), "nothing is kept of it");
}

#[tokio::test]
async fn a_type_of_weights_that_cannot_be_run_is_refused_before_the_rest_comes() {
    let given = given();
    given.hub.put(REPO, FILE, model_with_type("llama", TensorType::IQ1_M, 8_000_000));
    let (error, _) = given.failed().await;
    let correx_models::DownloadError::Unsuitable { reason, seen } = error else {
        panic!("{error}")
    };
    assert!(reason.contains("IQ1_M") && seen < 1_000_000, "{reason} after {seen} bytes");
    assert!(given.left().is_empty());
}

#[tokio::test]
async fn a_split_model_comes_with_all_its_files_from_one_commit() {
    let given = given();
    let parts = [small_model(200_000), small_model(100_000), small_model(150_000)];
    for (index, part) in parts.iter().enumerate() {
        given.hub.put(REPO, &format!("m-{:05}-of-00003.gguf", index + 1), part.clone());
    }
    let second = HubFile::new(REPO, "m-00002-of-00003.gguf", None).unwrap();
    given.hub.put(REPO, "m-00001-of-00003.gguf", parts[0].clone());
    let download = ended(&given.downloads(), &second).await;
    let Phase::Done { path, .. } = &download.phase else { panic!("{download:?}") };
    assert_eq!(download.done, parts.iter().map(|part| part.len() as u64).sum::<u64>());
    for (index, part) in parts.iter().enumerate() {
        let beside = path.with_file_name(format!("m-{:05}-of-00003.gguf", index + 1));
        assert!(fs::read(beside).unwrap() == *part);
    }
    assert_eq!(given.library().list()[0].files.len(), 3);
    assert_eq!(given.checked.lock().unwrap().len(), 1, "the first file says what it is");
}

#[tokio::test]
async fn a_repository_that_has_moved_is_found() {
    let given = given();
    given.hub.rename("ada/Old-GGUF", REPO);
    let old = HubFile::new("ada/Old-GGUF", FILE, None).unwrap();
    let download = ended(&given.downloads(), &old).await;
    assert!(matches!(download.phase, Phase::Done { .. }), "{download:?}");
}

#[tokio::test]
async fn the_token_goes_to_the_hub_and_to_nobody_else() {
    let mut given = given();
    given.hub.require_token("hf_secret");
    let (error, _) = given.failed().await;
    assert!(error.hint().contains("Accept the licence at http"), "{}", error.hint());
    given.settings.token = Token::new("hf_secret");
    given.whole().await;
    let asked = given.hub.asked();
    let with_token = |content: bool| {
        let mut asked = asked.iter().filter(|asked| asked.content == content);
        asked.any(|asked| asked.headers.contains_key("authorization"))
    };
    assert!(with_token(false));
    assert!(!with_token(true), "the token leaked to another host");
}

#[tokio::test]
async fn nothing_is_asked_before_a_download_is() {
    let given = given();
    let downloads = given.downloads();
    assert!(downloads.list().is_empty());
    downloads.shutdown().await;
    assert!(given.hub.asked().is_empty());
    assert!(!given.settings.cache.exists());
}
