//! What is read back: texts, events, contexts.

use correx_events::{BlobHash, BlobStore, EventPayload, SessionId, TurnId};
use correx_protocol::{BlobView, ErrorCode, ProtocolError, ServerMessage};

use super::App;
use crate::failure::Failure;
use crate::view;

impl App {
    /// The text of an artifact, a draft or a context entry; the ids of a prompt as decimal numbers
    /// with blanks between. Only what the session holds.
    pub async fn read_blob(
        &self,
        session: &SessionId,
        hash: &BlobHash,
    ) -> Result<ServerMessage, Failure> {
        self.known(session).await?;
        let missing = || {
            ProtocolError::new(
                ErrorCode::NotFound,
                format!("this session has no content under {hash}"),
            )
        };
        if !self.inner.store.holds(session, hash).await? {
            return Err(missing().into());
        }
        let bytes = self.inner.store.get(hash).await?.ok_or_else(missing)?;
        let text = if self.is_prompt_ids(session, hash).await? {
            decimal(&bytes)
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(ServerMessage::Blob(BlobView { hash: hash.clone(), text }))
    }

    async fn is_prompt_ids(&self, session: &SessionId, hash: &BlobHash) -> Result<bool, Failure> {
        let contexts = self.inner.store.read_kind(session, "context_assembled").await?;
        Ok(contexts.iter().any(|event| {
            matches!(&event.payload, EventPayload::ContextAssembled(context)
                if context.prompt_ids == *hash)
        }))
    }

    /// The session's events from number `from` on, as they are stored.
    pub async fn read_events(
        &self,
        session: &SessionId,
        from: u32,
    ) -> Result<ServerMessage, Failure> {
        self.known(session).await?;
        let lines = self.inner.store.read_lines(session, u64::from(from)).await?;
        Ok(ServerMessage::Events { lines })
    }

    /// What the model was shown for an answer.
    pub async fn read_turn_context(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<ServerMessage, Failure> {
        self.known(session).await?;
        let branch = self.inner.conversations.transcripts().branch(session).await?;
        let found = branch.iter().find(|kept| kept.turn_id == *turn);
        match found.map(|turn| turn.report.as_ref()) {
            Some(Some(report)) => Ok(ServerMessage::Context(view::context_of_reply(report))),
            Some(None) => Err(ProtocolError::new(
                ErrorCode::NotFound,
                "nothing is known of what the model was shown for this turn",
            )
            .hint("Only finished or stopped answers have it.")
            .into()),
            None => {
                Err(ProtocolError::new(ErrorCode::NotFound, "this conversation has no such turn")
                    .into())
            }
        }
    }
}

/// Little-endian 32-bit numbers as text.
fn decimal(bytes: &[u8]) -> String {
    let ids = bytes.chunks_exact(4).map(|chunk| {
        let mut word = [0; 4];
        word.copy_from_slice(chunk);
        u32::from_le_bytes(word).to_string()
    });
    ids.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn ids_are_read_as_they_were_fed() {
        let ids = [1_u32, 17, 49_151];
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        assert_eq!(decimal(&bytes), "1 17 49151");
        assert_eq!(decimal(&[]), "");
    }
}
