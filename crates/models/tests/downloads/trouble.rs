//! What goes wrong on the way, and passes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use correx_models::download::{DownloadError, Phase};
use correx_models::testing::Trouble;

use crate::given::{BYTES, SmallDisk, file, given, until};

#[tokio::test]
async fn a_connection_that_breaks_off_is_taken_up_where_it_broke() {
    let given = given();
    given.hub.trouble([
        Trouble::Truncated(100_000),
        Trouble::TruncatedWithoutLength(150_000),
        Trouble::Truncated(1),
        Trouble::Truncated(0),
    ]);
    given.whole().await;
    let ranges = given.ranges();
    assert_eq!(ranges.len(), 5);
    assert_eq!(ranges[0], None);
    assert!(ranges[1] > Some(0) && ranges[2] > ranges[1] && ranges[3] >= ranges[2], "{ranges:?}");
    let asked = given.hub.content_asked();
    assert!(asked[1].headers.contains_key("if-range"), "only if it is still the same");
}

#[tokio::test]
async fn a_stall_is_noticed_and_taken_up() {
    let given = given();
    given.hub.trouble([Trouble::Stalled(100_000), Trouble::Stalled(0)]);
    let downloads = given.downloads();
    let mut watch = downloads.watch();
    let id = downloads.start(&file()).unwrap();
    let stalled = until(&mut watch, &id, |download| {
        matches!(&download.phase, Phase::Retrying { error: DownloadError::Stalled { .. }, .. })
    });
    stalled.await;
    let done = until(&mut watch, &id, |download| !download.is_active()).await;
    given.assert_whole(&done);
}

#[tokio::test]
async fn a_connection_that_trickles_is_not_alive() {
    let given = given();
    given.hub.always(Some(Trouble::Slow(10, Duration::from_millis(40))));
    let (error, _) = given.failed().await;
    let DownloadError::GaveUp { last, tries: 4 } = error else { panic!("{error}") };
    assert!(matches!(*last, DownloadError::Stalled { .. }), "{last}");
}

#[tokio::test]
async fn a_slow_connection_is_alive() {
    let given = given();
    given.hub.always(Some(Trouble::Slow(60_000, Duration::from_millis(60))));
    given.whole().await;
    assert_eq!(given.ranges(), [None]);
}

#[tokio::test]
async fn when_it_does_not_get_further_it_fails_with_what_is_kept_and_goes_on_later() {
    let given = given();
    given.hub.trouble([Trouble::Truncated(200_000)]);
    given.hub.always(Some(Trouble::Truncated(0)));
    let (error, download) = given.failed().await;
    assert!(matches!(error, DownloadError::GaveUp { .. }), "{error}");
    let kept = download.done;
    assert!(kept > 100_000, "{kept}");
    assert!(download.kept().unwrap().contains("200.0 kB of 600"), "{:?}", download.kept());

    given.hub.always(None);
    let before = given.ranges().len();
    given.whole().await;
    assert_eq!(given.ranges()[before..], [Some(kept)], "not a byte is fetched twice");
}

#[tokio::test]
async fn a_server_that_ignores_ranges_sends_it_all_again() {
    let given = given();
    given.hub.trouble([Trouble::Truncated(200_000), Trouble::RangeIgnored]);
    given.whole().await;
}

#[tokio::test]
async fn a_file_that_was_replaced_on_the_way_begins_again() {
    let given = given();
    given.hub.trouble([Trouble::Truncated(200_000), Trouble::Replaced]);
    given.whole().await;
}

#[tokio::test]
async fn a_wrong_range_is_never_glued_together() {
    let given = given();
    given.hub.trouble([Trouble::Truncated(200_000), Trouble::WrongRange]);
    let (error, download) = given.failed().await;
    assert!(matches!(error, DownloadError::Answer { .. }), "{error}");
    assert!(download.done > 0);
    given.whole().await;
}

#[tokio::test]
async fn wrong_lengths_and_encodings_are_refused() {
    for trouble in [Trouble::WrongLength, Trouble::TooMuch, Trouble::Compressed] {
        let given = given();
        given.hub.trouble([trouble.clone()]);
        let (error, _) = given.failed().await;
        assert!(matches!(error, DownloadError::Answer { .. }), "{trouble:?}: {error}");
        given.whole().await;
    }
}

#[tokio::test]
async fn damage_on_the_way_is_noticed_and_repaired_once() {
    let given = given();
    given.hub.trouble([Trouble::Damaged]);
    let download = given.whole().await;
    assert!(download.notice.unwrap().contains("damaged"));

    let given = crate::given::given();
    given.hub.always(Some(Trouble::Damaged));
    let (error, _) = given.failed().await;
    assert!(matches!(error, DownloadError::Different { .. }), "{error}");
    assert!(given.left().is_empty(), "nothing of it can be used");
    assert!(given.library().list().is_empty());
}

#[tokio::test]
async fn damage_in_a_resumed_part_is_noticed() {
    let given = given();
    given.hub.trouble([Trouble::Truncated(300_000)]);
    given.hub.always(Some(Trouble::Truncated(0)));
    given.failed().await;
    let part = given.left().into_iter().find(|path| path.extension().unwrap() == "part").unwrap();
    let mut bytes = std::fs::read(&part).unwrap();
    bytes[90_000] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    given.hub.always(None);
    given.whole().await;
}

#[tokio::test]
async fn an_overloaded_hub_is_asked_again_when_it_says() {
    let given = given();
    let wait = || vec![("Retry-After", "0".to_owned())];
    given.hub.hub_trouble([Trouble::Status(503, vec![]), Trouble::Status(429, wait())]);
    given.hub.trouble([Trouble::Status(500, vec![]), Trouble::Status(429, wait())]);
    given.whole().await;
}

#[tokio::test]
async fn a_hub_that_asks_for_too_long_a_wait_is_left_alone() {
    let given = given();
    given.hub.hub_trouble([Trouble::Status(429, vec![("Retry-After", "4000".into())])]);
    let (error, _) = given.failed().await;
    assert_eq!(error, DownloadError::TooMany { wait: Duration::from_secs(4000) });
    assert!(error.to_string().contains("4000 seconds"));
    assert_eq!(given.hub.asked().len(), 1);
}

#[tokio::test]
async fn a_disk_without_room_is_noticed_before_anything_comes() {
    let mut given = given();
    given.disk = Arc::new(SmallDisk::new(BYTES as u64 - 100_000));
    let (error, _) = given.failed().await;
    let DownloadError::DiskFull { needed, free, .. } = &error else { panic!("{error}") };
    assert!(*needed > *free && *needed >= given.content.len() as u64);
    assert!(given.hub.content_asked().is_empty());
}

#[tokio::test]
async fn a_disk_that_fills_up_on_the_way_keeps_what_there_is() {
    let mut given = given();
    let disk = Arc::new(SmallDisk::new(250_000));
    disk.says.store(u64::MAX, Ordering::SeqCst);
    given.disk = disk.clone();
    let (error, download) = given.failed().await;
    let DownloadError::DiskFull { needed, kept, .. } = error else { panic!("{error}") };
    assert_eq!(needed + kept, given.content.len() as u64);
    assert_eq!(download.done, kept);
    assert!(kept > 100_000);
    disk.left.store(u64::from(u32::MAX), Ordering::SeqCst);
    let before = given.ranges().len();
    given.whole().await;
    assert_eq!(given.ranges()[before..], [Some(kept)]);
}
