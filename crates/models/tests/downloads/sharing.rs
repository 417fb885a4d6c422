//! Two programs that want the same file.

use std::time::Duration;

use correx_models::DownloadError;
use correx_models::download::Phase;
use correx_models::testing::Trouble;

use crate::given::{file, given, until};

#[tokio::test]
async fn the_second_waits_for_the_first_and_fetches_nothing() {
    let given = given();
    given.hub.trouble([Trouble::Slow(30_000, Duration::from_millis(20))]);
    let (first, second) = (given.downloads(), given.downloads());
    let (mut of_first, mut of_second) = (first.watch(), second.watch());
    let id = first.start(&file()).unwrap();
    until(&mut of_first, &id, |download| download.done > 0).await;
    second.start(&file()).unwrap();
    until(&mut of_second, &id, |download| download.phase == Phase::Waiting).await;
    for watch in [&mut of_first, &mut of_second] {
        let done = until(watch, &id, |download| !download.is_active()).await;
        given.assert_whole(&done);
    }
    assert_eq!(given.ranges(), [None], "it came once");
}

#[tokio::test]
async fn when_the_first_stops_the_second_goes_on_from_there() {
    let given = given();
    given.hub.trouble([Trouble::Slow(30_000, Duration::from_millis(20))]);
    let (first, second) = (given.downloads(), given.downloads());
    let (mut of_first, mut of_second) = (first.watch(), second.watch());
    let id = first.start(&file()).unwrap();
    until(&mut of_first, &id, |download| download.done > 100_000).await;
    second.start(&file()).unwrap();
    until(&mut of_second, &id, |download| download.phase == Phase::Waiting).await;
    first.shutdown().await;
    let done = until(&mut of_second, &id, |download| !download.is_active()).await;
    given.assert_whole(&done);
    assert!(given.ranges()[1] > Some(0));
}

#[tokio::test]
async fn who_holds_a_file_for_ever_is_not_waited_for_for_ever() {
    let mut given = given();
    // The first is patient with its server for longer than the second is with the first.
    given.patience.stall = Duration::from_secs(60);
    given.patience.held = Duration::from_millis(50);
    given.hub.trouble([Trouble::Stalled(100_000)]);
    let first = given.downloads();
    let mut of_first = first.watch();
    let id = first.start(&file()).unwrap();
    until(&mut of_first, &id, |download| download.done > 0).await;
    let (error, _) = given.failed().await;
    assert_eq!(error, DownloadError::Held);
    first.shutdown().await;
}
