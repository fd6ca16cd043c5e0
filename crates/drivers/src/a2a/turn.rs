//! One turn: a message and its stream; after each round of questions a message with the decisions and the next stream.
//!
//! The connections of all its streams are held until the turn is over, since a server may abort the tools that a stream
//! began when the connection of that stream ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::driver::{AgentStop, Signal, Update};
use gembridge_core::model::{Answer, AskId, Failure, FailureKind};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::card::{Card, Delivery, Protocol};
use super::decode::{Decoder, Rest};
use super::encode::{self, Place, TaskCall};
use super::error::Trouble;
use super::http::{EventStream, Server};
use super::wire;
use crate::profile::CancelBy;

/// For a call that needs no model.
const SHORT: Duration = Duration::from_secs(5);
/// How often a task that was cut off is asked whether it came to rest, and how long.
const AGAIN: Duration = Duration::from_millis(100);
const TIMES: usize = 30;

/// What a turn needs of its session.
pub(super) struct Plan {
    pub agent: Arc<str>,
    pub server: Arc<Server>,
    pub card: Arc<Card>,
    pub place: Place,
    pub parts: Vec<Value>,
    pub metadata: Value,
    pub cancel_by: CancelBy,
    pub cancel: CancellationToken,
    /// Decisions of people and policies.
    pub answers: mpsc::Receiver<(AskId, Answer)>,
    pub signals: mpsc::Sender<Vec<Signal>>,
}

/// How a turn ended, and where the next message belongs.
pub(super) struct Ended {
    pub signal: Signal,
    pub place: Place,
}

/// Why the streams of a turn are no longer read.
enum Cause {
    Cancelled,
    Trouble(Trouble),
}

pub(super) async fn run(mut plan: Plan) -> Ended {
    let mut decoder = Decoder::new(Arc::clone(&plan.agent), plan.place.clone());
    let had_task = plan.place.task.is_some();
    match streams(&mut plan, &mut decoder).await {
        Ok(signal) => Ended { signal, place: decoder.place() },
        Err(Cause::Cancelled) => {
            let place = stopped(&plan, &decoder).await;
            Ended { signal: Signal::Done { stop: AgentStop::Cancelled, usage: None }, place }
        }
        // Another conversation is begun, and told what was said.
        Err(Cause::Trouble(trouble)) if had_task && trouble.has_lost_the_task() => {
            let text = format!("agent `{}` no longer has the conversation: {trouble}", plan.agent);
            Ended { signal: Signal::Lost(Failure::new(FailureKind::Crashed, text)), place: Place::default() }
        }
        Err(Cause::Trouble(trouble)) => {
            // Nobody reads any more what the task does.
            let place = stopped(&plan, &decoder).await;
            Ended { signal: Signal::Failed(trouble.failure(&plan.agent)), place }
        }
    }
}

async fn streams(plan: &mut Plan, decoder: &mut Decoder) -> Result<Signal, Cause> {
    let mut held = Vec::new();
    let mut place = plan.place.clone();
    let mut parts = std::mem::take(&mut plan.parts);
    let mut metadata = std::mem::take(&mut plan.metadata);
    loop {
        let mut stream = open(plan, &place, &parts, &metadata).await?;
        read(plan, decoder, &mut stream).await?;
        held.push(stream.into_connection());
        match decoder.rest() {
            Rest::Ended { end, usage } => {
                told(plan, decoder.leftover()).await;
                return Ok(match end {
                    Ok(stop) => Signal::Done { stop, usage },
                    Err(failure) => Signal::Failed(failure),
                });
            }
            Rest::Asks => {
                let decisions = decided(plan, decoder).await?;
                let of = |(call, outcome): &(String, Arc<str>)| encode::decision(plan.card.protocol, call, outcome);
                parts = decisions.iter().map(of).collect();
                metadata = json!({});
                place = decoder.place();
                decoder.goes_on();
            }
        }
    }
}

async fn open(plan: &Plan, place: &Place, parts: &[Value], metadata: &Value) -> Result<EventStream, Cause> {
    let Card { protocol, path, delivery, .. } = &*plan.card;
    let body = encode::message(*protocol, *delivery, place, parts, metadata);
    let headers = encode::headers(*protocol);
    let opened = async {
        match delivery {
            Delivery::Stream => plan.server.stream(path, headers, body).await,
            Delivery::Whole => plan.server.whole_as_stream(path, headers, body).await,
        }
    };
    tokio::select! {
        opened = opened => opened.map_err(Cause::Trouble),
        () = plan.cancel.cancelled() => Err(Cause::Cancelled),
    }
}

/// Reads a stream to its end.
async fn read(plan: &mut Plan, decoder: &mut Decoder, stream: &mut EventStream) -> Result<(), Cause> {
    while !decoder.is_final() {
        tokio::select! {
            event = stream.next() => {
                let Some(event) = event.map_err(Cause::Trouble)? else { return Ok(()) };
                let updates = decoder.event(&event).map_err(Cause::Trouble)?;
                told(plan, updates).await;
            }
            Some((ask, answer)) = plan.answers.recv() => decoder.answered(ask, &answer),
            () = plan.cancel.cancelled() => return Err(Cause::Cancelled),
        }
    }
    // The rest of a stream that said so is its end; a server that keeps it open is not waited for.
    Ok(())
}

/// Waits until every question of the stream has its answer.
async fn decided(plan: &mut Plan, decoder: &mut Decoder) -> Result<Vec<(String, Arc<str>)>, Cause> {
    loop {
        if let Some(decisions) = decoder.decisions() {
            return Ok(decisions);
        }
        tokio::select! {
            answer = plan.answers.recv() => match answer {
                Some((ask, answer)) => decoder.answered(ask, &answer),
                // The session is gone.
                None => return Err(Cause::Cancelled),
            },
            () = plan.cancel.cancelled() => return Err(Cause::Cancelled),
        }
    }
}

async fn told(plan: &Plan, updates: Vec<Update>) {
    if !updates.is_empty() {
        // Nobody hears it where the session is gone.
        drop(plan.signals.send(updates.into_iter().map(Signal::Update).collect()).await);
    }
}

/// Ends what the server still does; the streams of the turn are closed by now. Says where the next message belongs.
async fn stopped(plan: &Plan, decoder: &Decoder) -> Place {
    let place = decoder.place();
    let Some(task) = place.task.as_deref().filter(|_| !decoder.is_at_rest()) else { return place };
    let protocol = plan.card.protocol;
    match plan.cancel_by {
        CancelBy::Task => {
            if let Err(trouble) = call(plan, encode::task_call(protocol, TaskCall::Cancel, task)).await {
                tracing::debug!(agent = %plan.agent, %trouble, "a task was not cancelled");
            }
            // The conversation goes on in another task.
            Place { task: None, ..place }
        }
        CancelBy::Connection => {
            at_rest(plan, protocol, task).await;
            place
        }
    }
}

/// Waits until a task that was cut off takes messages again.
async fn at_rest(plan: &Plan, protocol: Protocol, task: &str) {
    for _ in 0..TIMES {
        match call(plan, encode::task_call(protocol, TaskCall::Get, task)).await.and_then(wire::told) {
            Ok(wire::Told::Task(found)) if !found.status.state.is_at_rest() => tokio::time::sleep(AGAIN).await,
            Ok(_) | Err(_) => return,
        }
    }
}

async fn call(plan: &Plan, body: Bytes) -> Result<Value, Trouble> {
    let headers = encode::headers(plan.card.protocol);
    let answer = plan.server.post(&plan.card.path, headers, body, SHORT).await?;
    wire::result(&answer)
}
