//! `correx chat`: talking with the router, line by line.

use std::io::IsTerminal;

use correx_events::SessionId;
use correx_protocol::{
    ChatMode, ClientMessage, NoteView, ProtocolError, RunView, ServerMessage, SteerScope,
    SteerTarget,
};
use indicatif::ProgressBar;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::args::ChatArgs;
use crate::connection::Connection;
use crate::display::title;
use crate::outcome::{Ending, Outcome, unexpected};
use crate::output::{Format, Look, safe};
use crate::terminal::Lines;
use crate::watch;

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Input<'a> {
    Say(&'a str),
    Steer(&'a str),
    Stop,
    Quit,
    Help,
    Nothing,
}

impl<'a> Input<'a> {
    fn read(line: &'a str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "" => Input::Nothing,
            "/steer" => Input::Steer(rest.trim()),
            "/stop" => Input::Stop,
            "/quit" | "/exit" => Input::Quit,
            "/help" | "/?" => Input::Help,
            // A command that does not exist is no message; a path or a remark may begin so.
            _ if rest.is_empty() && is_command(word) => Input::Help,
            _ => Input::Say(line),
        }
    }
}

fn is_command(word: &str) -> bool {
    word.strip_prefix('/')
        .is_some_and(|name| name.chars().all(|letter| letter.is_ascii_lowercase()))
}

const HELP: &str =
    "Type a message. /steer TEXT changes the run, /stop stops an answer, /quit ends.";

/// Talks until the input ends.
pub async fn chat(connection: &Connection, args: ChatArgs) -> Outcome {
    let session = match args.session.as_str() {
        "new" => {
            let create =
                ClientMessage::CreateSession { title: None, workflow: None, inputs: vec![] };
            connection.session(create).await?.summary.session_id
        }
        typed => connection.find(typed).await?,
    };
    let view = connection.open_session(&session).await?;
    let person = std::io::stdin().is_terminal();
    let show_thinking = args.show_thinking;
    let talk = Talk { connection, session, person, show_thinking };
    watch::model_ready(connection).await?;
    let output = &connection.output;
    output.say(&format!(
        "{}  {}",
        output.paint(&safe(&view.summary.title), Look::Bold),
        output.paint(&format!("session {}", talk.session), Look::Dim)
    ));
    if talk.person {
        output.say(&output.paint(HELP, Look::Dim));
        for turn in view.turns.iter().rev().take(4).rev() {
            let who = if turn.role == correx_protocol::TurnRole::User { "you" } else { "router" };
            output.say(&output.paint(&format!("{who}: {}", safe(turn.content.trim())), Look::Dim));
        }
    }
    talk.until_the_input_ends().await
}

struct Talk<'a> {
    connection: &'a Connection,
    session: SessionId,
    /// Whether somebody types; a script's messages are answered one after another.
    person: bool,
    /// Whether what the model thinks is shown; else only how long it thought.
    show_thinking: bool,
}

/// What has been printed of an answer.
#[derive(Default)]
struct Printed {
    answer: String,
    /// How much of the prompt was read, or thought.
    bar: Option<ProgressBar>,
    /// Tokens of the thinking, until it was said that it is over.
    thought: u32,
}

impl Printed {
    fn clear_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Talk<'_> {
    async fn until_the_input_ends(&self) -> Outcome {
        let lines = Lines::standard_input();
        let output = &self.connection.output;
        let mut ending = Ending::Done;
        loop {
            if self.person {
                output.prompt("> ");
            }
            let line = tokio::select! {
                line = lines.next() => line,
                _ = tokio::signal::ctrl_c() => None,
            };
            let Some(line) = line else { return Ok(ending) };
            let answered = match Input::read(&line) {
                Input::Say(text) => self.say(text, ChatMode::Chat).await,
                Input::Steer(text) => self.say(text, ChatMode::Steering).await,
                Input::Quit => return Ok(ending),
                Input::Stop => {
                    output.say("no answer is being written");
                    Ok(())
                }
                Input::Help => {
                    output.say(HELP);
                    Ok(())
                }
                Input::Nothing => Ok(()),
            };
            if let Err(error) = answered {
                output.error(&error);
                // For a person it is said; a script wants to know at the end.
                if !self.person {
                    ending = Ending::Failed;
                }
            }
        }
    }

    async fn say(&self, text: &str, mode: ChatMode) -> Result<(), ProtocolError> {
        let output = &self.connection.output;
        let pushes = self.connection.pushes();
        let message = ClientMessage::ChatInput {
            session_id: self.session.clone(),
            text: text.to_owned(),
            mode,
            target: SteerTarget { stage_id: None, scope: SteerScope::Onward },
            client_message_id: None,
        };
        let reply = self.answered(message, pushes).await?;
        if output.format() == Format::Json {
            output.object(&reply);
            return Ok(());
        }
        let ServerMessage::RouterResponse { note_id, .. } = &reply else {
            return Err(unexpected());
        };
        if let Some(note_id) = note_id {
            let view = self.connection.open_session(&self.session).await?;
            let run = view.run.as_ref();
            let note = run.and_then(|run| run.notes.iter().find(|note| note.note_id == *note_id));
            if let (Some(run), Some(note)) = (run, note) {
                output.say(&output.paint(&fate(run, note), Look::Amber));
            }
        }
        Ok(())
    }

