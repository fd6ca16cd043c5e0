//! From a conversation to a turn that runs: in the session that holds it, in the one the client named, or in a new
//! one that gets it folded into one prompt.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::error::Error;
use gembridge_core::exchange::{Claim, FittedHistory, Owner, fit};
use gembridge_core::log::Pace;
use gembridge_core::model::{
    AgentName, CallId, ClientCall, ClientId, Content, Failure, FailureKind, Message, Prompt, ToolReturn, TurnId,
};
use gembridge_core::session::{Footing, GiveBack, SessionHandle, Submission, Unanswered, Viewer};
use gembridge_core::tool_host::Offer;

use super::queue_clock::QueueClock;
use super::resume::{GoingOn, Resume};
use super::turn::{LiveTurn, Start};
use super::{OpenAi, decode};
use crate::catalog::Certainty;
use crate::problem::{Kind, Problem};

/// How one answer is to be begun.
pub(super) struct Plan {
    pub owner: Owner,
    pub route: Route,
    pub by: ClientId,
    /// Whether the model is known to exist.
    pub certainty: Certainty,
    /// What the agent is offered.
    pub offer: Offer,
    /// What it is told beside the prompt.
    pub instruction: Option<String>,
    /// The request, to be read again should the session turn out to have forgotten.
    pub body: Bytes,
}

pub(super) enum Route {
    /// The session that holds the history gets what is new.
    Continue {
        claim: Claim,
        prompt: Prompt,
    },
    /// The session that the client named gets what is new; `after` is the turn it is known to stand at.
    Pinned {
        handle: SessionHandle,
        after: Option<TurnId>,
        prompt: Prompt,
        /// The same as it stands beside results of calls.
        beside: Vec<Content>,
    },
    New {
        prompt: Prompt,
    },
    /// The turn that waits for these results goes on. If none does: the session that the client named, or a new one
    /// that hears everything.
    Resume {
        resume: Box<Resume>,
        otherwise: Option<Box<Route>>,
    },
}

/// A turn with the agent at work, and what had to be changed to get there.
pub(super) struct Begun {
    pub turn: LiveTurn,
    pub owner: Owner,
    /// Messages that the agent was not told, where that was not planned.
    pub left_out: usize,
    /// The agent refused the model, and its default took over.
    pub default_model: bool,
    /// Calls that wait from before.
    pub waiting: Vec<ClientCall>,
    pub again: Again,
}

/// What another turn of the same answer needs.
#[derive(Clone)]
pub(super) struct Again {
    offer: Offer,
    by: ClientId,
    clock: QueueClock,
}

pub(super) async fn begin(app: Arc<OpenAi>, plan: Plan, clock: QueueClock) -> Result<Begun, Problem> {
    let Plan { owner, route, by, certainty, offer, instruction, body } = plan;
    let desk = Desk { app: &app, by, offer, instruction, clock };
    match desk.take(route, &owner, &body).await? {
        Taken::Begun(begun) => Ok(*begun),
        Taken::Anew { prompt, left_out } => desk.begin_anew(owner, certainty, prompt, left_out).await,
    }
}

/// What came of a route.
enum Taken {
    Begun(Box<Begun>),
    /// A new session hears everything.
    Anew {
        prompt: Prompt,
        left_out: usize,
    },
}

/// What came of a prompt in the session that the client named.
enum Pinned {
    Started(LiveTurn),
    /// The turn before it waits for results: what the client says goes there.
    BehindCalls,
    /// Its agent cannot be offered what this request needs.
    NeedsNewSession,
}

/// Asks the agent again in the same session, since its answer is not what was demanded.
pub(super) async fn ask_again(
    app: Arc<OpenAi>,
    turn: LiveTurn,
    owner: Owner,
    again: Again,
    prompt: Prompt,
) -> Result<Begun, Problem> {
    let (handle, after) = (turn.handle().clone(), turn.id());
    let mut turn = turn;
    turn.ended();
    let clock = again.clock.clone();
    let desk = Desk { app: &app, by: again.by, offer: again.offer.clone(), instruction: None, clock };
    match desk.prompt_after(&handle, after, prompt).await? {
        Some(turn) => Ok(Begun { turn, owner, left_out: 0, default_model: false, waiting: Vec::new(), again }),
        None => Err(Error::MovedOn.into()),
    }
}

/// Gives back calls that the client does not want; the turn goes on.
pub(super) async fn refuse_calls(
    turn: LiveTurn,
    owner: Owner,
    again: Again,
    results: Vec<(CallId, ToolReturn)>,
) -> Result<Begun, Problem> {
    let refused = GiveBack { results, unanswered: Unanswered::Wait, by: again.by };
    let waiting = turn.handle().give_back(refused).await?.waiting;
    Ok(Begun { turn, owner, left_out: 0, default_model: false, waiting, again })
}

