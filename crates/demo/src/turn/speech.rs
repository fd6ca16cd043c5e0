//! Steps that only talk.

use std::time::Duration;

use serde_json::json;

use super::{End, Turn, samples};
use crate::script::StopReason;
use crate::words;

impl Turn {
    /// The answer to a prompt without a known word.
    pub(super) async fn plain(&self) {
        self.stream("I am the gembridge demo agent, not a model: I answer by rule. ").await;
        if self.session.model() == "demo-story" {
            self.stream("Here is a story by rule.\n\n").await;
            return self.story(5).await;
        }
        self.stream("You wrote:\n\n").await;
        self.stream(&self.prompt.text).await;
        if !self.prompt.attachments.is_empty() {
            self.stream("\n\nWith it came: ").await;
            self.stream(&self.prompt.attachments.join(", ")).await;
        }
        self.stream(
            "\n\nType `help` to see what I can show, or try `think`, `tool`, `edit`, `plan`, `permission`, \
             `markdown` or `story 10`. For real answers, install an agent; `gembridge agents` lists them.",
        )
        .await;
    }

    pub(super) async fn help(&self) {
        self.stream(
            "I am the gembridge demo agent, not a model. A line of your prompt that begins with one of these words \
             makes me show something; any other prompt is echoed.\n\n",
        )
        .await;
        self.stream(&words::table()).await;
    }

    pub(super) async fn think_aloud(&self, about: &str) {
        let about = if about.is_empty() { "what a thought looks like" } else { about };
        self.think(&format!("The user wants me to think: {about}. A demo has no thoughts, but it can show some."))
            .await;
        self.stream(&format!("I pretended to think: {about}.")).await;
    }

    pub(super) async fn story(&self, lines: u64) {
        for number in 1..=lines {
            self.stream(&samples::story_line(number)).await;
        }
    }

    pub(super) async fn long(&self, lines: u64) {
        for number in 1..=lines {
            self.pause().await;
            self.say(&samples::story_line(number)).await;
        }
    }

    pub(super) async fn slow(&self, words: u64, every: Duration) {
        // A zero period would panic; the shortest one that the clock tells apart stands for "no pause".
        let mut clock = tokio::time::interval(every.max(Duration::from_micros(1)));
        let mut word = String::new();
        for number in 1..=words {
            clock.tick().await;
            word.clear();
            push_number(&mut word, "word-", number);
            word.push(' ');
            self.say(&word).await;
        }
    }

    pub(super) async fn chunks(&self, count: u64, size: usize) {
        let mut chunk = String::with_capacity(size);
        for number in 1..=count {
            chunk.clear();
            push_number(&mut chunk, "", number);
            while chunk.len() + 1 < size {
                chunk.push('.');
            }
            chunk.push(' ');
            self.say(&chunk).await;
        }
    }

    pub(super) async fn image(&self) {
        let content = json!({"type": "image", "mimeType": "image/png", "data": samples::PNG});
        self.update(json!({"sessionUpdate": "agent_message_chunk", "content": content})).await;
        self.stream("That was a chequered square of 16 by 16 pixels.").await;
    }

    pub(super) async fn unicode(&self) {
        let text = samples::UNICODE;
        // One code point a chunk: grapheme clusters arrive in pieces, as they do from tokenizers.
        for (start, letter) in text.char_indices() {
            self.pause().await;
            self.say(&text[start..start + letter.len_utf8()]).await;
        }
    }

    pub(super) async fn json(&self, value: Option<String>) {
        let sample = || json!({"demo": true, "items": [1, 2, 3], "text": "an answer by rule"}).to_string();
        self.stream(&value.unwrap_or_else(sample)).await;
    }

    pub(super) async fn stop(&self, reason: StopReason) -> Result<(), End> {
        let text = match reason {
            StopReason::Refusal => "The demo agent was asked to refuse, and refuses.",
            StopReason::MaxTokens => "The demo agent was asked to run out of tokens in the middle of a",
            StopReason::MaxTurnRequests => "The demo agent was asked to use up its requests.",
            StopReason::EndTurn | StopReason::Cancelled => "",
        };
        self.stream(text).await;
        Err(End::Stop(reason))
    }

    pub(super) async fn usage(&self) {
        let before = self.session.counted();
        self.stream(&format!(
            "Before this turn the session counted {} words in, {} words out and {} words of thought, {} in all. \
             The demo counts a word as a token and costs nothing.",
            before.input,
            before.output,
            before.thought,
            before.total()
        ))
        .await;
    }

    pub(super) async fn tell_history(&self) {
        let history = self.session.history();
        if history.is_empty() {
            return self.stream("This is the first prompt of the session.").await;
        }
        for (index, exchange) in history.iter().enumerate() {
            self.stream(&format!("{}. {}\n", index + 1, exchange.prompt)).await;
        }
    }

    pub(super) async fn count(&self) {
        let turn = self.session.turns() + 1;
        self.stream(&format!("This is turn {turn} of the session.")).await;
    }
}

fn push_number(text: &mut String, before: &str, number: u64) {
    use std::fmt::Write as _;
    // Writing to a String cannot fail.
    write!(text, "{before}{number}").ok();
}