    /// Sends `message` and prints its answer as it comes.
    async fn answered(
        &self,
        message: ClientMessage,
        mut pushes: broadcast::Receiver<ServerMessage>,
    ) -> Result<ServerMessage, ProtocolError> {
        let lines = Lines::standard_input();
        let output = &self.connection.output;
        let mut printed = Printed::default();
        let answer = self.connection.ask(message);
        tokio::pin!(answer);
        let reply = loop {
            tokio::select! {
                biased;
                push = pushes.recv() => match push {
                    Ok(push) => self.stream(&push, &mut printed),
                    // What was missed is printed at the end.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Err(unexpected()),
                },
                reply = &mut answer => break reply,
                _ = tokio::signal::ctrl_c() => self.stop().await,
                line = lines.next(), if self.person => {
                    if let Some(Input::Stop | Input::Quit) = line.as_deref().map(Input::read) {
                        self.stop().await;
                    } else if line.is_some() {
                        output.say("an answer is being written; /stop stops it");
                    }
                }
            }
        };
        printed.clear_bar();
        self.thinking_is_over(&mut printed);
        let printed = printed.answer;
        // The streams may be behind the answer.
        if let Ok(ServerMessage::RouterResponse { content, .. }) = &reply
            && output.format() == Format::Text
        {
            match content.strip_prefix(printed.as_str()) {
                Some(rest) => output.result(rest),
                None => output.result(&format!("\n{content}")),
            }
        } else if !printed.is_empty() {
            output.result("");
        }
        reply
    }

    fn stream(&self, push: &ServerMessage, printed: &mut Printed) {
        let output = &self.connection.output;
        match push {
            ServerMessage::ReplyDelta { session_id, text, .. } if *session_id == self.session => {
                printed.clear_bar();
                self.thinking_is_over(printed);
                if output.format() == Format::Text {
                    output.piece(text);
                    printed.answer.push_str(text);
                }
            }
            ServerMessage::ThinkingDelta { session_id, text, tokens, .. }
                if *session_id == self.session =>
            {
                printed.thought = *tokens;
                if self.show_thinking {
                    printed.clear_bar();
                    output.aside(&output.paint(&safe(text), Look::Dim));
                } else {
                    let bar = printed.bar.get_or_insert_with(|| output.bar(0, ""));
                    bar.set_message("thinking");
                    bar.set_length(u64::from(*tokens));
                    bar.set_position(u64::from(*tokens));
                }
            }
            ServerMessage::ReplyProgress { session_id, done, total, .. }
                if *session_id == self.session
                    && printed.answer.is_empty()
                    && printed.thought == 0 =>
            {
                let bar = printed
                    .bar
                    .get_or_insert_with(|| output.bar(u64::from(*total), "reading the prompt"));
                bar.set_position(u64::from(*done));
            }
            _ => {}
        }
    }

    /// Says how long the model thought, once.
    fn thinking_is_over(&self, printed: &mut Printed) {
        let tokens = std::mem::take(&mut printed.thought);
        if tokens > 0 {
            let output = &self.connection.output;
            let before = if self.show_thinking { "\n" } else { "" };
            let words = if tokens == 1 { "token" } else { "tokens" };
            let said = format!("(thought for {tokens} {words})");
            output.say(&format!("{before}{}", output.paint(&said, Look::Dim)));
        }
    }

    async fn stop(&self) {
        let session_id = self.session.clone();
        // Refused when the answer has just ended.
        let _ = self.connection.act(ClientMessage::StopReply { session_id }).await;
    }
}

/// What becomes of a note, for people.
pub fn fate(run: &RunView, note: &NoteView) -> String {
    let applied = note.applied.last();
    match (applied, &note.stage_id) {
        (Some(used), _) => {
            let title = title(run, &used.stage_id);
            format!("✎ note kept; applied to {title}, attempt {}", used.attempt)
        }
        (None, Some(stage)) => format!("✎ note kept; it acts from “{}” on", title(run, stage)),
        (None, None) => "✎ note kept; it acts from the next stage on".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steer_changes_the_run() {
        assert_eq!(Input::read("  hello there "), Input::Say("hello there"));
        assert_eq!(Input::read("/steer  Be brief "), Input::Steer("Be brief"));
        assert_eq!(Input::read("/steering is odd"), Input::Say("/steering is odd"));
        assert_eq!(Input::read("/steer"), Input::Steer(""));
        assert_eq!(Input::read("/pause"), Input::Help);
        assert_eq!(Input::read("/etc/hosts"), Input::Say("/etc/hosts"));
        assert_eq!(Input::read("/stop"), Input::Stop);
        assert_eq!(Input::read("/quit"), Input::Quit);
        assert_eq!(Input::read("  "), Input::Nothing);
    }
}
