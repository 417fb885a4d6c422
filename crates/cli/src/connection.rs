//! The connection to a data directory, and what is asked over it.

use correx_events::{BlobHash, SessionId};
use correx_infrastructure::{Client, ConnectOptions, Loading};
use correx_protocol::{
    ClientMessage, ErrorCode, Overview, ProtocolError, ServerMessage, SessionSummary, SessionView,
};
use tokio::sync::broadcast;

use crate::args::Common;
use crate::outcome::unexpected;
use crate::output::Output;

/// A client, and where its user looks.
#[derive(Clone)]
pub struct Connection {
    client: Client,
    /// Where things are printed.
    pub output: Output,
}

/// How to connect, from the environment and then from what was typed.
pub fn options(common: &Common, loading: Loading) -> ConnectOptions {
    let environment = ConnectOptions::from_env();
    ConnectOptions {
        data_dir: common.data_dir.clone().or(environment.data_dir),
        model: common.model.clone().or(environment.model),
        threads: common.threads.or(environment.threads),
        loading,
        ..ConnectOptions::default()
    }
}

impl Connection {
    /// Opens the data directory, or joins its owner.
    pub async fn open(
        common: &Common,
        loading: Loading,
        output: Output,
    ) -> Result<Self, ProtocolError> {
        Ok(Self { client: Client::connect(options(common, loading)).await?, output })
    }

    /// Asks; errors are errors.
    pub async fn ask(&self, message: ClientMessage) -> Result<ServerMessage, ProtocolError> {
        match self.client.request(message).await {
            ServerMessage::Error(error) => Err(error),
            reply => Ok(reply),
        }
    }

    /// Asks for something to be done.
    pub async fn act(&self, message: ClientMessage) -> Result<(), ProtocolError> {
        match self.ask(message).await? {
            ServerMessage::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Whether this process is the one that has the data directory open.
    pub async fn is_owner(&self) -> bool {
        self.client.is_owner().await
    }

    /// What is told without asking.
    pub fn pushes(&self) -> broadcast::Receiver<ServerMessage> {
        self.client.subscribe()
    }

    /// The sessions, the model, the examples.
    pub async fn overview(&self) -> Result<Overview, ProtocolError> {
        match self.ask(ClientMessage::GetOverview).await? {
            ServerMessage::Overview(overview) => Ok(overview),
            _ => Err(unexpected()),
        }
    }

    /// Asks for a session, by opening, creating or renaming it.
    pub async fn session(&self, message: ClientMessage) -> Result<SessionView, ProtocolError> {
        match self.ask(message).await? {
            ServerMessage::Session(session) => Ok(*session),
            _ => Err(unexpected()),
        }
    }

    /// A session as it is.
    pub async fn open_session(&self, session: &SessionId) -> Result<SessionView, ProtocolError> {
        self.session(ClientMessage::OpenSession { session_id: session.clone() }).await
    }

    /// A text that the session holds.
    pub async fn blob(
        &self,
        session: &SessionId,
        hash: &BlobHash,
    ) -> Result<String, ProtocolError> {
        let (session_id, hash) = (session.clone(), hash.clone());
        match self.ask(ClientMessage::ReadBlob { session_id, hash }).await? {
            ServerMessage::Blob(blob) => Ok(blob.text),
            _ => Err(unexpected()),
        }
    }

    /// The session's stored events, from number `from` on.
    pub async fn events(
        &self,
        session: &SessionId,
        from: u32,
    ) -> Result<Vec<String>, ProtocolError> {
        match self.ask(ClientMessage::ReadEvents { session_id: session.clone(), from }).await? {
            ServerMessage::Events { lines } => Ok(lines),
            _ => Err(unexpected()),
        }
    }

    /// The session that `typed` means.
    pub async fn find(&self, typed: &str) -> Result<SessionId, ProtocolError> {
        resolve(typed, &self.overview().await?.sessions)
    }

    /// Ends. An owner that is generating something for others goes on until that is done, or
    /// until it is told to end by Ctrl-C.
    pub async fn close(&self) {
        let mut said = false;
        loop {
            let live = self.client.live_work().await;
            if live.is_empty() {
                break;
            }
            if !said {
                said = true;
                self.output.say(&format!(
                    "waiting: this process hosts {} for another program; Ctrl-C interrupts it, and \
                     it can be resumed",
                    if live.len() == 1 {
                        "a run or an answer".into()
                    } else {
                        format!("{} runs or answers", live.len())
                    },
                ));
            }
            tokio::select! {
                () = tokio::time::sleep(std::time::Duration::from_millis(300)) => {}
                _ = tokio::signal::ctrl_c() => break,
            }
        }
        self.client.shutdown().await;
    }
}

/// The session that `typed` means: `last`, a whole id, or the beginning or the end of one. Ids
/// begin with the time, so that it is mostly their end that people copy.
fn resolve(typed: &str, sessions: &[SessionSummary]) -> Result<SessionId, ProtocolError> {
    let missing = |message: String| {
        ProtocolError::new(ErrorCode::NotFound, message).hint("`correx sessions` lists them.")
    };
    if typed == "last" {
        let last = sessions.first().map(|session| session.session_id.clone());
        return last.ok_or_else(|| missing("there is no session yet".into()));
    }
    if let Some(exact) = sessions.iter().find(|session| session.session_id.as_str() == typed) {
        return Ok(exact.session_id.clone());
    }
    let fits = |session: &&SessionSummary| {
        let id = session.session_id.as_str();
        !typed.is_empty() && (id.starts_with(typed) || id.ends_with(typed))
    };
    let mut fitting = sessions.iter().filter(fits);
    match (fitting.next(), fitting.count()) {
        (Some(one), 0) => Ok(one.session_id.clone()),
        (None, _) => Err(missing(format!("there is no session {typed:?}"))),
        (Some(_), more) => Err(missing(format!("{typed:?} fits {} sessions", more + 1))),
    }
}

#[cfg(test)]
mod tests {
    use correx_protocol::WorkflowStatus;

    use super::*;

    fn sessions(ids: &[&str]) -> Vec<SessionSummary> {
        let row = |id: &&str| SessionSummary {
            session_id: SessionId::new(*id),
            title: String::new(),
            workflow: None,
            status: WorkflowStatus::Idle,
            waiting_for: None,
            current_stage: None,
            stages_done: 0,
            stages_total: 0,
            updated_at: String::new(),
        };
        ids.iter().map(row).collect()
    }

    #[test]
    fn a_session_may_be_given_by_the_part_of_its_id_that_is_its_own() {
        let sessions = sessions(&["0199-aaaa-11", "0199-bbbb-22", "0199-bbbb-2"]);
        let found = |typed| resolve(typed, &sessions).map(|id| id.to_string());
        assert_eq!(found("last").unwrap(), "0199-aaaa-11");
        assert_eq!(found("0199-a").unwrap(), "0199-aaaa-11");
        assert_eq!(found("11").unwrap(), "0199-aaaa-11");
        assert_eq!(found("0199-bbbb-2").unwrap(), "0199-bbbb-2", "a whole id is that one");
        assert!(found("0199").unwrap_err().message.contains("fits 3 sessions"));
        assert!(found("77").unwrap_err().message.contains("no session"));
        assert!(found("").is_err());
        assert!(resolve("last", &[]).is_err());
    }
}
