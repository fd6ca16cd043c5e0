//! One prompt until its answer: plays the script's steps, counts the words, and ends exactly once.

mod calls;
mod client;
mod offered;
mod samples;
mod speech;
mod tools;

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::connection::{Connection, session_update};
use crate::script::{self, Step, StopReason};
use crate::session::{Cancel, Counted, Exchange, Session};
use crate::wire::{Chunk, ContentBlock, RpcError, Text};

/// How much of an answer a session remembers for `session/load`.
const REMEMBERED_ANSWER: usize = 64 * 1024;
/// The context size that `usage_update` names; the demo has none.
const CONTEXT_SIZE: u64 = 1_000_000;

struct Turn {
    connection: Rc<Connection>,
    session: Rc<Session>,
    prompt: Prompt,
    tally: RefCell<Tally>,
    open_calls: RefCell<Vec<String>>,
}

struct Prompt {
    text: String,
    /// What came beside the text, described.
    attachments: Vec<String>,
}

#[derive(Default)]
struct Tally {
    output: WordCount,
    thought: WordCount,
    answer: String,
}

/// Counts words of a text that arrives in pieces.
#[derive(Default)]
struct WordCount {
    words: u64,
    inside: bool,
}

/// How a turn ends.
enum End {
    Stop(StopReason),
    Error(RpcError),
    Crash(u8),
    Cancelled(Cancel),
}

pub(crate) async fn run(
    connection: Rc<Connection>,
    session: Rc<Session>,
    id: Box<RawValue>,
    blocks: Vec<ContentBlock>,
    cancelled: oneshot::Receiver<Cancel>,
) {
    let turn = Rc::new(Turn::new(connection, session, blocks));
    let end = tokio::select! {
        biased;
        // The other end lives in the session; losing it means that the session is gone.
        why = cancelled => End::Cancelled(why.unwrap_or(Cancel::Turn)),
        end = turn.play() => end,
    };
    turn.end(&id, end).await;
}

impl Turn {
    fn new(connection: Rc<Connection>, session: Rc<Session>, blocks: Vec<ContentBlock>) -> Self {
        let prompt = Prompt::from_blocks(blocks);
        Self { connection, session, prompt, tally: RefCell::default(), open_calls: RefCell::default() }
    }

    async fn play(self: &Rc<Self>) -> End {
        let steps = match self.session.planned() {
            Some(planned) => script::read(&planned),
            None => script::read(&self.prompt.text),
        };
        if steps.is_empty() && !self.use_what_is_offered().await {
            self.plain().await;
        }
        for step in steps {
            if let Err(end) = self.step(step).await {
                return end;
            }
        }
        End::Stop(StopReason::EndTurn)
    }

    async fn step(self: &Rc<Self>, step: Step) -> Result<(), End> {
        match step {
            Step::Help => self.help().await,
            Step::Think(about) => self.think_aloud(&about).await,
            Step::Story(lines) => self.story(lines).await,
            Step::Long(lines) => self.long(lines).await,
            Step::Slow { words, every } => self.slow(words, every).await,
            Step::Chunks { count, size } => self.chunks(count, size).await,
            Step::Tool => self.tool().await,
            Step::Edit => self.edit().await,
            Step::Plan => self.plan().await,
            Step::Permission(command) => return self.permission(&command).await,
            Step::Image => self.image().await,
            Step::Markdown => self.stream(samples::MARKDOWN).await,
            Step::Hostile => self.stream(samples::HOSTILE).await,
            Step::Unicode => self.unicode().await,
            Step::Json(value) => self.json(value).await,
            Step::Stop(reason) => return self.stop(reason).await,
            Step::Error { code, message } => return Err(End::Error(RpcError::new(code, message))),
            Step::Crash(code) => {
                self.stream(&format!("The demo agent now exits with code {code}.")).await;
                return Err(End::Crash(code));
            }
            Step::Wait => std::future::pending().await,
            Step::Usage => self.usage().await,
            Step::Read { path, line, limit } => self.read_file(&path, line, limit).await,
            Step::Write { path, text } => self.write_file(&path, &text).await,
            Step::Terminal(command) => self.terminal(&command).await,
            Step::Elicit => self.elicit().await,
            Step::Tools => self.list_tools().await,
            Step::Call(call) => self.call_and_tell(&call).await,
            Step::AnswerWith(call) => self.call_and_be_done(&call).await,
            Step::Parallel(calls) => self.call_all(calls).await,
            Step::Rounds { rounds, call } => self.call_in_rounds(rounds, &call).await,
            Step::Next(line) => self.session.plan(line),
            Step::History => self.tell_history().await,
            Step::Count => self.count().await,
        }
        Ok(())
    }

