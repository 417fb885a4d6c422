//! Answers about a vocabulary, one JSON object a line.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use correx_candle::template::{ChatTemplate, ModelFacts};
use correx_candle::{ChatEncoder, Vocabulary};
use correx_context::{ChatMessage, MessagePart, PromptEncoder, Role};
use correx_events::SystemClock;
use correx_gguf::{Gguf, inspect};
use serde::{Deserialize, Serialize};

use crate::Outcome;

/// What can be asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Question {
    /// The ids of a text.
    Text(String),
    /// The ids of a text with the tokens around it that the file asks for.
    Sequence(String),
    /// The prompt of one message of the person's.
    Chat { template: String, content: String },
    /// What every token says in a reply, in hexadecimal digits, and which end one.
    Tokens {},
}

/// The answers, in the same order.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Ids(Vec<u32>),
    Prompt { rendered: String, ids: Vec<u32> },
    Tokens { replies: Vec<String>, stops: Vec<u32> },
}

/// Answers every line of `questions`.
pub(crate) fn answer(
    model: &Path,
    questions: impl BufRead,
    mut answers: impl Write,
) -> Outcome<()> {
    let gguf = inspect(model)?;
    let vocabulary = Arc::new(Vocabulary::from_gguf(&gguf)?);
    for line in questions.lines() {
        let answer = match serde_json::from_str(&line?)? {
            Question::Text(text) => Answer::Ids(vocabulary.encode(&text)?),
            Question::Sequence(text) => Answer::Ids(vocabulary.encode_sequence(&text)?),
            Question::Chat { template, content } => {
                prompt(&gguf, &vocabulary, &template, &content)?
            }
            Question::Tokens {} => Answer::Tokens {
                replies: (0..vocabulary.len() as u32)
                    .map(|id| hex::encode(vocabulary.reply_bytes(id)))
                    .collect(),
                stops: vocabulary.stops().to_vec(),
            },
        };
        serde_json::to_writer(&mut answers, &answer)?;
        answers.write_all(b"\n")?;
    }
    Ok(answers.flush()?)
}

fn prompt(
    gguf: &Gguf,
    vocabulary: &Arc<Vocabulary>,
    template: &str,
    content: &str,
) -> Outcome<Answer> {
    let facts = ModelFacts::from_gguf(gguf, vocabulary.bos_text(), vocabulary.eos_text());
    let template = ChatTemplate::new(Some(template), &facts, Arc::new(SystemClock));
    let parts = vec![MessagePart { entry: 0, text: content.to_owned() }];
    let messages = [ChatMessage { role: Role::User, parts }];
    let rendered = template.render(&messages)?.as_str().to_owned();
    let ids = ChatEncoder::new(vocabulary.clone(), template)?.encode(&messages, 1)?.ids;
    Ok(Answer::Prompt { rendered, ids })
}
