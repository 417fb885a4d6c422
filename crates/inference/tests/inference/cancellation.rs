//! Stopping one inference stops that one and what belongs to it, nothing else.

use std::time::Duration;

use correx_inference::InferenceCancellationToken;

#[test]
fn a_new_token_is_not_cancelled_and_a_cancelled_one_stays_so() {
    let token = InferenceCancellationToken::new();
    assert!(!token.is_cancelled());
    token.cancel();
    assert!(token.is_cancelled());
    token.cancel();
    assert!(token.is_cancelled());
}

#[test]
fn clones_share_one_state() {
    let token = InferenceCancellationToken::new();
    let clone = token.clone();
    clone.cancel();
    assert!(token.is_cancelled());
    assert!(token.clone().is_cancelled());
}

#[test]
fn a_child_is_cancelled_with_its_parent() {
    let parent = InferenceCancellationToken::new();
    let child = parent.child();
    let grandchild = child.child();
    assert!(!child.is_cancelled() && !grandchild.is_cancelled());
    parent.cancel();
    assert!(child.is_cancelled() && grandchild.is_cancelled());
    assert!(parent.child().is_cancelled(), "a child of a cancelled token is born cancelled");
}

#[test]
fn a_cancelled_child_stops_neither_its_parent_nor_its_siblings() {
    let parent = InferenceCancellationToken::new();
    let (one, other) = (parent.child(), parent.child());
    one.cancel();
    assert!(one.is_cancelled());
    assert!(!parent.is_cancelled() && !other.is_cancelled());
}

#[test]
fn tokens_made_apart_have_nothing_to_do_with_each_other() {
    let (one, other) = (InferenceCancellationToken::new(), InferenceCancellationToken::new());
    one.cancel();
    assert!(!other.is_cancelled());
}

#[tokio::test]
async fn who_waits_is_woken_by_a_clone_and_by_the_parent() {
    let parent = InferenceCancellationToken::new();
    let child = parent.child();
    let waiting = tokio::spawn({
        let child = child.clone();
        async move { child.cancelled().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    parent.cancel();
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap();
    child.cancelled().await;
}