pub(super) struct Desk<'a> {
    pub(super) app: &'a Arc<OpenAi>,
    pub(super) by: ClientId,
    pub(super) offer: Offer,
    instruction: Option<String>,
    pub(super) clock: QueueClock,
}

impl Desk<'_> {
    async fn take(&self, route: Route, owner: &Owner, body: &Bytes) -> Result<Taken, Problem> {
        let turn = match route {
            Route::New { prompt } => return Ok(Taken::Anew { prompt, left_out: 0 }),
            Route::Continue { claim, prompt } => self.go_on(claim, owner, prompt).await?,
            Route::Pinned { handle, after, prompt, beside } => loop {
                if let Some(turn) = self.go_on_without_results(&handle, beside.clone()).await? {
                    break Some(turn);
                }
                match self.go_on_pinned(&handle, after, prompt.clone(), (owner, body)).await? {
                    Pinned::Started(turn) => break Some(turn),
                    Pinned::NeedsNewSession => break None,
                    Pinned::BehindCalls => {}
                }
            },
            Route::Resume { resume, otherwise } => {
                if let Some(GoingOn { turn, owner, waiting }) = self.resume(*resume, owner).await? {
                    return Ok(Taken::Begun(Box::new(Begun { waiting, ..self.begun(turn, owner) })));
                }
                tracing::info!(agent = %owner.agent, "nobody waits for these results any more; the history is told anew");
                match otherwise {
                    Some(route) => return Box::pin(self.take(*route, owner, body)).await,
                    None => None,
                }
            }
        };
        if let Some(turn) = turn {
            return Ok(Taken::Begun(Box::new(self.begun(turn, owner.clone()))));
        }
        let folded = refold(self.app, owner, body)?;
        Ok(Taken::Anew { prompt: folded.prompt, left_out: folded.left_out })
    }

    async fn begin_anew(
        &self,
        mut owner: Owner,
        certainty: Certainty,
        mut prompt: Prompt,
        left_out: usize,
    ) -> Result<Begun, Problem> {
        let mut default_model = false;
        loop {
            // Kept for a second attempt only where there may be one.
            let spare = (certainty != Certainty::Listed && !default_model).then(|| prompt.clone());
            let (session, failure) = match self.start_new(&owner, prompt).await? {
                Err(never) => never,
                Ok(mut turn) => match self.refused(&mut turn, spare.is_some()).await? {
                    Some(failure) => (turn.handle().clone(), failure),
                    None => return Ok(Begun { left_out, default_model, ..self.begun(turn, owner) }),
                },
            };
            match spare {
                Some(spare) if owner.model.is_some() && is_about_the_model(&failure) => {
                    self.app.refused_model(&owner, certainty, &failure)?;
                    // Nothing was said in it, and the other has the same prompt: shown beside it, it would only puzzle.
                    self.app.put_away(vec![session]);
                    owner.model = None;
                    default_model = true;
                    prompt = spare;
                }
                Some(_) | None => return Err(failure.into()),
            }
        }
    }

    fn begun(&self, turn: LiveTurn, owner: Owner) -> Begun {
        let again = Again { offer: self.offer.clone(), by: self.by, clock: self.clock.clone() };
        let left_out = turn.left_out();
        Begun { turn, owner, left_out, default_model: false, waiting: Vec::new(), again }
    }

    /// `None`: the session is not what it was; begin anew.
    async fn go_on(&self, claim: Claim, owner: &Owner, prompt: Prompt) -> Result<Option<LiveTurn>, Problem> {
        let Some(held) = claim.spend() else { return Ok(None) };
        let viewer = Viewer::Principal(owner.principal.clone());
        let Ok(handle) = self.app.sessions.get(held.session, &viewer).await else { return Ok(None) };
        // Somebody at another face may have given it another model since.
        if owner.model.is_some() && handle.owner().model != owner.model {
            return Ok(None);
        }
        self.prompt_after(&handle, held.turn, prompt).await
    }

    async fn go_on_pinned(
        &self,
        handle: &SessionHandle,
        after: Option<TurnId>,
        prompt: Prompt,
        (owner, body): (&Owner, &Bytes),
    ) -> Result<Pinned, Problem> {
        let (footing, prompt, left_out) = match after {
            // What its agent has forgotten, the session tells it.
            None => (Footing::Any, prompt, 0),
            Some(after) => {
                if let Some(turn) = self.prompt_after(handle, after, prompt).await? {
                    return Ok(Pinned::Started(turn));
                }
                // The client's history is that of the session: its agent hears it as the client tells it.
                let FittedHistory { prompt, left_out } = refold(self.app, owner, body)?;
                (Footing::Anew, prompt, left_out)
            }
        };
        let mut turn = match self.prompt(handle, footing, prompt).await {
            Ok(turn) => turn,
            Err(Error::MovedOn) => return Ok(Pinned::NeedsNewSession),
            Err(error) => return Err(error.into()),
        };
        turn.leave_out(left_out);
        match turn.start(&self.clock).await? {
            Start::Started => Ok(Pinned::Started(turn)),
            Start::Never(failure) => Err(failure.into()),
            Start::BehindCalls => {
                turn.withdraw().await?;
                Ok(Pinned::BehindCalls)
            }
        }
    }

    /// `None`: somebody else went on with it, or its agent has forgotten.
    async fn prompt_after(
        &self,
        handle: &SessionHandle,
        after: TurnId,
        prompt: Prompt,
    ) -> Result<Option<LiveTurn>, Problem> {
        let mut turn = match self.prompt(handle, Footing::RightAfter(after), prompt).await {
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
    ) -> Result<Result<LiveTurn, (SessionHandle, Failure)>, Problem> {
        let ahead = self.app.fresh_session(owner).await?;
        let mut turn = match self.prompt(&ahead, Footing::Any, prompt.clone()).await {
            // One made ahead may have been put away the moment before: nothing was said in it, so another will do.
            Err(Error::Closed) => self.prompt(&self.app.create(owner).await?, Footing::Any, prompt).await?,
            prompted => prompted?,
        };
        Ok(match turn.start(&self.clock).await? {
            Start::Started => {
                self.app.make_spare(owner);
                Ok(turn)
            }
            Start::Never(failure) => Err((turn.handle().clone(), failure)),
            // Somebody else prompted a session that only this request knows.
            Start::BehindCalls => return Err(Error::MovedOn.into()),
        })
    }

    /// Some agents take any name for a model, and fail at the prompt. Only where another model may answer instead is it
    /// worth the wait for the first sign of the agent.
    async fn refused(&self, turn: &mut LiveTurn, is_replaceable: bool) -> Result<Option<Failure>, Problem> {
        if !is_replaceable {
            return Ok(None);
        }
        Ok(turn.silent_failure(is_of_no_model).await?)
    }

    /// Attaches and prompts in one go: the session sees both at once.
    ///
    /// Nothing here waits for the disk. The client keeps its own history and is promised nothing about ours; what it
    /// sees of the answer has been written before.
    async fn prompt(&self, handle: &SessionHandle, footing: Footing, mut prompt: Prompt) -> Result<LiveTurn, Error> {
        prompt.content.extend(self.instruction.as_deref().map(Content::text));
        let submission = Submission { prompt, by: self.by, footing, offer: Some(self.offer.clone()) };
        let (accepted, attachment) = handle.converse(submission, Pace::Own).await?;
        let (store, tasks) = (Arc::clone(self.app.sessions.store()), self.app.tasks.clone());
        match accepted.is_admitted {
            true => self.clock.admit(),
            false => self.clock.wait(),
        }
        Ok(LiveTurn::new(handle.clone(), accepted.turn, attachment, store, tasks))
    }
}

