//! The wire format as front ends meet it.

use std::path::Path;

use correx_events::SessionId;
use correx_protocol::{
    ChatMode, ClientFrame, ClientMessage, ServerFrame, ServerMessage, SteerScope, SteerTarget,
    decode_client, encode_server, typescript,
};
use proptest::prelude::*;

#[test]
fn typescript_types_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/src/wire.ts");
    let expected = typescript::declarations();
    if std::env::var_os("UPDATE_WIRE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "ui/src/wire.ts is stale: run `UPDATE_WIRE=1 cargo test -p correx-protocol`"
    );
}

#[test]
fn a_chat_input_needs_only_session_text_and_mode() {
    let line = r#"{"id":7,"message":{"type":"chat_input","session_id":"s","text":"hi","mode":"STEERING"}}"#;
    let frame = decode_client(line).unwrap();
    assert_eq!(frame.id, 7);
    assert_eq!(
        frame.message,
        ClientMessage::ChatInput {
            session_id: SessionId::new("s"),
            text: "hi".into(),
            mode: ChatMode::Steering,
            target: SteerTarget { stage_id: None, scope: SteerScope::Onward },
            client_message_id: None,
        }
    );
}

#[test]
fn an_unknown_message_type_still_tells_its_number() {
    let error = decode_client(r#"{"id":9,"message":{"type":"make_coffee"}}"#).unwrap_err();
    assert_eq!(error.id, 9);
    assert!(error.to_string().contains("make_coffee"));
}

#[test]
fn a_line_that_is_not_json_is_answered_to_number_zero() {
    assert_eq!(decode_client("GET / HTTP/1.1").unwrap_err().id, 0);
}

#[test]
fn a_frame_is_one_line() {
    let message = ServerMessage::Events { lines: vec!["{\n}".into()] };
    let line = encode_server(&ServerFrame::Push { message }).unwrap();
    assert!(!line.contains('\n'));
}

proptest! {
    #[test]
    fn every_text_survives_the_wire(id in 1_u64.., session in ".*", text in ".*") {
        let frame = ClientFrame {
            id,
            message: ClientMessage::ChatInput {
                session_id: SessionId::new(session),
                text,
                mode: ChatMode::Chat,
                target: SteerTarget::default(),
                client_message_id: None,
            },
        };
        let line = serde_json::to_string(&frame).unwrap();
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(decode_client(&line).unwrap(), frame);
    }
}
