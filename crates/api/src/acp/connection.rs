//! One client: a task that reads its messages, shows it its sessions, and never keeps anybody waiting.

mod asks;
mod calls;
mod dispatch;
mod prompting;
mod subscriptions;
mod delivery;

use std::collections::HashMap;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use gembridge_core::model::{ClientId, SessionId, Timestamp};
use gembridge_core::session::{ListWatch, SessionChange, SessionHandle, Viewer};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, Sleep, sleep_until};

use self::asks::Asks;
use self::calls::{Calls, Done};
use super::message_rate::MessageRate;
use super::subscription::{Step, Subscription};
use super::tap::{Direction, Tapped, session_of, split_frame};
use super::wire::{Extensions, ReplayWish};
use super::{Acp, Manner, encode};
use crate::guard::memory_budget::MemoryAccount;
use crate::identity::Identity;
use crate::keys::KeyLease;
use crate::websocket::{Arrived, CloseCode, Received, WebSocket};

/// How long a client has to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);
const GOING: &str = "the gateway is shutting down";
const TOO_FAST: CloseCode = CloseCode(4009);
const NO_SIGN: CloseCode = CloseCode(4010);

/// A client that was let in.
pub(super) struct Guest {
    pub connection_id: String,
    pub identity: Identity,
    pub lease: Option<KeyLease>,
    /// What its messages are charged to.
    pub memory: MemoryAccount,
    /// The session that its address names, until it is shown.
    pub session: Option<SessionHandle>,
    pub named: Option<SessionId>,
    pub replay: ReplayWish,
    pub manner: Manner,
}

type Socket = WebSocket<TokioIo<Upgraded>>;

pub(super) struct Connection {
    app: Arc<Acp>,
    socket: Socket,
    client: ClientId,
    viewer: Viewer,
    guest: Guest,
    greeting: Greeting,
    /// Whether it fills in forms.
    fills_forms: bool,
    extensions: Extensions,
    subscriptions: Vec<Subscription>,
    /// The subscription that is looked at first next time, so that none is starved.
    next_seat: usize,
    /// Messages for sessions whose subscription is being taken.
    waiting: HashMap<SessionId, Vec<String>>,
    asks: Asks,
    calls: Calls,
    watch: Watch,
    /// The client was too far behind when the loop last looked.
    is_full: bool,
    outflow: Outflow,
    /// Every session has ended: the client goes when it has got what there is.
    is_over: bool,
    message_rate: MessageRate,
    life: Life,
    ending: Option<Ending>,
    counted: Counted,
}

/// Counts a connection for as long as it lives, also when its task panics.
struct Counted(Arc<Acp>);

impl Counted {
    fn new(app: Arc<Acp>) -> Self {
        app.connections.fetch_add(1, Ordering::Relaxed);
        Self(app)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the client watches all sessions.
enum Watch {
    No,
    /// It has just asked to.
    Begins(ListWatch),
    Yes,
}

/// When the client last gave a sign of life, and whether it was asked for one since.
struct Life {
    heard: Instant,
    asked: bool,
}

/// How the last write to the client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outflow {
    Free,
    /// The client has to read before more can be written.
    Blocked,
}

/// Whether the client has said who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greeting {
    Awaited,
    Done,
}

/// Why a connection ends.
#[derive(Debug)]
enum Ending {
    /// The other end is told why.
    Told(CloseCode, &'static str),
    /// The other end has gone, or said goodbye.
    Left,
}

/// What woke the task.
enum Woken {
    Received(Received),
    Step(usize, Step),
    Done(Done),
    /// The socket cannot be written.
    Broken,
}

/// Things done in one go.
const SHARE: usize = 128;

/// Bytes that go out at once; less waits for what else there is.
const GATHERED: usize = 64 << 10;

impl Connection {
    pub(super) fn new(app: Arc<Acp>, socket: Socket, guest: Guest) -> Self {
        Self {
            counted: Counted::new(Arc::clone(&app)),
            message_rate: app.message_rates.of(&guest.identity),
            socket,
            client: ClientId::fresh(),
            viewer: guest.identity.viewer(),
            guest,
            greeting: Greeting::Awaited,
            fills_forms: false,
            extensions: Extensions::Unknown,
            subscriptions: Vec::new(),
            next_seat: 0,
            waiting: HashMap::new(),
            asks: Asks::default(),
            calls: Calls::default(),
            watch: Watch::No,
            is_full: false,
            outflow: Outflow::Free,
            is_over: false,
            life: Life { heard: Instant::now(), asked: false },
            ending: None,
            app,
        }
    }

