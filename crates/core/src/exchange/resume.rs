//! Results of calls on their way to the turn that waits for them.

use std::time::Duration;

use super::conversations::{Claim, Owner};
use super::error::ExchangeError;
use super::request::{CallRef, CallResult, FollowUp};
use super::start::TurnStarter;
use super::started_turn::StartedTurn;
use crate::error::Error;
use crate::model::{CallId, ClientCall, Content, SessionId, ToolReturn, TurnId};
use crate::session::{Resumption, SessionHandle, SubmitResults, Unanswered, Viewer};

/// Results, and where they may be waited for.
pub(super) struct Resume {
    results: Results,
    unanswered: Unanswered,
    viewer: Viewer,
}

enum Results {
    /// Each id names its session.
    Of { session: SessionId, results: Vec<(CallId, ToolReturn)> },
    /// The history names the session, and the tools its calls.
    ByTool { claim: Claim, results: Vec<(String, ToolReturn)> },
}

/// A turn that goes on.
pub(super) struct GoingOn {
    pub turn: StartedTurn,
    pub owner: Owner,
    /// Calls that still wait.
    pub waiting: Vec<ClientCall>,
}

impl Resume {
    /// `None`: whatever these are results of, it is not waited for here.
    pub(super) fn new(follow_up: FollowUp, viewer: Viewer, claim: impl FnOnce() -> Option<Claim>) -> Option<Self> {
        let FollowUp { mut results, unanswered, more } = follow_up;
        let unanswered = if more.is_empty() {
            Unanswered::Wait
        } else {
            let gone_on = |call| CallResult { call, result: ToolReturn::failed(WENT_ON) };
            results.extend(unanswered.into_iter().map(gone_on));
            // The agent's turn still runs, and takes nothing but results until it ends: what the client said besides
            // goes in with the last of them.
            results.last_mut()?.result.content.extend(more);
            Unanswered::Close
        };
        let results = match results.first()?.call {
            CallRef::Id(_) => by_id(results)?,
            CallRef::Tool(_) => Results::ByTool { claim: claim()?, results: by_tool(results) },
        };
        Some(Self { results, unanswered, viewer })
    }

    pub(super) fn is_of(&self, session: SessionId) -> bool {
        match &self.results {
            Results::Of { session: own, .. } => *own == session,
            Results::ByTool { .. } => true,
        }
    }
}

/// How long an agent that is offered other tools in the middle of a turn gets to read their list.
const READING: Duration = Duration::from_secs(2);

const WENT_ON: &str = "the client went on without a result for this call";

fn by_id(results: Vec<CallResult>) -> Option<Results> {
    let id = |CallResult { call, result }| match call {
        CallRef::Id(id) => id.parse().ok().map(|id: CallId| (id, result)),
        CallRef::Tool(_) => None,
    };
    let results: Vec<_> = results.into_iter().map(id).collect::<Option<_>>()?;
    let place = |id: &CallId| -> (SessionId, TurnId) { (id.session(), id.turn()) };
    let first = results.first()?.0;
    let of_one_turn = results.iter().all(|(id, _)| place(id) == place(&first));
    of_one_turn.then_some(Results::Of { session: first.session(), results })
}

fn by_tool(results: Vec<CallResult>) -> Vec<(String, ToolReturn)> {
    let tool = |CallResult { call, result }| match call {
        CallRef::Id(name) | CallRef::Tool(name) => (name, result),
    };
    results.into_iter().map(tool).collect()
}

impl TurnStarter<'_> {
    /// `None`: nobody waits for these results any more; begin anew.
    pub(super) async fn resume(&self, resume: Resume, owner: &Owner) -> Result<Option<GoingOn>, ExchangeError> {
        let Resume { results, unanswered, viewer } = resume;
        match self.submit_results(results, unanswered, &viewer, owner).await {
            Ok(going_on) => Ok(going_on),
            Err(Error::NotParked(_) | Error::UnknownSession(_) | Error::Closed | Error::MovedOn) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn submit_results(
        &self,
        results: Results,
        unanswered: Unanswered,
        viewer: &Viewer,
        owner: &Owner,
    ) -> Result<Option<GoingOn>, Error> {
        let (handle, results) = match results {
            Results::Of { session, results } => (self.app.sessions.get(session, viewer).await?, results),
            Results::ByTool { claim, results } => {
                let Some(held) = claim.spend() else { return Ok(None) };
                let handle = self.app.sessions.get(held.session, viewer).await?;
                let Some(results) = named(&handle, results).await? else { return Ok(None) };
                (handle, results)
            }
        };
        let own = handle.owner();
        // A session whose agent refused the model runs on the agent's default.
        if own.agent != owner.agent || (own.model.is_some() && own.model != owner.model) {
            return Ok(None);
        }
        let Some(turn) = results.first().map(|(id, _)| id.turn()) else { return Ok(None) };
        let (turn, waiting) = self.give(handle, turn, results, unanswered).await?;
        Ok(Some(GoingOn { turn, owner: own, waiting }))
    }

    /// What the client says to a session that it named, and that waits for results which do not come: it goes in where
    /// they would have. `None`: nothing waits.
    pub(super) async fn go_on_without_results(
        &self,
        handle: &SessionHandle,
        said: Vec<Content>,
    ) -> Result<Option<StartedTurn>, ExchangeError> {
        if !handle.awaits_results() {
            return Ok(None);
        }
        let failed = |call: &ClientCall| (call.id, ToolReturn::failed(WENT_ON));
        let mut results: Vec<_> = handle.describe().await?.parked.iter().map(failed).collect();
        let Some((last, result)) = results.last_mut() else { return Ok(None) };
        result.content.extend(said);
        let turn = last.turn();
        match self.give(handle.clone(), turn, results, Unanswered::Close).await {
            Ok((turn, _)) => Ok(Some(turn)),
            // Somebody else was faster.
            Err(Error::NotParked(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn give(
        &self,
        handle: SessionHandle,
        turn: TurnId,
        results: Vec<(CallId, ToolReturn)>,
        unanswered: Unanswered,
    ) -> Result<(StartedTurn, Vec<ClientCall>), Error> {
        // What may be called from here on is what this request says. Not every agent looks again; it is told by the
        // failure of its call then.
        if let Ok(offered) = tokio::time::timeout(READING, handle.offer(turn, self.offer.clone())).await {
            offered?;
        }
        // From here on the turn is this client's again: one that leaves takes it along.
        let (logs, tasks) = (self.app.sessions.logs(), self.app.tasks.clone());
        let mut turn = StartedTurn::unread_turn(handle, turn, logs, tasks);
        self.clock.wait();
        let given = turn.handle().submit_results(SubmitResults { results, unanswered, by: self.by }).await;
        self.clock.admit();
        let resumed = given.inspect_err(|_| turn.ended())?;
        if resumed.how == Resumption::Rejoined {
            tracing::debug!(session = %turn.session(), "these results were given before; the answer is told again");
        }
        turn.read_after(resumed.after);
        Ok((turn, resumed.waiting))
    }
}

/// The ids of the calls that wait, by the names of their tools: where one was called several times, in the order of its calls.
async fn named(
    handle: &SessionHandle,
    results: Vec<(String, ToolReturn)>,
) -> Result<Option<Vec<(CallId, ToolReturn)>>, Error> {
    let mut waiting = handle.describe().await?.parked;
    let id = |(tool, result): (String, ToolReturn)| {
        let at = waiting.iter().position(|call| *call.tool == *tool)?;
        Some((waiting.remove(at).id, result))
    };
    Ok(results.into_iter().map(id).collect())
}
