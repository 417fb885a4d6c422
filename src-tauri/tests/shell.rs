//! What the shell promises: the window may do little, hears everything, and can try again.

use correx_desktop::commands::Arrival;
use correx_desktop::engine::Engine;
use correx_infrastructure::ConnectOptions;
use correx_protocol::{ErrorCode, ServerMessage};
use serde_json::{Value, json};

#[test]
fn the_window_reaches_nothing_but_its_own_files_and_the_engine() {
    let config: Value = serde_json::from_str(include_str!("../tauri.conf.json")).unwrap();
    let csp = config["app"]["security"]["csp"].as_str().unwrap();
    let sources: Vec<(&str, Vec<&str>)> = csp
        .split(';')
        .map(|directive| {
            let mut words = directive.split_whitespace();
            (words.next().unwrap(), words.collect())
        })
        .collect();
    assert!(sources.contains(&("default-src", vec!["'none'"])));
    for (directive, allowed) in sources {
        let expected: &[&str] = match directive {
            "script-src" | "style-src" | "font-src" | "img-src" => &["'self'"],
            "connect-src" => &["ipc:", "http://ipc.localhost"],
            _ => &["'none'"],
        };
        assert_eq!(allowed, expected, "{directive}");
    }
    assert!(config["build"].get("devUrl").is_none(), "a plain build must run without a server");
}

#[test]
fn the_window_may_only_use_the_core_and_the_open_dialog() {
    let capability: Value =
        serde_json::from_str(include_str!("../capabilities/main.json")).unwrap();
    assert_eq!(capability["permissions"], json!(["core:default", "dialog:allow-open"]));
    assert_eq!(capability["windows"], json!(["main"]));
    assert!(capability.get("remote").is_none());
}

#[test]
fn arrivals_have_the_form_that_the_front_end_reads() {
    let push = Arrival::Push { message: Box::new(ServerMessage::Done) };
    assert_eq!(
        serde_json::to_value(push).unwrap(),
        json!({"kind": "push", "message": {"type": "done"}})
    );
    assert_eq!(serde_json::to_value(Arrival::Missed).unwrap(), json!({"kind": "missed"}));
}

#[tokio::test]
async fn a_start_that_failed_can_be_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    std::fs::write(&data_dir, "in the way").unwrap();
    let engine = Engine::new(ConnectOptions {
        data_dir: Some(data_dir.clone()),
        model: Some(folder.path().join("missing.gguf")),
        ..ConnectOptions::default()
    });
    let error = engine.client().await.err().unwrap();
    assert_eq!(error.code, ErrorCode::Storage);

    std::fs::remove_file(&data_dir).unwrap();
    let client = engine.client().await.unwrap();
    let overview = client.request(correx_protocol::ClientMessage::GetOverview).await;
    assert!(matches!(overview, ServerMessage::Overview(_)), "{overview:?}");
}
