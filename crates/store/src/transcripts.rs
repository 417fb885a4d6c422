//! Conversations: a tree of turns per session, and the end of its current branch.

use std::collections::HashSet;

use async_trait::async_trait;
use correx_events::{SessionId, TurnId};
use correx_router::{TranscriptError, TranscriptStore, TranscriptTurn};
use redb::{ReadTransaction, ReadableTable, StorageError, WriteTransaction};

use crate::catalogue::{self, Absent};
use crate::error::{StorageFailure, WriteError};
use crate::store::Store;
use crate::tables::{HEADS, NamedNumbered, TURN_CHILDREN, TURNS, after};
use crate::writer::{Sources, Write};

struct AppendTurns(Vec<TranscriptTurn>);

impl Write for AppendTurns {
    type Output = ();

    fn apply(&self, tx: &WriteTransaction, sources: &Sources) -> Result<(), WriteError> {
        let Some(last) = self.0.last() else { return Ok(()) };
        let session = last.session_id.as_str();
        catalogue::refuse_deleted(tx, &last.session_id)?;
        let mut turns = tx.open_table(TURNS)?;
        let mut earlier = HashSet::new();
        let mut texts = Vec::with_capacity(self.0.len());
        for turn in &self.0 {
            let id = turn.turn_id.as_str();
            if turn.session_id != last.session_id {
                return Err(refused("the turns are of several sessions"));
            }
            if id.is_empty() {
                return Err(refused("a turn has no id"));
            }
            if !earlier.insert(id) || turns.get((session, id))?.is_some() {
                return Err(refused(format!("the turn {id} is already there")));
            }
            if let Some(parent) = &turn.parent
                && (parent.as_str() == id || !earlier.contains(parent.as_str()))
                && turns.get((session, parent.as_str()))?.is_none()
            {
                return Err(refused(format!("the turn {id} follows {parent}, which is not there")));
            }
            texts.push(encode(turn)?);
        }

        // Nothing is refused from here on.
        let mut children = tx.open_table(TURN_CHILDREN)?;
        for (turn, text) in self.0.iter().zip(&texts) {
            let parent = parent_key(turn.parent.as_ref());
            let position = next_position(&children, session, parent)?;
            children.insert((session, parent, position), turn.turn_id.as_str())?;
            turns.insert((session, turn.turn_id.as_str()), text.as_slice())?;
        }
        tx.open_table(HEADS)?.insert(session, last.turn_id.as_str())?;
        let absent = Absent::Add { title: None };
        catalogue::touch(tx, &last.session_id, sources.clock.now(), absent)
    }
}

struct UpdateTurn(TranscriptTurn);

impl Write for UpdateTurn {
    type Output = ();

    fn apply(&self, tx: &WriteTransaction, sources: &Sources) -> Result<(), WriteError> {
        let turn = &self.0;
        let key = (turn.session_id.as_str(), turn.turn_id.as_str());
        catalogue::refuse_deleted(tx, &turn.session_id)?;
        let mut turns = tx.open_table(TURNS)?;
        let old = match turns.get(key)? {
            Some(text) => decode(text.value()),
            None => return Err(refused(format!("the turn {} is not there", turn.turn_id))),
        };
        // One that cannot be read is repaired by being written again.
        if old.is_ok_and(|old| old.parent != turn.parent) {
            return Err(refused(format!("the turn {} cannot be moved", turn.turn_id)));
        }
        turns.insert(key, encode(turn)?.as_slice())?;
        catalogue::touch(tx, &turn.session_id, sources.clock.now(), Absent::Ignore)
    }
}

struct SetHead {
    session: SessionId,
    turn: Option<TurnId>,
}

impl Write for SetHead {
    type Output = ();

    fn apply(&self, tx: &WriteTransaction, sources: &Sources) -> Result<(), WriteError> {
        let session = self.session.as_str();
        catalogue::refuse_deleted(tx, &self.session)?;
        let mut heads = tx.open_table(HEADS)?;
        match &self.turn {
            Some(turn) if tx.open_table(TURNS)?.get((session, turn.as_str()))?.is_none() => {
                return Err(refused(format!("the turn {turn} is not there")));
            }
            Some(turn) => heads.insert(session, turn.as_str())?,
            None => heads.remove(session)?,
        };
        catalogue::touch(tx, &self.session, sources.clock.now(), Absent::Ignore)
    }
}

fn refused(message: impl Into<String>) -> WriteError {
    WriteError::Refused(message.into())
}

