//! What was said before a request that does not repeat it: in memory, or in the log of the session that an id names.

use std::sync::Arc;

use gembridge_core::error::Error;
use gembridge_core::exchange::LoggedHistory;
use gembridge_core::model::{CallId, CallName, Message, Role};

use super::Responses;
use super::decode::{Call, Conversation, RequestOptions};
use super::error::{unknown_conversation, unknown_previous};
use super::kept::{KeptResponses, Stage};
use super::response_id::ResponseId;
use crate::dialect::Caller;
use crate::problem::Problem;

impl Responses {
    /// `None`: the request says everything itself. `local` is what a connection keeps for itself.
    pub(super) async fn past(
        &self,
        caller: &Caller,
        options: &RequestOptions,
        said: &Conversation,
        local: Option<&Arc<KeptResponses>>,
    ) -> Result<Option<Conversation>, Problem> {
        if let Some(previous) = options.previous.as_ref().or(options.referenced.as_ref()) {
            return self.said_until(caller, options, previous, local).await.map(Some);
        }
        if let Some(conversation) = &options.conversation {
            let kept = self.kept.get(conversation, &caller.identity.principal);
            let kept = kept.filter(|kept| matches!(kept.stage, Stage::Conversation(_)));
            let kept = kept.ok_or_else(|| unknown_conversation(conversation))?;
            return Ok(Some((*kept.said).clone()));
        }
        let is_repeated = |id: &str| said.calls.iter().any(|call| call.id == id);
        let waiting =
            said.results.iter().filter(|result| !is_repeated(&result.id)).find_map(|result| result.id.parse().ok());
        let Some(call): Option<CallId> = waiting else { return Ok(None) };
        let exchanges = &self.dialects.exchanges;
        match exchanges.history_of_calls(call.session(), &caller.identity.viewer()).await {
            Ok(logged) => Ok(Some(conversation(logged, options.echo.instructions.as_deref()))),
            // The turn is gone: the results are told for what they are.
            Err(Error::UnknownSession(_) | Error::Closed) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What was said up to the end of a response.
    async fn said_until(
        &self,
        caller: &Caller,
        options: &RequestOptions,
        previous: &str,
        local: Option<&Arc<KeptResponses>>,
    ) -> Result<Conversation, Problem> {
        let unknown = || unknown_previous(previous);
        let principal = &caller.identity.principal;
        if let Some(found) =
            local.and_then(|local| local.get(previous, principal)).or_else(|| self.kept.get(previous, principal))
        {
            return match found.stage {
                Stage::Over(_) => Ok((*found.said).clone()),
                Stage::Background(run) if run.is_over() => Ok((*found.said).clone()),
                Stage::Background(_) | Stage::Conversation(_) => Err(unknown()),
            };
        }
        let id: ResponseId = previous.parse().map_err(|_| unknown())?;
        if !id.is_stored {
            return Err(unknown());
        }
        let viewer = caller.identity.viewer();
        match self.dialects.exchanges.history_of_answer(id.session, id.after, &viewer).await {
            Ok(Some(logged)) => Ok(conversation(logged, options.echo.instructions.as_deref())),
            Ok(None) | Err(Error::UnknownSession(_)) => Err(unknown()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A log's history in the words of this dialect. The log has the instructions of its first request as what the system said.
pub(super) fn conversation(logged: LoggedHistory, instructions: Option<&str>) -> Conversation {
    let LoggedHistory { mut messages, calls, .. } = logged;
    let instructions = instructions.map(|text| Message::text(Role::System, text));
    if messages.first() == instructions.as_ref() && !messages.is_empty() {
        messages.remove(0);
    }
    let message = messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or_default();
    let call = |call: &gembridge_core::model::ClientCall| {
        let name = CallName { tool: Arc::clone(&call.tool), number: None };
        Call { id: call.id.to_string(), name, message }
    };
    Conversation { calls: calls.iter().map(call).collect(), messages, results: Vec::new() }
}