    /// Serves the client to its end.
    pub(super) async fn run(mut self) {
        tracing::debug!(
            connection = self.guest.connection_id,
            principal = self.guest.identity.principal.name(),
            "a client came"
        );
        let mut revoked: Pin<Box<dyn Future<Output = ()> + Send>> = match self.guest.lease.clone() {
            Some(lease) => Box::pin(lease.revoked()),
            None => Box::pin(std::future::pending()),
        };
        let draining = self.app.draining.clone();
        let mut drained = std::pin::pin!(draining.cancelled());
        let over = self.app.over.clone();
        let mut ended = std::pin::pin!(over.cancelled());
        let mut alarm: Pin<Box<Sleep>> = Box::pin(sleep_until(self.life.heard + self.app.parts.config.silence));
        let mut changes = None;
        while self.ending.is_none() {
            if draining.is_cancelled() && !self.has_turns() {
                self.ending = Some(Ending::Told(CloseCode::GOING_AWAY, GOING));
                break;
            }
            if let Watch::Begins(list) = std::mem::replace(&mut self.watch, Watch::Yes) {
                changes = Some(list);
            } else if changes.is_none() {
                self.watch = Watch::No;
            }
            let has_room = self.has_room();
            self.is_full = !has_room;
            if let Some(due) = self.socket.message_due().filter(|due| *due < alarm.deadline()) {
                alarm.as_mut().reset(due);
            }
            tokio::select! {
                biased;
                () = poll_fn(|cx| self.poll_work(cx)) => {}
                () = &mut revoked => self.ending = Some(Ending::Told(CloseCode::POLICY, "the key was revoked")),
                () = &mut drained, if !draining.is_cancelled() => {}
                () = &mut ended, if !self.is_over => self.is_over = true,
                news = next_change(&mut changes), if has_room => {
                    let start = self.socket.behind();
                    self.on_changed(news);
                    self.tap_sent(start);
                }
                () = &mut alarm => {
                    let due = self.on_alarm();
                    alarm.as_mut().reset(due);
                }
            }
        }
        self.leave().await;
    }

    /// Asks for a sign of life where none came for long, and gives up a message whose end does not come. When it rings
    /// next.
    fn on_alarm(&mut self) -> Instant {
        let (now, silence) = (Instant::now(), self.app.parts.config.silence);
        if let Some(due) = self.socket.message_due() {
            // The message is the sign of life: inside a frame a client cannot answer a ping.
            self.life = Life { heard: now, asked: false };
            if now < due {
                return due;
            }
            if self.has_room() {
                let (code, reason) = self.socket.message_overdue();
                self.ending = Some(Ending::Told(code, reason));
            }
            self.socket.restart_message_clock();
            return now + silence;
        }
        if now < self.life.heard + silence {
            return self.life.heard + silence;
        }
        if self.life.asked {
            self.ending = Some(Ending::Told(NO_SIGN, "no sign of life came back"));
        }
        self.socket.ping();
        self.life = Life { heard: now, asked: true };
        now + silence
    }

