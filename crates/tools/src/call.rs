//! One call of a tool: told to the session, and held open until it is answered or nobody waits for it any more.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::{Opaque, ToolReturn};
use gembridge_core::tool_host::{HostedCall, HostedCallId, ToolNews};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc::OwnedPermit;
use tokio::sync::oneshot;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::content::{failure, result};
use crate::desk::Desk;
use crate::format::JsonFormat;
use crate::list::{Entry, without_additions};
use crate::place::Caller;

/// A call that was taken.
pub enum Begun {
    Answered(CallToolResult),
    Waiting(Box<Waiting>),
}

/// A call that is open. Small: there can be very many.
pub struct Waiting {
    id: HostedCallId,
    answer: oneshot::Receiver<ToolReturn>,
    /// Room to say that the agent does not wait any more, kept from the beginning so that it is always there.
    withdrawal: OwnedPermit<ToolNews>,
    cancelled: CancellationToken,
    caller: Option<Arc<Caller>>,
    closed: CancellationToken,
    progress: Option<Progress>,
}

struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    ticks: Interval,
    told: f64,
}

pub fn begin(
    desk: &Desk,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
    caller: Option<Arc<Caller>>,
) -> Begun {
    let (_, list) = desk.list();
    let arguments = request.arguments.unwrap_or_default();
    match list.find(&request.name, &desk.naming) {
        Some(Entry::Client { name, schema }) => {
            let arguments = without_additions(arguments, schema);
            park(desk, name, &arguments, context, caller)
        }
        Some(Entry::Answer(format)) => Begun::Answered(take_answer(desk, format, arguments)),
        None => {
            Begun::Answered(failure(format!("there is no tool `{}` here; the list of tools has changed", request.name)))
        }
    }
}

fn park(
    desk: &Desk,
    tool: &Arc<str>,
    arguments: &JsonObject,
    context: RequestContext<RoleServer>,
    caller: Option<Arc<Caller>>,
) -> Begun {
    let room = || desk.news.clone().try_reserve_owned();
    let (Ok(now), Ok(withdrawal)) = (room(), room()) else {
        return Begun::Answered(failure("too many calls wait for an answer already; try again when some have come"));
    };
    let arguments = match serde_json::to_vec(arguments) {
        Ok(arguments) => Opaque(Bytes::from(arguments)),
        Err(error) => return Begun::Answered(failure(format!("the arguments cannot be passed on: {error}"))),
    };
    let id = desk.next_call();
    let (reply, answer) = oneshot::channel();
    now.send(ToolNews::Called(HostedCall { id, tool: tool.clone(), arguments, reply }));
    let progress = context.meta.get_progress_token().map(|token| {
        let mut ticks = interval_at(Instant::now() + desk.progress, desk.progress);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Progress { peer: context.peer, token, ticks, told: 0.0 }
    });
    let closed = desk.closed.clone();
    Begun::Waiting(Box::new(Waiting { id, answer, withdrawal, cancelled: context.ct, caller, closed, progress }))
}

fn take_answer(desk: &Desk, format: &JsonFormat, arguments: JsonObject) -> CallToolResult {
    match format.deliver(arguments) {
        Ok(answer) => match desk.news.try_send(ToolNews::Output(answer)) {
            Ok(()) => CallToolResult::success(vec![ContentBlock::text(
                "The answer was recorded. The user has it now; there is nothing left to say.",
            )]),
            Err(_) => failure("the answer could not be recorded now; deliver it again"),
        },
        Err(complaint) => failure(format!(
            "The answer was not recorded, since it is not in the form asked for:\n{complaint}\nCorrect it and deliver it again."
        )),
    }
}

impl Begun {
    pub async fn finish(self) -> CallToolResult {
        match self {
            Self::Answered(result) => result,
            Self::Waiting(waiting) => waiting.finish().await,
        }
    }
}

/// Why a call is over.
enum End {
    Answered(Option<ToolReturn>),
    Withdrawn,
    Closed,
}

impl Waiting {
    async fn finish(mut self: Box<Self>) -> CallToolResult {
        match self.end().await {
            End::Answered(Some(returned)) => result(returned),
            End::Answered(None) => failure("the tool did not return: the session dropped this call"),
            End::Closed => failure("the tool did not return: the session that offers it has ended"),
            End::Withdrawn => {
                self.withdrawal.send(ToolNews::Withdrawn(self.id));
                failure("the call was withdrawn")
            }
        }
    }

    async fn end(&mut self) -> End {
        let gone = async {
            match &self.caller {
                Some(caller) => caller.gone.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(gone);
        loop {
            tokio::select! {
                biased;
                answer = &mut self.answer => return End::Answered(answer.ok()),
                () = self.cancelled.cancelled() => return End::Withdrawn,
                () = &mut gone => return End::Withdrawn,
                () = self.closed.cancelled() => return End::Closed,
                () = tell_progress(&mut self.progress) => {}
            }
        }
    }
}

/// Waits until it is time, and tells the caller once that its call still waits.
async fn tell_progress(progress: &mut Option<Progress>) {
    let Some(progress) = progress else { return std::future::pending().await };
    progress.ticks.tick().await;
    progress.told += 1.0;
    let told = ProgressNotificationParam::new(progress.token.clone(), progress.told)
        .with_message("waiting for the client to run the tool");
    if let Err(error) = progress.peer.notify_progress(told).await {
        tracing::debug!(%error, "an agent could not be told that its call still waits");
    }
}
