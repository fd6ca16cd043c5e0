//! What was said before a request that does not repeat it: in memory, or in the log of the session that an id names.

use std::sync::Arc;

use gembridge_core::error::Error;
use gembridge_core::exchange::LoggedHistory;
use gembridge_core::model::{CallId, CallName, Message, Role};

use super::Responses;
use super::decode::{Call, Conversation, RequestOptions};
use super::error::unknown_previous;
use super::kept::{KeptResponses, Stage};
use super::response_id::ResponseId;
use crate::dialect::Caller;
use crate::problem::Problem;

impl Responses {
    /// `None`: the request says everything itself. `kept` is asked before what all connections share.
    pub(super) async fn past(
        &self,
        caller: &Caller,
        options: &RequestOptions,
        said: &Conversation,
        kept: &Arc<KeptResponses>,
    ) -> Result<Option<Conversation>, Problem> {
        if let Some(previous) = &options.previous {
            return self.said_until(caller, options, previous, kept).await.map(Some);
        }
        let is_repeated = |id: &str| said.calls.iter().any(|call| call.id == id);
        let waiting = said.results.iter().filter(|result| !is_repeated(&result.id)).find_map(|result| result.id.parse().ok());
        let Some(call): Option<CallId> = waiting else { return Ok(None) };
        let exchanges = &self.dialects.exchanges;
        match exchanges.history_of_calls(call.session(), &caller.identity.viewer()).await {
            Ok(logged) => Ok(Some(conversation(logged, options))),
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
        kept: &Arc<KeptResponses>,
    ) -> Result<Conversation, Problem> {
        let unknown = || unknown_previous(previous);
        let principal = &caller.identity.principal;
        if let Some(found) = kept.get(previous, principal).or_else(|| self.kept.get(previous, principal)) {
            return match found.stage {
                Stage::Over(_) => Ok((*found.said).clone()),
                Stage::Deleted => Err(unknown()),
            };
        }
        let id: ResponseId = previous.parse().map_err(|_| unknown())?;
        if !id.is_stored {
            return Err(unknown());
        }
        let viewer = caller.identity.viewer();
        match self.dialects.exchanges.history_of_answer(id.session, id.after, &viewer).await {
            Ok(Some(logged)) => Ok(conversation(logged, options)),
            Ok(None) | Err(Error::UnknownSession(_)) => Err(unknown()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A log's history in the words of this dialect. The log has the instructions of its first request as what the system said.
fn conversation(logged: LoggedHistory, options: &RequestOptions) -> Conversation {
    let LoggedHistory { mut messages, calls } = logged;
    let instructions = options.echo.instructions.as_deref().map(|text| Message::text(Role::System, text));
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