/// Reads the whole conversation once more, for an agent that has not heard it.
fn refold(app: &OpenAi, owner: &Owner, body: &Bytes) -> Result<FittedHistory, Problem> {
    let request = decode::parse(body)?;
    let conversation = decode::conversation(&request, decode::Source(body))?;
    Ok(fit(&app.tellable(&conversation, &owner.agent), app.config.fold_budget))
}

/// Whether another model would have been taken.
fn is_about_the_model(failure: &Failure) -> bool {
    // An agent that does not read its list of tools cannot do what was asked either; no model helps there.
    matches!(failure.kind, FailureKind::Unsupported | FailureKind::Refused { .. })
        && !failure.message.contains("list of tools")
}

/// Providers say in words that they do not have a model.
fn is_of_no_model(failure: &Failure) -> bool {
    let message = failure.message.to_lowercase();
    let words = ["not found", "not_found", "is not supported", "does not exist", "unknown model"];
    matches!(failure.kind, FailureKind::Refused { .. })
        && message.contains("model")
        && words.iter().any(|words| message.contains(words))
}

impl OpenAi {
    /// The conversation as the agent can be told it in a prompt. Of one that has not said yet what it takes, nothing but
    /// text is expected.
    pub(super) fn tellable<'c>(&self, conversation: &'c [Message], agent: &AgentName) -> Cow<'c, [Message]> {
        decode::for_prompts(conversation, self.catalog.abilities(agent).unwrap_or_default())
    }

    /// The agent does not have the model after all.
    fn refused_model(&self, owner: &Owner, certainty: Certainty, failure: &Failure) -> Result<(), Problem> {
        let model = owner.model.as_deref().unwrap_or_default();
        if let Some(model) = &owner.model {
            self.catalog.refuse(&owner.agent, model);
        }
        if self.catalog.is_strict() && certainty == Certainty::Tentative {
            let message = format!("agent `{}` does not have the model `{model}`: {failure}", owner.agent);
            return Err(Problem { kind: Kind::NotFound, message, param: Some("model".into()) });
        }
        tracing::warn!(agent = %owner.agent, model, %failure, "the agent refused the model; its default answers");
        Ok(())
    }
}
