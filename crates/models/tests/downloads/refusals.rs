//! Answers that are no model, and requests that cannot be met.

use correx_models::DownloadError;
use correx_models::download::Phase;
use correx_models::hub::{HubFile, Network};
use correx_models::testing::Trouble;

use crate::given::{REPO, ended, file, given};

#[tokio::test]
async fn a_page_is_never_saved_as_a_model() {
    for (trouble, what) in [(Trouble::Page, "a web page"), (Trouble::Json, "(JSON)")] {
        let given = given();
        given.hub.trouble([trouble.clone()]);
        let (error, _) = given.failed().await;
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.hint().contains("login page"));
        assert!(given.left().is_empty(), "nothing of it is kept");
        given.whole().await;
    }
}

#[tokio::test]
async fn a_page_in_the_middle_does_not_cost_what_is_here() {
    let given = given();
    given.hub.trouble([Trouble::Truncated(300_000), Trouble::Page]);
    let (error, download) = given.failed().await;
    assert!(matches!(error, DownloadError::NotAModel { .. }), "{error}");
    assert!(download.done > 200_000);
    let before = given.ranges().len();
    given.whole().await;
    assert_eq!(given.ranges()[before..], [Some(download.done)]);
}

#[tokio::test]
async fn a_page_in_place_of_the_hub_is_refused() {
    for trouble in [Trouble::Page, Trouble::Json] {
        let given = given();
        given.hub.hub_trouble([trouble]);
        let (error, _) = given.failed().await;
        assert!(matches!(error, DownloadError::Answer { .. }), "{error}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let given = given();
    let missing = HubFile::new(REPO, "nothing.gguf", None).unwrap();
    let download = ended(&given.downloads(), &missing).await;
    let Phase::Failed { error } = download.phase else { panic!() };
    assert_eq!(error.to_string(), format!("the hub has no file nothing.gguf in {REPO}"));
}

#[tokio::test]
async fn access_that_is_refused_says_what_to_do() {
    let given = given();
    given.hub.hub_trouble([Trouble::Status(401, vec![])]);
    let (error, _) = given.failed().await;
    assert!(error.hint().contains("HF_TOKEN"), "{}", error.hint());
    let given = crate::given::given().token("hf_old");
    given.hub.hub_trouble([Trouble::Status(401, vec![])]);
    let (error, _) = given.failed().await;
    assert!(error.hint().contains("valid"), "{}", error.hint());
}

#[tokio::test]
async fn offline_means_that_nothing_is_asked() {
    let mut given = given();
    given.settings.network = Network::Never;
    assert_eq!(given.downloads().start(&file()), Err(DownloadError::Offline));
    assert!(given.hub.asked().is_empty());
}

#[tokio::test]
async fn a_hub_that_cannot_be_reached_is_named() {
    let mut given = given();
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    given.settings.endpoint = format!("http://{free}");
    let (error, _) = given.failed().await;
    let DownloadError::GaveUp { last, .. } = &error else { panic!("{error}") };
    assert!(matches!(**last, DownloadError::Unreachable { .. }), "{last}");
    assert!(error.to_string().contains(&free.to_string()));
}

#[tokio::test]
async fn a_download_of_which_nothing_came_leaves_nothing() {
    let given = given();
    given.hub.trouble([Trouble::Status(404, vec![])]);
    let (error, download) = given.failed().await;
    assert_eq!(download.done, 0, "{error}");
    assert!(given.left().is_empty(), "{:?}", given.left());
    given.whole().await;
}
