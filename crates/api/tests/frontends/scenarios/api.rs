//! What the scenarios ask of an API, in no dialect.

use gembridge_core::test_support::ScriptedAgents;

use super::gateway::Gateway;
use crate::openai::support::http::Stream;

/// What a client says.
#[derive(Default)]
pub struct Ask {
    pub messages: Vec<Said>,
    pub tools: Vec<&'static str>,
    pub json: bool,
}

pub enum Said {
    User(&'static str),
    /// A picture of the user's, in Base64.
    Image(&'static str),
    Assistant(&'static str),
    Called(Vec<Called>),
    Result {
        id: String,
        text: &'static str,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    pub id: String,
    pub tool: String,
    pub arguments: String,
}

#[derive(Debug, Default)]
pub struct Answered {
    pub text: String,
    pub thoughts: String,
    pub calls: Vec<Called>,
    pub finish: String,
    /// Before the answer, or in the middle of it.
    pub failed: Option<Failed>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    pub kind: FailedKind,
    pub told: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedKind {
    /// Later it may be done.
    Busy,
    Other,
}

impl Failed {
    pub fn new(status: u16, told: &str) -> Self {
        let kind = if status == 429 { FailedKind::Busy } else { FailedKind::Other };
        Self { kind, told: told.to_owned() }
    }
}

/// Who answers what the agent asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Questions {
    /// The client does, and says yes.
    ForTheClient,
    /// Nobody can, so that the answer is no.
    ForNobody,
}

/// An API as its clients see it. One of HTTP implements [`HttpApi`].
pub trait Api: Sized {
    const QUESTIONS: Questions;

    async fn new(gateway: &Gateway) -> Self;

    /// The same client with the next gateway.
    async fn reconnect(self, gateway: &Gateway) -> Self;

    async fn ask(&self, ask: &Ask) -> Answered;

    /// Asks; when these words have come, `then` runs before more is read.
    async fn ask_until(&self, ask: &Ask, words: &str, then: impl Future<Output = ()>) -> Answered;

    /// Asks, and does not want the answer any more once the agent has the prompt.
    async fn ask_and_cancel(&self, ask: &Ask, agents: &ScriptedAgents);
}

/// A dialect of clients that keep their own history, over HTTP.
pub trait HttpApi: Sized {
    async fn serve(gateway: &Gateway) -> Self;

    /// Sends a request; the body is still to be read.
    async fn send(&self, ask: &Ask) -> Stream;

    fn read(&self, status: u16, body: &str) -> Answered;
}

impl<A: HttpApi> Api for A {
    const QUESTIONS: Questions = Questions::ForNobody;

    async fn new(gateway: &Gateway) -> Self {
        Self::serve(gateway).await
    }

    async fn reconnect(self, gateway: &Gateway) -> Self {
        Self::serve(gateway).await
    }

    async fn ask(&self, ask: &Ask) -> Answered {
        let answer = self.send(ask).await.whole().await;
        self.read(answer.status, &answer.body)
    }

    async fn ask_until(&self, ask: &Ask, words: &str, then: impl Future<Output = ()>) -> Answered {
        let mut stream = self.send(ask).await;
        stream.until(words).await;
        then.await;
        let answer = stream.whole().await;
        self.read(answer.status, &answer.body)
    }

    async fn ask_and_cancel(&self, ask: &Ask, agents: &ScriptedAgents) {
        // A stream has begun by then and a whole answer has not: either way the connection goes.
        tokio::select! {
            stream = self.send(ask) => drop(stream),
            () = agents.until_prompted(0) => {}
        }
    }
}
