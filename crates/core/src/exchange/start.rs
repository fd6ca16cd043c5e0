//! From a plan to a turn that runs: in the session that holds the conversation, in the one the client named, or in a new
//! one that hears all of it.

use std::sync::Arc;

use super::Exchanges;
use super::catalog::Certainty;
use super::conversations::{Claim, Owner};
use super::error::ExchangeError;
use super::history::{FittedHistory, fit};
use super::plan::{AnswerPlan, Route};
use super::queue_clock::QueueClock;
use super::repeats::{SentRequest, can_be_told_again};
use super::resume::GoingOn;
use super::started_turn::{Start, StartedTurn};
use crate::driver::SlashCommands;
use crate::error::Error;
use crate::log::Backpressure;
use crate::model::{CallId, ClientCall, ClientId, Content, Failure, FailureKind, Message, Prompt, ToolReturn, TurnId};
use crate::session::{NewSession, Precondition, SessionHandle, Submission, SubmitResults, Unanswered, Viewer};
use crate::tool_host::Offer;

/// A turn with the agent at work, and what had to be changed to get there.
pub(super) struct StartedAnswer {
    pub turn: StartedTurn,
    pub owner: Owner,
    /// Messages that the agent was not told, where that was not planned.
    pub left_out: usize,
    /// The agent refused the model, and its default took over.
    pub default_model: bool,
    /// The request began this turn when it was sent before.
    pub repeated: bool,
    /// Calls that wait from before.
    pub waiting: Vec<ClientCall>,
    pub retry: RetryContext,
}

/// What another turn of the same answer needs.
#[derive(Clone)]
pub(super) struct RetryContext {
    offer: Offer,
    by: ClientId,
    clock: QueueClock,
}

pub(super) async fn begin(
    app: Arc<Exchanges>,
    plan: AnswerPlan,
    clock: QueueClock,
    sent: Option<SentRequest>,
) -> Result<StartedAnswer, ExchangeError> {
    let AnswerPlan { owner, route, by, certainty, offer, instruction, history, unknown } = plan;
    let starter = TurnStarter { app: &app, by, offer, instruction, clock };
    if let Some(sent) = sent
        && let Some(answer) = starter.repeat(&owner, sent).await?
    {
        return Ok(answer);
    }
    if let (Some(cluster), Some(history)) = (&app.cluster, unknown)
        && let Some(node) = cluster.find(&owner, history).await.map_err(Error::from)?
    {
        return Err(Error::Elsewhere(node).into());
    }
    let asked = sent.map(|sent| (owner.clone(), sent));
    let answer = match starter.take(route, &owner, &history).await? {
        Routed::Started(answer) => *answer,
        Routed::NeedsNewSession { prompt, left_out } => starter.begin_anew(owner, certainty, prompt, left_out).await?,
    };
    if let Some((owner, sent)) = asked {
        app.repeats.note(&owner, sent, answer.turn.place());
    }
    Ok(answer)
}

/// What came of a route.
enum Routed {
    Started(Box<StartedAnswer>),
    /// A new session hears everything.
    NeedsNewSession {
        prompt: Prompt,
        left_out: usize,
    },
}

/// What came of a prompt in the session that the client named.
enum Named {
    Started(StartedTurn),
    /// The turn before it waits for results: what the client says goes there.
    BehindCalls,
    /// Its agent cannot be offered what this request needs.
    NeedsNewSession,
}

/// Asks the agent again in the same session, since its answer is not what was demanded.
pub(super) async fn ask_again(
    app: Arc<Exchanges>,
    turn: StartedTurn,
    owner: Owner,
    retry: RetryContext,
    prompt: Prompt,
) -> Result<StartedAnswer, ExchangeError> {
    let (handle, after) = (turn.handle().clone(), turn.id());
    let mut turn = turn;
    turn.ended();
    let clock = retry.clock.clone();
    let starter = TurnStarter { app: &app, by: retry.by, offer: retry.offer.clone(), instruction: None, clock };
    match starter.prompt_after(&handle, after, prompt).await? {
        Some(turn) => Ok(StartedAnswer {
            turn,
            owner,
            left_out: 0,
            default_model: false,
            repeated: false,
            waiting: Vec::new(),
            retry,
        }),
        None => Err(Error::MovedOn.into()),
    }
}