fn encode(turn: &TranscriptTurn) -> Result<Vec<u8>, WriteError> {
    serde_json::to_vec(turn)
        .map_err(|error| refused(format!("the turn {} cannot be written: {error}", turn.turn_id)))
}

fn decode(text: &[u8]) -> Result<TranscriptTurn, serde_json::Error> {
    serde_json::from_slice(text)
}

/// Turn ids are never empty, so the empty one stands for the root.
fn parent_key(parent: Option<&TurnId>) -> &str {
    parent.map_or("", TurnId::as_str)
}

fn next_position(
    children: &impl ReadableTable<NamedNumbered, &'static str>,
    session: &str,
    parent: &str,
) -> Result<u64, StorageError> {
    match children.range((session, parent, 0)..=(session, parent, u64::MAX))?.next_back() {
        Some(entry) => Ok(entry?.0.value().2 + 1),
        None => Ok(0),
    }
}

fn branch(tx: &ReadTransaction, session: &str) -> Result<Vec<TranscriptTurn>, StorageFailure> {
    let turns = tx.open_table(TURNS)?;
    let mut next = tx.open_table(HEADS)?.get(session)?.map(|turn| turn.value().to_owned());
    let mut branch = Vec::<TranscriptTurn>::new();
    // A damaged file could lead in circles.
    let mut seen = HashSet::new();
    while let Some(id) = next.take() {
        if !seen.insert(id.clone()) {
            tracing::warn!(session, turn = id, "a conversation leads back to itself");
            break;
        }
        let text = turns.get((session, id.as_str()))?;
        match text.as_ref().map(|text| decode(text.value())) {
            Some(Ok(turn)) => {
                next = turn.parent.as_ref().map(|parent| parent.as_str().to_owned());
                branch.push(turn);
            }
            unreadable => {
                let problem = match unreadable {
                    Some(Err(error)) => error.to_string(),
                    _ => "it is missing".to_owned(),
                };
                tracing::warn!(session, turn = id, problem, "a turn cannot be read");
                // After a bad turn the branch begins anew; a bad last one hides only itself.
                if branch.is_empty() {
                    next = parent_of(tx, session, &id)?;
                }
            }
        }
    }
    branch.reverse();
    Ok(branch)
}

/// The parent of a turn whose own text cannot say it.
fn parent_of(
    tx: &ReadTransaction,
    session: &str,
    turn: &str,
) -> Result<Option<String>, StorageFailure> {
    let end = after(session);
    for entry in tx.open_table(TURN_CHILDREN)?.range((session, "", 0)..(end.as_str(), "", 0))? {
        let (key, child) = entry?;
        let (_, parent, _) = key.value();
        if child.value() == turn && !parent.is_empty() {
            return Ok(Some(parent.to_owned()));
        }
    }
    Ok(None)
}

#[async_trait]
impl TranscriptStore for Store {
    async fn append(&self, turns: Vec<TranscriptTurn>) -> Result<(), TranscriptError> {
        Ok(self.write(AppendTurns(turns)).await?)
    }

    async fn update(&self, turn: TranscriptTurn) -> Result<(), TranscriptError> {
        Ok(self.write(UpdateTurn(turn)).await?)
    }

    async fn branch(&self, session: &SessionId) -> Result<Vec<TranscriptTurn>, TranscriptError> {
        let session = session.clone();
        Ok(self.database().read(move |tx| branch(tx, session.as_str())).await?)
    }

    async fn set_head(
        &self,
        session: &SessionId,
        turn: Option<&TurnId>,
    ) -> Result<(), TranscriptError> {
        Ok(self.write(SetHead { session: session.clone(), turn: turn.cloned() }).await?)
    }
}

impl Store {
    /// The turns that follow `parent` (with `None`, the first turns), in the order in which they
    /// were added: more than one where a message was edited or an answer asked for again.
    pub async fn turn_children(
        &self,
        session: &SessionId,
        parent: Option<&TurnId>,
    ) -> Result<Vec<TurnId>, TranscriptError> {
        let (session, parent) = (session.clone(), parent.cloned());
        let read = self.database().read(move |tx| {
            let (session, parent) = (session.as_str(), parent_key(parent.as_ref()));
            let children = tx.open_table(TURN_CHILDREN)?;
            let mut turns = Vec::new();
            for entry in children.range((session, parent, 0)..=(session, parent, u64::MAX))? {
                turns.push(TurnId::new(entry?.1.value()));
            }
            Ok(turns)
        });
        Ok(read.await?)
    }
}
