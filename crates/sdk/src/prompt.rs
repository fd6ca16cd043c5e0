//! What an agent is asked, and on which terms.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gembridge_core::model::{Content, Text};
use tokio::time::Instant as ClockInstant;

use crate::budget::Budget;
use crate::reply::Reply;

/// One thing to ask. A string is one.
///
/// ```
/// use std::time::Duration;
/// use gembridge_sdk::Prompt;
///
/// let prompt = Prompt::new("What is on this picture?").image("image/png", b"...").within(Duration::from_secs(60));
/// ```
#[derive(Clone)]
#[must_use]
pub struct Prompt {
    pub(crate) content: Vec<Content>,
    pub(crate) terms: Terms,
}

/// On which terms a prompt is answered.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub deadline: Option<ClockInstant>,
    pub budget: Option<Budget>,
    pub check: Option<Check>,
    pub stop: Vec<String>,
    pub max_tokens: Option<u64>,
}

pub(crate) type Check = Arc<dyn Fn(&Reply) -> Completion + Send + Sync>;

/// What a completion check makes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It is what was asked for.
    Done,
    /// The agent goes on, and is told this.
    GoOn(String),
    /// It is not all that was asked for, and there is nothing to say about it: the answer is returned as it is.
    Incomplete,
}

impl Prompt {
    pub fn new(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(Text::plain(text.into()))], terms: Terms::default() }
    }

    /// Adds an image. Agents that take none are told that there was one.
    pub fn image(mut self, mime: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Self {
        let data = Text::plain(STANDARD.encode(bytes));
        self.content.push(Content::Image { mime: mime.as_ref().into(), data, uri: None });
        self
    }

    /// Adds a file of text with its words.
    pub fn document(mut self, name: impl AsRef<str>, text: impl Into<String>) -> Self {
        let uri = format!("file:///{}", name.as_ref().trim_start_matches('/'));
        self.content.push(Content::Document { uri: uri.into(), mime: None, text: Text::plain(text.into()) });
        self
    }

    /// Names a file of the workspace, which the agent reads itself.
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let uri = format!("file://{}", path.display());
        self.content.push(Content::Link { uri: uri.into(), name: name.into(), mime: None });
        self
    }

    /// The answer must be there by then. Afterwards the agent is told to stop, and ended if it does not.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.terms.deadline = Some(deadline.into());
        self
    }

    /// The same, counted from now.
    pub fn within(mut self, time: Duration) -> Self {
        self.terms.deadline = Some(ClockInstant::now() + time);
        self
    }

    /// What this prompt may use, together with all others that name the same budget.
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.terms.budget = Some(budget.clone());
        self
    }

    /// Looks at each answer, and lets the agent go on with a word of feedback until it is complete: at most ten times.
    pub fn until_complete(mut self, check: impl Fn(&Reply) -> Completion + Send + Sync + 'static) -> Self {
        self.terms.check = Some(Arc::new(check));
        self
    }

    /// The answer ends before this text.
    pub fn stop_at(mut self, text: impl Into<String>) -> Self {
        self.terms.stop.push(text.into());
        self
    }

    /// About how many tokens the answer may have, by our own measure: agents take no such limit.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.terms.max_tokens = Some(tokens);
        self
    }
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Terms { deadline, budget, stop, max_tokens, .. } = &self.terms;
        f.debug_struct("Prompt")
            .field("content", &self.content)
            .field("deadline", deadline)
            .field("budget", budget)
            .field("stop", stop)
            .field("max_tokens", max_tokens)
            .finish_non_exhaustive()
    }
}
