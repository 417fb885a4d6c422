//! Pausing, resuming, giving up, and what lies about afterwards.

use std::fs;
use std::time::Duration;

use correx_models::DownloadError;
use correx_models::download::{Download, Downloads, KeepPart, Phase, leftovers};
use correx_models::testing::{Trouble, small_model};

use crate::given::{FILE, Given, REPO, file, given, until};

/// Begins slowly, and waits until some of it is here.
async fn begun(given: &Given) -> (Downloads, String) {
    given.hub.trouble([Trouble::Slow(20_000, Duration::from_millis(20))]);
    let downloads = given.downloads();
    let mut watch = downloads.watch();
    let id = downloads.start(&file()).expect("it can begin");
    until(&mut watch, &id, |download| download.done > 100_000).await;
    (downloads, id)
}

async fn stopped(downloads: &Downloads, id: &str) -> Download {
    until(&mut downloads.watch(), id, |download| !download.is_active()).await
}

#[tokio::test]
async fn a_paused_download_goes_on_where_it_stood() {
    let given = given();
    let (downloads, id) = begun(&given).await;
    downloads.pause(&id).unwrap();
    let paused = stopped(&downloads, &id).await;
    assert_eq!(paused.phase, Phase::Paused);
    assert!(paused.done >= 100_000 && paused.done < given.content.len() as u64);
    downloads.resume(&id).unwrap();
    let done = stopped(&downloads, &id).await;
    given.assert_whole(&done);
    assert_eq!(given.ranges(), [None, Some(paused.done)]);
}

#[tokio::test]
async fn a_program_that_starts_later_finds_it_and_goes_on() {
    let given = given();
    let (downloads, id) = begun(&given).await;
    downloads.shutdown().await;
    let kept = stopped(&downloads, &id).await.done;

    let later = given.downloads();
    let asked = given.hub.asked().len();
    let [found] = &later.list()[..] else { panic!("{:?}", later.list()) };
    assert_eq!((&found.id, &found.phase, found.done), (&id, &Phase::Paused, kept));
    assert_eq!(found.total, Some(given.content.len() as u64));
    assert_eq!(given.hub.asked().len(), asked, "looking asks nobody");
    later.resume(&id).unwrap();
    let done = stopped(&later, &id).await;
    given.assert_whole(&done);
    assert_eq!(given.ranges().last(), Some(&Some(kept)));
}

#[tokio::test]
async fn giving_up_deletes_what_is_here_or_keeps_it() {
    let given = given();
    let (downloads, id) = begun(&given).await;
    downloads.cancel(&id, KeepPart::Yes).unwrap();
    assert_eq!(stopped(&downloads, &id).await.phase, Phase::Paused);
    assert!(!given.left().is_empty());
    downloads.cancel(&id, KeepPart::No).unwrap();
    assert!(given.left().is_empty() && downloads.list().is_empty());
    assert_eq!(downloads.resume(&id), Err(DownloadError::Unknown(id.clone())));

    let (downloads, id) = begun(&given).await;
    let mut watch = downloads.watch();
    downloads.cancel(&id, KeepPart::No).unwrap();
    watch.wait_for(Vec::is_empty).await.unwrap();
    assert!(given.left().is_empty());
}

#[tokio::test]
async fn pausing_and_going_on_at_once_goes_on() {
    let given = given();
    let (downloads, id) = begun(&given).await;
    downloads.pause(&id).unwrap();
    downloads.start(&file()).unwrap();
    let mut watch = downloads.watch();
    let ended = |download: &Download| matches!(download.phase, Phase::Done { .. });
    let done = until(&mut watch, &id, ended).await;
    given.assert_whole(&done);
}

#[tokio::test]
async fn a_file_that_has_changed_on_the_hub_begins_again_and_leaves_nothing_of_the_old() {
    let mut given = given();
    let (downloads, _) = begun(&given).await;
    downloads.shutdown().await;
    given.content = small_model(500_000);
    given.content[400_000] ^= 1;
    given.hub.put(REPO, FILE, given.content.clone());
    let done = given.whole().await;
    assert!(done.notice.unwrap().contains("has changed on the hub"));
    assert_eq!(given.ranges().last(), Some(&None));
}

#[tokio::test]
async fn a_commit_that_is_named_stays_that_commit() {
    let given = given();
    let first = given.hub.put(REPO, FILE, given.content.clone());
    given.hub.put(REPO, FILE, small_model(100_000));
    let named = correx_models::HubFile::new(REPO, FILE, Some(&first)).unwrap();
    let done = crate::given::ended(&given.downloads(), &named).await;
    given.assert_whole(&done);
}

#[tokio::test]
async fn parts_of_earlier_versions_are_found_and_can_be_deleted() {
    let given = given();
    let (downloads, _) = begun(&given).await;
    downloads.shutdown().await;
    let mark = given.left().into_iter().find(|path| path.extension().unwrap() == "json").unwrap();
    fs::write(mark, "{\"form\": 0}").unwrap();
    assert!(given.downloads().list().is_empty(), "nobody knows what it is");
    let [left] = &leftovers(&given.settings.cache)[..] else { panic!() };
    assert!(left.mark.is_none() && left.bytes > 0);
    left.remove().unwrap();
    assert!(given.left().is_empty());
    given.whole().await;
}