/// Gives back calls that the client does not want; the turn goes on.
pub(super) async fn refuse_calls(
    turn: StartedTurn,
    owner: Owner,
    retry: RetryContext,
    results: Vec<(CallId, ToolReturn)>,
) -> Result<StartedAnswer, ExchangeError> {
    let refused = SubmitResults { results, unanswered: Unanswered::Wait, by: retry.by };
    let waiting = turn.handle().submit_results(refused).await?.waiting;
    Ok(StartedAnswer { turn, owner, left_out: 0, default_model: false, repeated: false, waiting, retry })
}

pub(super) struct TurnStarter<'a> {
    pub(super) app: &'a Arc<Exchanges>,
    pub(super) by: ClientId,
    pub(super) offer: Offer,
    instruction: Option<String>,
    pub(super) clock: QueueClock,
}

impl TurnStarter<'_> {
    /// The turn that the same request began before, where that may still be told.
    async fn repeat(&self, owner: &Owner, sent: SentRequest) -> Result<Option<StartedAnswer>, ExchangeError> {
        let Some(place) = self.app.repeats.find(owner, sent) else { return Ok(None) };
        let viewer = Viewer::Principal(owner.principal.clone());
        let Ok(handle) = self.app.sessions.get(place.session, &viewer).await else { return Ok(None) };
        let logs = self.app.sessions.logs();
        if !can_be_told_again(&handle, logs.as_ref(), place).await? {
            return Ok(None);
        }
        tracing::info!(session = %place.session, "a request was sent again; the turn that it began answers it");
        let owner = handle.owner();
        let mut turn = StartedTurn::unread_turn(handle, place.turn, logs, self.app.tasks.clone());
        turn.read_after(place.after);
        self.clock.admit();
        Ok(Some(StartedAnswer { repeated: true, ..self.started(turn, owner) }))
    }

    async fn take(&self, route: Route, owner: &Owner, history: &[Message]) -> Result<Routed, ExchangeError> {
        let turn = match route {
            Route::New { prompt } => return Ok(Routed::NeedsNewSession { prompt, left_out: 0 }),
            Route::Continue { claim, prompt } => self.go_on(claim, owner, prompt).await?,
            Route::Named { handle, after, prompt, beside } => loop {
                if let Some(turn) = self.go_on_without_results(&handle, beside.clone()).await? {
                    break Some(turn);
                }
                match self.go_on_named(&handle, after, prompt.clone(), (owner, history)).await? {
                    Named::Started(turn) => break Some(turn),
                    Named::NeedsNewSession => break None,
                    Named::BehindCalls => {}
                }
            },
            Route::Resume { resume, otherwise } => {
                if let Some(GoingOn { turn, owner, waiting }) = self.resume(*resume, owner).await? {
                    return Ok(Routed::Started(Box::new(StartedAnswer { waiting, ..self.started(turn, owner) })));
                }
                tracing::info!(agent = %owner.agent, "nobody waits for these results any more; the history is told anew");
                match otherwise {
                    Some(route) => return Box::pin(self.take(*route, owner, history)).await,
                    None => None,
                }
            }
        };
        if let Some(turn) = turn {
            return Ok(Routed::Started(Box::new(self.started(turn, owner.clone()))));
        }
        let folded = self.refit(owner, history);
        Ok(Routed::NeedsNewSession { prompt: folded.prompt, left_out: folded.left_out })
    }

    async fn begin_anew(
        &self,
        mut owner: Owner,
        certainty: Certainty,
        mut prompt: Prompt,
        left_out: usize,
    ) -> Result<StartedAnswer, ExchangeError> {
        let mut default_model = false;
        loop {
            // Kept for a second attempt only where there may be one.
            let spare = (certainty != Certainty::Listed && !default_model).then(|| prompt.clone());
            let (session, failure) = match self.start_new(&owner, prompt).await? {
                Err(never) => never,
                Ok(mut turn) => match self.refused(&mut turn, spare.is_some()).await? {
                    Some(failure) => (turn.handle().clone(), failure),
                    None => return Ok(StartedAnswer { left_out, default_model, ..self.started(turn, owner) }),
                },
            };
            match spare {
                Some(spare) if owner.model.is_some() && is_about_the_model(&failure) => {
                    self.app.refused_model(&owner, certainty, &failure)?;
                    // Nothing was said in it, and the other has the same prompt: listed beside it, it would be a duplicate.
                    self.app.discard(session);
                    owner.model = None;
                    default_model = true;
                    prompt = spare;
                }
                Some(_) | None => return Err(failure.into()),
            }
        }
    }

    fn started(&self, turn: StartedTurn, owner: Owner) -> StartedAnswer {
        let retry = RetryContext { offer: self.offer.clone(), by: self.by, clock: self.clock.clone() };
        let left_out = turn.left_out();
        StartedAnswer { turn, owner, left_out, default_model: false, repeated: false, waiting: Vec::new(), retry }
    }

    /// The whole conversation, for an agent that has not heard it.
    fn refit(&self, owner: &Owner, history: &[Message]) -> FittedHistory {
        fit(&self.app.tellable(history, &owner.agent), self.app.config.history_budget)
    }

    /// `None`: the session is not what it was; begin anew.
    async fn go_on(&self, claim: Claim, owner: &Owner, prompt: Prompt) -> Result<Option<StartedTurn>, ExchangeError> {
        let Some(held) = claim.spend() else { return Ok(None) };
        let viewer = Viewer::Principal(owner.principal.clone());
        let Ok(handle) = self.app.sessions.get(held.session, &viewer).await else { return Ok(None) };
        // Somebody over another API may have given it another model since.
        if owner.model.is_some() && handle.owner().model != owner.model {
            return Ok(None);
        }
        self.prompt_after(&handle, held.turn, prompt).await
    }

    async fn go_on_named(
        &self,
        handle: &SessionHandle,
        after: Option<TurnId>,
        prompt: Prompt,
        (owner, history): (&Owner, &[Message]),
    ) -> Result<Named, ExchangeError> {
        let (precondition, prompt, left_out) = match after {
            // What its agent has forgotten, the session tells it.
            None => (Precondition::Any, prompt, 0),
            Some(after) => {
                if let Some(turn) = self.prompt_after(handle, after, prompt).await? {
                    return Ok(Named::Started(turn));
                }
                // The client's history is that of the session: its agent hears it as the client tells it.
                let FittedHistory { prompt, left_out } = self.refit(owner, history);
                (Precondition::Anew, prompt, left_out)
            }
        };
        let mut turn = match self.prompt(handle, precondition, prompt).await {
            Ok(turn) => turn,
            Err(Error::MovedOn) => return Ok(Named::NeedsNewSession),
            Err(error) => return Err(error.into()),
        };
        turn.leave_out(left_out);
        match turn.start(&self.clock).await? {
            Start::Started => Ok(Named::Started(turn)),
            Start::Never(failure) => Err(failure.into()),
            Start::BehindCalls => {
                turn.withdraw().await?;
                Ok(Named::BehindCalls)
            }
        }
    }

    /// `None`: somebody else went on with it, or its agent has forgotten.
    async fn prompt_after(
        &self,
        handle: &SessionHandle,
        after: TurnId,
        prompt: Prompt,
    ) -> Result<Option<StartedTurn>, ExchangeError> {
        let mut turn = match self.prompt(handle, Precondition::RightAfter(after), prompt).await {
            Ok(turn) => turn,
            Err(Error::MovedOn | Error::Closed | Error::UnknownSession(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match turn.start(&self.clock).await? {
            Start::Started => Ok(Some(turn)),
            Start::BehindCalls => {
                turn.withdraw().await?;
                Ok(None)
            }
            Start::Never(failure) => {
                tracing::debug!(session = %handle.id(), %failure, "a session could not go on; a new one takes over");
                Ok(None)
            }
        }
    }

    /// An error within: the session in which the agent never got the prompt, and why.
    async fn start_new(
        &self,
        owner: &Owner,
        prompt: Prompt,
    ) -> Result<Result<StartedTurn, (SessionHandle, Failure)>, ExchangeError> {
        let session = self.app.create(owner).await?;
        let mut turn = self.prompt(&session, Precondition::Any, prompt).await?;
        Ok(match turn.start(&self.clock).await? {
            Start::Started => Ok(turn),
            Start::Never(failure) => Err((turn.handle().clone(), failure)),
            // Somebody else prompted a session that only this request knows.
            Start::BehindCalls => return Err(Error::MovedOn.into()),
        })
    }

    /// Some agents take any name for a model, and fail at the prompt. Only where another model may answer instead is it
    /// worth the wait for the first sign of the agent.
    async fn refused(&self, turn: &mut StartedTurn, is_replaceable: bool) -> Result<Option<Failure>, ExchangeError> {
        if !is_replaceable {
            return Ok(None);
        }
        Ok(turn.silent_failure(is_unknown_model).await?)
    }

    /// Attaches and prompts in one go: the session sees both at once.
    ///
    /// Nothing here waits for the disk. The client keeps its own history and is promised nothing about ours; what it
    /// sees of the answer has been written before.
    async fn prompt(
        &self,
        handle: &SessionHandle,
        precondition: Precondition,
        mut prompt: Prompt,
    ) -> Result<StartedTurn, Error> {
        prompt.content.extend(self.instruction.as_deref().map(Content::text));
        let submission = Submission { prompt, by: self.by, precondition, offer: Some(self.offer.clone()) };
        let (accepted, attachment) = handle.converse(submission, Backpressure::Own).await?;
        let (logs, tasks) = (self.app.sessions.logs(), self.app.tasks.clone());
        if accepted.is_admitted {
            self.clock.admit();
        } else {
            self.clock.wait();
        }
        let turn = StartedTurn::new(handle.clone(), accepted.turn, attachment, logs, tasks);
        self.clock.accept(turn.place());
        Ok(turn)
    }
}

/// Whether another model would have been taken.
fn is_about_the_model(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Unsupported | FailureKind::Refused { .. } | FailureKind::UnknownModel { .. })
}

fn is_unknown_model(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::UnknownModel { .. })
}

