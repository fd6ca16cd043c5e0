//! Calls of the client's tools, as one answer tells them: which are shown, and which go back to the agent unseen.

use std::fmt;
use std::sync::Arc;

use super::request::{AtOnce, CallIds, ToolChoice};
use crate::model::{CallId, ClientCall, ClientTool, Failure, FailureKind, ToolReturn};
use crate::tool_host::{FormatSpec, ToolHost};

#[derive(Clone, Debug)]
pub(super) struct CallOptions {
    pub choice: ToolChoice,
    /// What may be called.
    pub offered: Arc<[ClientTool]>,
    pub ids: CallIds,
    pub at_once: AtOnce,
    /// Tools whose arguments must fit their schema. `None`: none.
    pub strict: Option<Strict>,
}

#[derive(Clone)]
pub(super) struct Strict {
    pub tools: Arc<[ClientTool]>,
    pub host: Arc<dyn ToolHost>,
}

impl fmt::Debug for Strict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strict").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// The calls of one answer.
pub(super) struct Calls {
    options: CallOptions,
    known: Vec<ClientCall>,
    /// Those that an earlier answer may have told.
    before: Vec<CallId>,
    /// How often calls may still go back to the agent.
    refusals: usize,
}

/// What becomes of calls that wait.
pub(super) enum Parking {
    /// The client sees them, and the answer ends.
    Show(Vec<ClientCall>),
    /// The client does not want them; the agent is told so, and goes on.
    Refuse(Vec<(CallId, ToolReturn)>),
    Fail(Failure),
}

/// After so many refusals the answer fails.
const MOST_REFUSALS: usize = 4;

impl Calls {
    pub(super) fn new(options: CallOptions) -> Self {
        Self { options, known: Vec::new(), before: Vec::new(), refusals: MOST_REFUSALS }
    }

    pub(super) fn ids(&self) -> CallIds {
        self.options.ids
    }

    /// A call that waits from before, whatever is offered now.
    pub(super) fn know_before(&mut self, call: ClientCall) {
        if !self.known.iter().any(|known| known.id == call.id) {
            self.before.push(call.id);
            self.known.push(call);
        }
    }

    pub(super) fn know(&mut self, call: ClientCall) {
        if !self.known.iter().any(|known| known.id == call.id) {
            self.known.push(call);
        }
    }

    pub(super) fn park(&mut self, waiting: &[CallId]) -> Parking {
        let calls = waiting.iter().filter_map(|id| self.known.iter().find(|call| call.id == *id));
        let mut calls: Vec<ClientCall> = calls.cloned().collect();
        if calls.is_empty() {
            return Parking::Fail(Failure::new(FailureKind::Internal, "the agent waits for a call that nobody knows"));
        }
        let refused: Vec<_> = calls.iter().filter_map(|call| Some((call.id, self.refusal(call)?))).collect();
        if !refused.is_empty() {
            return match self.refusals.checked_sub(1) {
                Some(left) => {
                    self.refusals = left;
                    Parking::Refuse(refused)
                }
                None => self.too_many(calls),
            };
        }
        if self.options.at_once == AtOnce::One {
            // The others wait: they are told again once this one has its result.
            calls.truncate(1);
        }
        Parking::Show(calls)
    }

    /// Why the agent gets the call back.
    fn refusal(&self, call: &ClientCall) -> Option<ToolReturn> {
        if self.options.choice == ToolChoice::Never {
            return Some(ToolReturn::failed("the client wants no more calls of tools; answer with what is known"));
        }
        if !self.may_be_called(call) {
            let message = format!("the client does not offer `{}` any more; answer without it", call.tool);
            return Some(ToolReturn::failed(message.as_str()));
        }
        let strict = self.options.strict.as_ref()?;
        let tool = strict.tools.iter().find(|tool| tool.name == call.tool)?;
        let spec = FormatSpec { name: None, description: None, schema: Some(tool.schema.clone()?) };
        let form = strict.host.format(&spec).ok()?;
        let wrong = form.find_in(&String::from_utf8_lossy(&call.arguments.0)).err()?;
        Some(ToolReturn::failed(format!("the arguments do not fit the tool's schema: {wrong}; call it again")))
    }

    fn may_be_called(&self, call: &ClientCall) -> bool {
        self.before.contains(&call.id) || self.options.offered.iter().any(|tool| tool.name == call.tool)
    }

    fn too_many(&self, calls: Vec<ClientCall>) -> Parking {
        if self.options.choice == ToolChoice::Never {
            let message = "the agent goes on calling tools, which the request does not allow; allow them or ask anew";
            return Parking::Fail(Failure::new(FailureKind::LimitReached, message));
        }
        if let Some(call) = calls.iter().find(|call| !self.may_be_called(call)) {
            let message = format!(
                "the agent goes on calling `{}`, which the request does not offer; offer it or ask anew",
                call.tool
            );
            return Parking::Fail(Failure::new(FailureKind::LimitReached, message));
        }
        // The client's own check will say the same.
        Parking::Show(calls)
    }
}
