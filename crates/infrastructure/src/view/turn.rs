//! The conversation.

use correx_protocol::{
    ChatMode, ErrorCode, ProtocolError, ReplyStats, ThinkingView, TurnRole, TurnStatus, TurnView,
};
use correx_router::{
    ChatMode as DomainMode, ReplyReport, TranscriptTurn, TurnRole as DomainRole,
    TurnStatus as DomainStatus,
};

use super::count;

/// One turn.
pub fn turn(turn: &TranscriptTurn) -> TurnView {
    let (status, error) = match &turn.status {
        DomainStatus::Pending => (TurnStatus::Pending, None),
        DomainStatus::Complete => (TurnStatus::Complete, None),
        DomainStatus::Stopped => (TurnStatus::Stopped, None),
        DomainStatus::Failed { message } => {
            let error = ProtocolError::new(ErrorCode::Inference, message.clone())
                .kept(match &turn.note_id {
                    Some(_) => "The message is kept, and its note acts.",
                    None => "The message is kept.",
                })
                .hint("Retry the answer.");
            (TurnStatus::Failed, Some(error))
        }
    };
    TurnView {
        turn_id: turn.turn_id.clone(),
        role: match turn.role {
            DomainRole::User => TurnRole::User,
            DomainRole::Router => TurnRole::Router,
        },
        mode: if turn.steering { ChatMode::Steering } else { ChatMode::Chat },
        content: turn.content.clone(),
        thinking: turn.thinking.as_ref().map(|thinking| ThinkingView {
            text: thinking.text.clone(),
            tokens: count(thinking.tokens),
        }),
        status,
        error,
        note_id: turn.note_id.clone(),
        at: turn.timestamp.to_string(),
        stats: turn.report.as_ref().map(stats),
    }
}

/// A mode, in the domain's terms.
pub fn mode(mode: ChatMode) -> DomainMode {
    match mode {
        ChatMode::Chat => DomainMode::Chat,
        ChatMode::Steering => DomainMode::Steering,
    }
}

fn stats(report: &ReplyReport) -> ReplyStats {
    ReplyStats {
        prompt_tokens: count(report.prompt_tokens),
        reused_tokens: count(report.reused_tokens),
        output_tokens: count(report.output_tokens),
        prompt_ms: count(report.prompt_ms),
        reply_ms: count(report.reply_ms),
        device: report.device.clone(),
    }
}

#[cfg(test)]
mod tests {
    use correx_events::Timestamp;

    use super::*;

    fn failed(note: Option<&str>) -> TranscriptTurn {
        TranscriptTurn {
            turn_id: "t".into(),
            session_id: "s".into(),
            parent: None,
            role: DomainRole::User,
            content: "Be brief".into(),
            thinking: None,
            steering: note.is_some(),
            note_id: note.map(Into::into),
            status: DomainStatus::Failed { message: "the model failed: out of memory".into() },
            timestamp: Timestamp::UNIX_EPOCH,
            report: None,
        }
    }

    #[test]
    fn a_failed_turn_says_what_was_kept_and_what_to_do() {
        let view = turn(&failed(Some("n")));
        assert_eq!(view.status, TurnStatus::Failed);
        assert_eq!(view.mode, ChatMode::Steering);
        let error = view.error.unwrap();
        assert_eq!(error.message, "the model failed: out of memory");
        assert!(error.kept.unwrap().contains("note acts"));
        assert!(error.hint.is_some());
        assert!(!turn(&failed(None)).error.unwrap().kept.unwrap().contains("note"));
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(turn(&failed(None)).at, "1970-01-01T00:00:00Z");
    }
}
