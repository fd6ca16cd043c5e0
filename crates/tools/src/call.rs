//! One call of a tool: told to the session, and held open until it is answered or nobody waits for it any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use gembridge_core::model::{Opaque, ToolReturn};
use gembridge_core::tool_host::{HostedCall, HostedCallId, ToolNews};
use rmcp::model::{
    CallToolRequest, CallToolResult, ContentBlock, JsonObject, Notification, ProgressNotificationParam, ProgressToken,
    RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc::OwnedPermit;
use tokio::sync::oneshot;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::calls::{CallKey, PendingCalls};
use crate::content::{as_message, failure, result};
use crate::format::JsonFormat;
use crate::list::{Entry, without_additions};

/// A call that was taken.
pub enum Begun {
    Answered(CallToolResult),
    Waiting(Box<Waiting>),
}

/// A call that is open. Small: there can be very many. Dropping it before its end withdraws it.
pub struct Waiting {
    id: HostedCallId,
    key: CallKey,
    pending: Arc<PendingCalls>,
    answer: oneshot::Receiver<ToolReturn>,
    /// The agent cancels it, or (by being dropped) the endpoint closes.
    recall: oneshot::Receiver<()>,
    /// Room to say that the agent does not wait any more, kept from the beginning so that it is always there. Gone when
    /// the call is over.
    withdrawal: Option<OwnedPermit<ToolNews>>,
    progress: Option<Progress>,
}

struct Progress {
    token: ProgressToken,
    ticks: Interval,
    told: f64,
}

pub fn begin(pending: &Arc<PendingCalls>, session: &SessionId, request: RequestId, call: CallToolRequest) -> Begun {
    let (_, list) = pending.list();
    let progress = call.extensions.get::<RequestMetaObject>().and_then(RequestMetaObject::get_progress_token);
    let arguments = call.params.arguments.unwrap_or_default();
    match list.find(&call.params.name, &pending.naming) {
        Some(Entry::Client { name, schema }) => {
            let arguments = without_additions(arguments, schema);
            park(pending, CallKey { session: session.clone(), request }, name, &arguments, progress)
        }
        Some(Entry::Answer(format)) => Begun::Answered(take_answer(pending, format, arguments)),
        None => {
            let unknown = format!("there is no tool `{}` here; the list of tools may have changed", call.params.name);
            Begun::Answered(failure(unknown))
        }
    }
}

fn park(
    pending: &Arc<PendingCalls>,
    key: CallKey,
    tool: &Arc<str>,
    arguments: &JsonObject,
    progress: Option<ProgressToken>,
) -> Begun {
    let room = || pending.news.clone().try_reserve_owned();
    let (Ok(now), Ok(withdrawal)) = (room(), room()) else {
        return Begun::Answered(failure("too many calls wait for an answer already; try again when some have come"));
    };
    let arguments = match serde_json::to_vec(arguments) {
        // To size: it stays as long as the call is in memory.
        Ok(arguments) => Opaque(Bytes::from(arguments.into_boxed_slice())),
        Err(error) => return Begun::Answered(failure(format!("the arguments cannot be passed on: {error}"))),
    };
    let (id, recall) = pending.open_call(key.clone());
    let (reply, answer) = oneshot::channel();
    now.send(ToolNews::Called(HostedCall { id, tool: tool.clone(), arguments, reply }));
    let progress = progress.map(|token| {
        let mut ticks = interval_at(Instant::now() + pending.progress, pending.progress);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Progress { token, ticks, told: 0.0 }
    });
    let pending = pending.clone();
    Begun::Waiting(Box::new(Waiting { id, key, pending, answer, recall, withdrawal: Some(withdrawal), progress }))
}

fn take_answer(pending: &PendingCalls, format: &JsonFormat, arguments: JsonObject) -> CallToolResult {
    match format.deliver(arguments) {
        Ok(answer) => match pending.news.try_send(ToolNews::Output(answer)) {
            Ok(()) => CallToolResult::success(vec![ContentBlock::text(
                "The answer was recorded. The user has it now; there is nothing left to say.",
            )]),
            Err(_) => failure("the answer could not be recorded now; deliver it again"),
        },
        Err(complaint) => failure(format!(
            "The answer was not recorded, since it is not in the form asked for:\n{complaint}\nCorrect it and deliver \
             it again."
        )),
    }
}

impl Waiting {
    /// What the agent gets to read, one message after another; the result is the last.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        if self.withdrawal.is_none() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(answer) = Pin::new(&mut self.answer).poll(cx) {
            return self
                .end(answer.map_or_else(|_| failure("the tool did not return: the session let go of it"), result));
        }
        match Pin::new(&mut self.recall).poll(cx) {
            // Whoever cancels a request does not wait for an answer.
            Poll::Ready(Ok(())) => {
                self.withdraw();
                return Poll::Ready(None);
            }
            Poll::Ready(Err(_)) => {
                return self.end(failure("the tool did not return: the session that offers it has ended"));
            }
            Poll::Pending => {}
        }
        match &mut self.progress {
            Some(progress) => progress.poll(cx).map(Some),
            None => Poll::Pending,
        }
    }

    fn end(&mut self, result: CallToolResult) -> Poll<Option<ServerSseMessage>> {
        self.withdrawal = None;
        Poll::Ready(Some(as_message(result, self.key.request.clone())))
    }

    fn withdraw(&mut self) {
        if let Some(withdrawal) = self.withdrawal.take() {
            withdrawal.send(ToolNews::Withdrawn(self.id));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.withdraw();
        self.pending.forget_call(&self.key, self.id);
    }
}

impl Progress {
    /// From time to time: the call still waits.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ServerSseMessage> {
        self.ticks.poll_tick(cx).map(|_| {
            self.told += 1.0;
            let told = ProgressNotificationParam::new(self.token.clone(), self.told)
                .with_message("waiting for the client to run the tool");
            let told = ServerNotification::ProgressNotification(Notification::new(told));
            ServerSseMessage::from_message(ServerJsonRpcMessage::notification(told))
        })
    }
}