    /// Works as long as there is something to do, up to a share that leaves others theirs. Ready when the loop around
    /// it has to look again.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..SHARE {
            let Poll::Ready(woken) = self.poll_woken(cx) else {
                if self.is_over {
                    self.ending = Some(Ending::Told(CloseCode::GOING_AWAY, GOING));
                    return Poll::Ready(());
                }
                // With room again, there may be more to take in than this.
                return if self.is_full && self.has_room() { Poll::Ready(()) } else { Poll::Pending };
            };
            if let Woken::Received(_) = &woken {
                self.life = Life { heard: Instant::now(), asked: false };
            }
            let has_begun = matches!(woken, Woken::Received(Received::Begun));
            self.on_woken(woken);
            let is_leaving = self.app.draining.is_cancelled() && !self.has_turns();
            if self.ending.is_some() || is_leaving || has_begun || matches!(self.watch, Watch::Begins(_)) {
                return Poll::Ready(());
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Tells the client something that is not of the protocol, if it understands it.
    fn notify(&mut self, method: &str, params: &Value) {
        if self.extensions == Extensions::Understood {
            encode::notification(self.socket.out(), method, params);
        }
    }

    fn has_room(&self) -> bool {
        self.socket.behind() < self.app.parts.config.behind
    }

    /// Whether a turn of one of its sessions runs: its client hears the end of it before it goes.
    fn has_turns(&self) -> bool {
        self.subscriptions.iter().any(|subscription| !subscription.prompts.is_empty())
    }

    async fn leave(self) {
        let Self { mut socket, ending, calls, subscriptions, counted, .. } = self;
        // What it waits for is waited for by nobody.
        drop((calls, subscriptions, counted));
        if let Some(Ending::Told(code, reason)) = ending {
            socket.close(code, reason);
        }
        if tokio::time::timeout(GOODBYE, socket.finish()).await.is_err() {
            tracing::debug!("a client left without a goodbye");
        }
    }

    /// Says what happened first, and writes when nothing did: what comes together goes out together. Nothing more is
    /// taken from the sessions while the client is behind: what it misses meanwhile is read from their logs later.
    fn poll_woken(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        let is_much = self.socket.behind() >= GATHERED || !self.has_room();
        if is_much && self.write(cx).is_break() {
            return Poll::Ready(Woken::Broken);
        }
        if let Poll::Ready(done) = self.calls.poll_done(cx) {
            return Poll::Ready(Woken::Done(done));
        }
        if self.has_room() {
            if let Poll::Ready(received) = self.socket.poll_receive(cx) {
                return Poll::Ready(Woken::Received(received));
            }
            for turn in 0..self.subscriptions.len() {
                let at = (self.next_seat + turn) % self.subscriptions.len();
                if let Poll::Ready(step) = self.subscriptions[at].poll_step(cx) {
                    self.next_seat = at + 1;
                    return Poll::Ready(Woken::Step(at, step));
                }
            }
        }
        if !is_much && self.write(cx).is_break() {
            return Poll::Ready(Woken::Broken);
        }
        Poll::Pending
    }

    /// Writes what there is. Breaks when the other end is gone.
    fn write(&mut self, cx: &mut Context<'_>) -> ControlFlow<()> {
        let behind = self.socket.behind();
        let written = self.socket.poll_write(cx);
        if self.outflow == Outflow::Blocked && self.socket.behind() < behind {
            // It is slow and takes what it gets, which is a sign of life: its answer to a ping waits behind all that it has
            // not read.
            self.life = Life { heard: Instant::now(), asked: false };
        }
        self.outflow = if written.is_pending() { Outflow::Blocked } else { Outflow::Free };
        match written {
            Poll::Ready(Err(error)) => {
                tracing::debug!(connection = self.guest.connection_id, %error, "a client cannot be written to");
                ControlFlow::Break(())
            }
            Poll::Ready(Ok(())) | Poll::Pending => ControlFlow::Continue(()),
        }
    }

    fn on_woken(&mut self, woken: Woken) {
        let start = self.socket.behind();
        match woken {
            Woken::Received(Received::Text(text)) => self.on_text(&text),
            Woken::Received(Received::Sign | Received::Begun) => {}
            Woken::Received(Received::Ended(Arrived::Broken(code))) => {
                self.ending = Some(Ending::Told(code, "the message breaks the protocol, or is too large"));
            }
            Woken::Received(Received::Ended(Arrived::Close | Arrived::Lost)) | Woken::Broken => {
                self.ending = Some(Ending::Left);
            }
            Woken::Step(at, step) => self.on_step(at, step),
            Woken::Done(done) => self.on_done(done),
        }
        self.tap_sent(start);
    }

    fn on_text(&mut self, text: &str) {
        if !self.message_rate.admits(self.app.parts.config.messages_per_second) {
            self.ending = Some(Ending::Told(TOO_FAST, "too many messages a second"));
            return;
        }
        if let Some(tap) = &self.app.parts.tap {
            let session = session_of(text);
            let (client, at) = (self.client, Timestamp::now());
            let session = session.as_deref();
            tap.message(&Tapped { direction: Direction::Client, client, session, at, message: text });
        }
        self.on_message(text);
    }

    /// Shows the tap what was put into the socket since `start`.
    fn tap_sent(&mut self, start: usize) {
        let Some(tap) = self.app.parts.tap.clone() else { return };
        let (client, at) = (self.client, Timestamp::now());
        let mut sent = self.socket.out().get(start..).unwrap_or_default();
        while let Some((message, rest)) = split_frame(sent) {
            if let Ok(message) = std::str::from_utf8(message) {
                let session = session_of(message);
                let session = session.as_deref();
                tap.message(&Tapped { direction: Direction::Agent, client, session, at, message });
            }
            sent = rest;
        }
    }
}

/// Never, for a client that does not watch.
async fn next_change(list: &mut Option<ListWatch>) -> Result<SessionChange, RecvError> {
    match list {
        Some(list) => list.changes.recv().await,
        None => std::future::pending().await,
    }
}