impl Exchanges {
    pub(super) async fn create(&self, owner: &Owner) -> Result<SessionHandle, Error> {
        let new = NewSession {
            principal: owner.principal.clone(),
            agent: owner.agent.clone(),
            workspace: None,
            model: owner.model.clone(),
            mode: None,
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        };
        self.sessions.create(new).await
    }

    /// Deletes a session in which nothing was said, beside whatever else happens.
    pub(super) fn discard(self: &Arc<Self>, unused: SessionHandle) {
        let app = Arc::clone(self);
        self.tasks.spawn(async move {
            let deleted = match unused.close().await {
                // At the end of the gateway it is closed before it comes here.
                Ok(()) | Err(Error::Closed) => app.sessions.store().delete(unused.id()).await.map_err(Error::Store),
                Err(error) => Err(error),
            };
            if let Err(error) = deleted {
                tracing::debug!(session = %unused.id(), %error, "an unused session is left behind");
            }
        });
    }

    /// The agent does not have the model after all.
    fn refused_model(&self, owner: &Owner, certainty: Certainty, failure: &Failure) -> Result<(), ExchangeError> {
        let model = owner.model.as_deref().unwrap_or_default();
        if let Some(model) = &owner.model {
            self.catalog.refuse(&owner.agent, model);
        }
        if self.catalog.is_strict() && certainty == Certainty::Tentative {
            let message = format!("agent `{}` does not have the model `{model}`: {failure}", owner.agent);
            return Err(ExchangeError::UnknownModel(message));
        }
        tracing::warn!(agent = %owner.agent, model, %failure, "the agent refused the model; its default answers");
        Ok(())
    }
}