    async fn end(&self, id: &RawValue, end: End) {
        let outcome = match end {
            End::Crash(code) => return self.connection.crash(code),
            End::Stop(reason) => Ok(reason),
            End::Cancelled(Cancel::Turn) => Ok(StopReason::Cancelled),
            End::Cancelled(Cancel::Request) => Err(RpcError::new(-32800, "the request was cancelled")),
            End::Error(error) => Err(error),
        };
        self.fail_open_calls().await;
        let counted = self.counted();
        let used = self.session.counted().total() + counted.total();
        let cost = json!({"amount": 0.0, "currency": "USD"});
        self.update(json!({"sessionUpdate": "usage_update", "used": used, "size": CONTEXT_SIZE, "cost": cost})).await;

        let answer = std::mem::take(&mut self.tally.borrow_mut().answer);
        self.session.finish(Exchange { prompt: self.prompt.text.clone(), answer }, counted);
        let result = outcome.map(|reason| {
            json!({
                "stopReason": reason,
                "usage": {
                    "inputTokens": counted.input,
                    "outputTokens": counted.output,
                    "thoughtTokens": counted.thought,
                    "totalTokens": counted.total(),
                },
            })
        });
        self.connection.reply(id, result).await;
    }

    /// Sends one chunk of the answer.
    async fn say(&self, text: &str) {
        self.tally.borrow_mut().heard(text);
        let update = session_update(&self.session.id, Chunk::Message { content: Text { text } });
        self.connection.outbox.send_text(&update, text.len()).await;
    }

    /// Sends a text word by word, at the pace of `--token-delay-ms`.
    async fn stream(&self, text: &str) {
        for word in words(text) {
            self.pause().await;
            self.say(word).await;
        }
    }

    /// Sends a thought word by word.
    async fn think(&self, text: &str) {
        for word in words(text) {
            self.pause().await;
            self.tally.borrow_mut().thought.add(word);
            let content = Text { text: word };
            let update = session_update(&self.session.id, Chunk::Thought { content });
            self.connection.outbox.send_text(&update, word.len()).await;
        }
    }

    async fn pause(&self) {
        let delay = self.connection.flags.token_delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    async fn update(&self, update: impl Serialize) {
        self.connection.update(&self.session.id, update).await;
    }

    fn counted(&self) -> Counted {
        let tally = self.tally.borrow();
        let mut input = WordCount::default();
        input.add(&self.prompt.text);
        Counted { input: input.words, output: tally.output.words, thought: tally.thought.words }
    }
}

impl Prompt {
    fn from_blocks(blocks: Vec<ContentBlock>) -> Self {
        let mut texts = Vec::new();
        let mut attachments = Vec::new();
        for block in blocks {
            match block.text {
                Some(text) => texts.push(text),
                None => attachments.push(describe(&block)),
            }
        }
        Self { text: texts.join("\n"), attachments }
    }
}

fn describe(block: &ContentBlock) -> String {
    let mime = block.mime_type.as_deref().unwrap_or("type not given");
    match (&block.resource, &block.uri, &block.data) {
        (Some(resource), ..) => {
            let uri = resource.uri.as_deref().unwrap_or("no uri");
            let length = resource.text.as_ref().map_or(0, String::len);
            format!("{} `{uri}`, {length} bytes of text", block.kind)
        }
        (None, Some(uri), None) => format!("{} `{uri}`", block.kind),
        (None, _, data) => format!("{} ({mime}), {} characters", block.kind, data.as_ref().map_or(0, String::len)),
    }
}

impl Tally {
    fn heard(&mut self, text: &str) {
        self.output.add(text);
        let left = REMEMBERED_ANSWER.saturating_sub(self.answer.len());
        if left > 0 {
            self.answer.push_str(&text[..text.floor_char_boundary(left)]);
        }
    }
}

impl WordCount {
    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            let inside = !byte.is_ascii_whitespace();
            self.words += u64::from(inside && !self.inside);
            self.inside = inside;
        }
    }
}

/// The words of a text, each with the blanks that follow it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let blanks = rest[word_end..].find(|letter: char| !letter.is_whitespace());
        let (word, after) = rest.split_at(blanks.map_or(rest.len(), |blanks| word_end + blanks));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_into_words_without_losing_a_blank() {
        let cut: Vec<_> = words("  two\n\nlines \u{a0}here").collect();
        assert_eq!(cut, ["  ", "two\n\n", "lines \u{a0}", "here"]);
        assert_eq!(words("").count(), 0);
    }

    #[test]
    fn words_are_counted_across_the_cuts_between_chunks() {
        let mut count = WordCount::default();
        for piece in ["one t", "wo", " ", " three", "\n"] {
            count.add(piece);
        }
        assert_eq!(count.words, 3);
    }

    #[test]
    fn a_long_answer_is_remembered_up_to_its_bound() {
        let mut tally = Tally::default();
        tally.heard(&"é".repeat(REMEMBERED_ANSWER));
        tally.heard("more");
        assert!(tally.answer.len() <= REMEMBERED_ANSWER && tally.answer.starts_with('é'));
    }
}
