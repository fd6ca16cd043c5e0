//! The access log and the metrics of a request: one record when it starts, one when its response has ended. Never what was
//! asked or answered.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use gembridge_core::model::Principal;

use crate::guard::meters::Meters;
use crate::identity::{RequestId, SESSION_HEADER};
use crate::keys::PREFIX as KEY_PREFIX;

/// What a route knows of its request, for the record of its end. In the request's extensions.
#[derive(Clone, Debug)]
pub struct RequestNotes {
    started: Instant,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Clone, Debug, Default)]
pub struct Notes {
    pub model_asked: Option<String>,
    /// One of the models that can run: it becomes a label of metrics.
    pub model_used: Option<String>,
    pub session: Option<String>,
    pub stream: Option<bool>,
    pub queued: Option<Duration>,
    /// From the start of the request.
    pub first_token: Option<Duration>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Why it failed, with the agent's exit code and the redacted tail of what it said.
    pub failure: Option<String>,
}

impl RequestNotes {
    fn new(started: Instant) -> Self {
        Self { started, notes: Arc::default() }
    }

    pub fn edit(&self, edit: impl FnOnce(&mut Notes)) {
        edit(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The first piece of the answer is there. Later calls change nothing.
    pub fn first_token(&self) {
        self.edit(|notes| {
            notes.first_token.get_or_insert_with(|| self.started.elapsed());
        });
    }
}

/// How the answer to a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Whole,
    /// The client went away first.
    Left,
    /// Its key was revoked on the way.
    Revoked,
    /// The stream failed on our side.
    Broken,
}

impl Ending {
    fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Left => "client left",
            Self::Revoked => "key revoked",
            Self::Broken => "broken",
        }
    }
}

/// One request, from its start to the end of its answer. Dropped before that, the client has left.
pub struct Record {
    pub id: RequestId,
    pub notes: RequestNotes,
    /// `None` where no route matched: the path is then any text, fit for the log but not for a label of metrics.
    route: Option<MatchedPath>,
    method: Method,
    status: Option<StatusCode>,
    ended: bool,
    meters: Arc<Meters>,
}

impl Record {
    pub fn begin(request: &Request, client: IpAddr, meters: &Arc<Meters>) -> Self {
        let id = RequestId::fresh();
        // Text of clients is passed as strings, which the log's writers escape; displayed values they do not.
        tracing::info!(
            target: "gembridge::request",
            request = id.text(&mut [0; RequestId::LENGTH]),
            address = %client,
            method = request.method().as_str(),
            path = without_key(request.uri().path()),
            user_agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()),
            "request started"
        );
        meters.begun();
        Self {
            id,
            notes: RequestNotes::new(Instant::now()),
            route: request.extensions().get().cloned(),
            method: request.method().clone(),
            status: None,
            ended: false,
            meters: Arc::clone(meters),
        }
    }

    pub fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// Writes to the audit log who was answered with which status: never what was said.
    pub fn audit(&self, principal: &Principal, response: &Response) {
        tracing::info!(
            target: "gembridge::audit",
            principal = principal.name(),
            method = %self.method,
            route = self.route.as_ref().map(MatchedPath::as_str),
            session = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok()),
            status = response.status().as_u16(),
            request = self.id.text(&mut [0; RequestId::LENGTH]),
            "request"
        );
    }

    /// Writes the end.
    pub fn end(mut self, ending: Ending) {
        self.write(ending);
    }

    /// The first ending counts.
    fn write(&mut self, ending: Ending) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let took = self.notes.started.elapsed();
        let notes = self.notes.notes.lock().unwrap_or_else(PoisonError::into_inner);
        // The code that nginx made known for a client that did not wait for the answer.
        let status = self.status.map_or(499, |status| status.as_u16());
        tracing::info!(
            target: "gembridge::request",
            request = self.id.text(&mut [0; RequestId::LENGTH]),
            route = self.route(),
            status,
            ending = ending.as_str(),
            ms = millis(took),
            first_token_ms = notes.first_token.map(millis),
            queue_ms = notes.queued.map(millis),
            model_asked = notes.model_asked,
            model_used = notes.model_used,
            stream = notes.stream,
            session = notes.session,
            input_tokens = notes.input_tokens,
            output_tokens = notes.output_tokens,
            failure = notes.failure,
            "request ended"
        );
        self.measure(status, took, &notes);
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("unmatched", MatchedPath::as_str)
    }

    fn measure(&self, status: u16, took: Duration, notes: &Notes) {
        self.meters.ended(self.route(), &self.method, status, took);
        if let Some(first) = notes.first_token {
            self.meters.first_token(first);
        }
        if let Some(model) = &notes.model_used {
            self.meters.tokens(model, notes.input_tokens, notes.output_tokens);
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.write(Ending::Left);
    }
}

/// A key that stands where none is expected is no less secret.
fn without_key(path: &str) -> &str {
    path.find(KEY_PREFIX).map_or(path, |at| &path[..at])
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
