//! A tool host without a network: a test takes each place that is opened, and then plays the agent at it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::BoxFuture;
use gembridge_core::driver::{ServerOrigin, ToolServer};
use gembridge_core::model::{ClientTool, Content, Failure, FailureKind, Opaque, ReturnOutcome, ToolReturn};
use gembridge_core::tool_host::{
    Format, FormatSpec, HostedCall, HostedCallId, HostedTools, Offer, ToolHost, ToolList, ToolNews,
};
use tokio::sync::{mpsc, oneshot};

/// Longer than every limit of a session. Time is paused in these tests, so a wait in vain costs nothing.
const IN_VAIN: Duration = Duration::from_hours(100);

pub struct ScriptedHost {
    doorbell: mpsc::Sender<FakePlace>,
}

/// The test's end of the host.
pub struct ToolDesk {
    places: mpsc::Receiver<FakePlace>,
}

/// A place at which the test plays the agent.
pub struct FakePlace {
    offers: mpsc::Receiver<Posted>,
    news: mpsc::Sender<ToolNews>,
    calls: u64,
}

struct Posted {
    offer: Offer,
    read: oneshot::Sender<()>,
}

/// A call that the agent waits for.
pub struct Call {
    pub id: HostedCallId,
    reply: oneshot::Receiver<ToolReturn>,
}

pub fn scripted_host() -> (Arc<ScriptedHost>, ToolDesk) {
    let (doorbell, places) = mpsc::channel(64);
    (Arc::new(ScriptedHost { doorbell }), ToolDesk { places })
}

impl ToolDesk {
    /// The place that was opened next.
    pub async fn next(&mut self) -> FakePlace {
        let place = tokio::time::timeout(IN_VAIN, self.places.recv()).await;
        place.expect("the session opens a place").expect("the host is there")
    }

    pub fn waiting(&mut self) -> Option<FakePlace> {
        self.places.try_recv().ok()
    }
}

impl FakePlace {
    /// Reads the list that is offered next: the names of the tools.
    pub async fn reads(&mut self) -> Vec<String> {
        let posted = tokio::time::timeout(IN_VAIN, self.offers.recv()).await;
        let Posted { offer, read } = posted.expect("something is offered").expect("the session holds the place");
        // Whoever offered it may not wait any more.
        read.send(()).ok();
        offer.tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    /// Reads whatever is offered, if anything is.
    pub fn reads_all(&mut self) {
        while let Ok(Posted { read, .. }) = self.offers.try_recv() {
            read.send(()).ok();
        }
    }

    /// Whether nothing new was offered so far.
    pub fn is_unchanged(&self) -> bool {
        self.offers.is_empty()
    }

    /// Whether the session has given the place up.
    pub fn is_closed(&self) -> bool {
        self.news.is_closed()
    }

    pub async fn calls(&mut self, tool: &str, arguments: &str) -> Call {
        let (news, call) = self.new_call(tool, arguments);
        self.news.send(news).await.expect("the session listens to the place");
        call
    }

    /// Calls, though the session may not care for it any more. A call that was not taken has no reply to wait for.
    pub fn tries_call(&mut self, tool: &str) -> Option<Call> {
        let (news, call) = self.new_call(tool, "{}");
        self.news.try_send(news).ok().map(|()| call)
    }

    pub async fn withdraws(&self, call: HostedCallId) {
        self.news.send(ToolNews::Withdrawn(call)).await.expect("the session listens to the place");
    }

    pub fn tries_withdraw(&self, call: HostedCallId) {
        drop(self.news.try_send(ToolNews::Withdrawn(call)));
    }

    pub async fn delivers(&self, output: &str) {
        self.news.send(ToolNews::Output(opaque(output))).await.expect("the session listens to the place");
    }

    fn new_call(&mut self, tool: &str, arguments: &str) -> (ToolNews, Call) {
        let (reply, receiver) = oneshot::channel();
        self.calls += 1;
        let id = HostedCallId(self.calls);
        let called = HostedCall { id, tool: tool.into(), arguments: opaque(arguments), reply };
        (ToolNews::Called(called), Call { id, reply: receiver })
    }
}

impl Call {
    /// What the agent gets.
    pub async fn reply(self) -> ToolReturn {
        let reply = tokio::time::timeout(IN_VAIN, self.reply).await;
        reply.expect("the call is answered").expect("the call is not dropped")
    }

    /// The same as words, and how it went.
    pub async fn words(self) -> (ReturnOutcome, String) {
        let reply = self.reply().await;
        (reply.outcome, words(&reply))
    }

    /// What the agent has got so far.
    pub fn so_far(&mut self) -> Option<ToolReturn> {
        self.reply.try_recv().ok()
    }

    pub fn is_waiting(&mut self) -> bool {
        matches!(self.reply.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }
}

impl ToolHost for ScriptedHost {
    fn open(&self) -> Result<HostedTools, Failure> {
        let (post, offers) = mpsc::channel(64);
        let (sender, news) = mpsc::channel(2_048);
        let place = FakePlace { offers, news: sender, calls: 0 };
        let full = || Failure::new(FailureKind::Internal, "the test does not play hosts any more");
        self.doorbell.try_send(place).map_err(|_| full())?;
        let server = ToolServer {
            name: "ours".into(),
            url: "http://host/mcp".into(),
            headers: Vec::new(),
            origin: ServerOrigin::Ours,
        };
        Ok(HostedTools { server, list: Box::new(PlayedTools { post }), news })
    }

    fn format(&self, _wanted: &FormatSpec) -> Result<Arc<dyn Format>, String> {
        Err("no formats here".into())
    }
}

struct PlayedTools {
    post: mpsc::Sender<Posted>,
}

impl ToolList for PlayedTools {
    fn offer(&mut self, offer: Offer) -> BoxFuture<'static, ()> {
        let (read, wait) = oneshot::channel();
        drop(self.post.try_send(Posted { offer, read }));
        Box::pin(async move {
            if wait.await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

/// Tools with these names.
pub fn offer(names: &[&str]) -> Offer {
    let tools = names.iter().map(|name| ClientTool { name: (*name).into(), description: None, schema: None });
    Offer { tools: tools.collect(), format: None }
}

pub fn result(text: &str) -> ToolReturn {
    ToolReturn { outcome: ReturnOutcome::Done, content: vec![Content::text(text)] }
}

pub fn opaque(text: &str) -> Opaque {
    Opaque(Bytes::copy_from_slice(text.as_bytes()))
}

/// The text of a result.
pub fn words(result: &ToolReturn) -> String {
    let texts = result.content.iter().filter_map(|content| match content {
        Content::Text(text) => Some(text.to_str().into_owned()),
        _ => None,
    });
    texts.collect()
}
