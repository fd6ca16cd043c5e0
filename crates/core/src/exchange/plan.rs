//! From a request to what is to be done: in which session each answer begins, and on which terms.

use std::borrow::Cow;
use std::sync::Arc;

use super::Exchanges;
use super::calls::{CallOptions, Strict};
use super::catalog::{Certainty, Resolved};
use super::conversations::{Claim, Owner};
use super::error::{ExchangeError, Field};
use super::fingerprint::{Fingerprint, Mark};
use super::history::{fit, for_prompts, news};
use super::repeats::SentRequest;
use super::request::{FollowUp, NamedSession, Request, ToolChoice};
use super::required_output::RequiredOutput;
use super::resume::Resume;
use super::token_estimate;
use super::turn_reader::ReaderOptions;
use crate::model::{ClientId, ClientTool, Content, Message, Prompt, Role, TurnId, blocks_with_names};
use crate::session::{SessionHandle, Viewer};
use crate::tool_host::{Format, FormatSpec, Offer, ToolHost};

/// What is to be done, once the request is understood.
pub struct Plan {
    pub resolved: Resolved,
    pub(super) owner: Owner,
    pub(super) answers: Vec<AnswerPlan>,
    pub(super) options: ReaderOptions,
    /// Everything said so far, where the answer shall be found again.
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) left_out: usize,
    /// The request as it came, where it may find the turn that it began before.
    pub(super) sent: Option<SentRequest>,
}

impl Plan {
    /// The request as it came. Should its answer be lost on the way and the client send it again, it finds the turn.
    pub fn sent_as(&mut self, sent: SentRequest) {
        // Several answers are begun anew: which of them the client has is not known.
        self.sent = Some(sent).filter(|_| self.answers.len() == 1);
    }

    /// About how many tokens a model reads of the request.
    pub fn input_tokens(&self) -> u64 {
        token_estimate::tokens(self.options.request)
    }

    /// Whether a session is made for it.
    pub(super) fn needs_new_session(&self) -> bool {
        self.answers.iter().any(|answer| matches!(answer.route, Route::New { .. }))
    }
}

/// How one answer is to be begun.
pub(super) struct AnswerPlan {
    pub owner: Owner,
    pub route: Route,
    pub by: ClientId,
    /// Whether the model is known to exist.
    pub certainty: Certainty,
    /// What the agent is offered.
    pub offer: Offer,
    /// What it is told beside the prompt.
    pub instruction: Option<String>,
    /// What was said, should the session turn out to have forgotten it.
    pub history: Arc<[Message]>,
    /// A history that no session of this gateway holds; one of another may.
    pub unknown: Option<Mark>,
}

pub(super) enum Route {
    /// The session that holds the history gets what is new.
    Continue {
        claim: Claim,
        prompt: Prompt,
    },
    /// The session that the client named gets what is new; `after` is the turn it is known to stand at.
    Named {
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

/// What the agent is offered, and what the client insists on.
struct Constraints {
    offer: Offer,
    required: RequiredOutput,
    calls: CallOptions,
}

impl Exchanges {
    /// Who answers a request for this model, in the session that the client named where it named one.
    pub fn resolve(
        &self,
        model: &str,
        session: Option<&NamedSession>,
        answers: usize,
    ) -> Result<Resolved, ExchangeError> {
        let asked = self.catalog.resolve(model)?;
        let resolved = match session {
            Some(session) => self.resolved_in(session, &asked, model, answers)?,
            None => asked,
        };
        if resolved.fell_back {
            tracing::warn!(asked = model, answers = resolved.shown(), "another model answers than was asked for");
        }
        Ok(resolved)
    }

    /// Who answers in the session that the client named: what it was begun with.
    fn resolved_in(
        &self,
        session: &NamedSession,
        asked: &Resolved,
        name: &str,
        answers: usize,
    ) -> Result<Resolved, ExchangeError> {
        let Owner { agent, model, .. } = &session.owner;
        if *agent != asked.agent && !asked.fell_back {
            let message = format!(
                "the session belongs to agent `{agent}`, but the model is one of agent `{}`; name no session",
                asked.agent
            );
            return Err(ExchangeError::invalid(Field::Model, message));
        }
        if answers > 1 {
            let message = "a session gives one answer to a prompt; ask for one, or name no session";
            return Err(ExchangeError::invalid(Field::Answers, message));
        }
        let is_other = asked.model.is_some() && asked.model != *model;
        let fell_back = asked.fell_back || is_other;
        let resolved = Resolved { agent: agent.clone(), model: model.clone(), fell_back, certainty: asked.certainty };
        if is_other && self.catalog.is_strict() {
            let message = format!(
                "the session answers with `{}`; ask for that, or name no session to have `{name}`",
                resolved.shown()
            );
            return Err(ExchangeError::invalid(Field::Model, message));
        }
        Ok(resolved)
    }

    /// Finds the session that holds the history or waits for what comes with it, or fits it into a prompt for a new one.
    /// Nothing waits here.
    pub fn plan(&self, request: Request) -> Result<Plan, ExchangeError> {
        let Constraints { offer, required, calls } = self.constraints(&request)?;
        let Request { principal, viewer, resolved, session, history: conversation, follow_up, .. } = request;
        let owner = match &session {
            Some(session) => session.owner.clone(),
            None => Owner { principal, agent: resolved.agent.clone(), model: resolved.model.clone() },
        };
        let known = conversation.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |at| at + 1);
        let (history, new) = conversation.split_at(known);
        let told = self.tellable(&conversation, &resolved.agent);
        let mut fingerprint = self.conversations.fingerprint();
        for message in history {
            fingerprint.add(message);
        }
        let mark = fingerprint.mark();
        let claim = || self.conversations.claim(&owner, mark);
        for message in new {
            fingerprint.add(message);
        }
        let mut fingerprint = Some(fingerprint);

        let mut left_out = 0;
        let mut fitted = || {
            let fitted = fit(&told, self.config.history_budget);
            left_out = fitted.left_out;
            fitted.prompt
        };
        let resume = follow_up.and_then(|follow_up| resume(follow_up, viewer, session.as_ref(), claim));
        let is_known = || if history.is_empty() || new.is_empty() { None } else { claim() };
        let first = match (session, resume) {
            (None, Some(resume)) => Route::Resume { resume: Box::new(resume), otherwise: None },
            (None, None) => match is_known() {
                Some(claim) => Route::Continue { claim, prompt: news(new) },
                None => Route::New { prompt: fitted() },
            },
            (Some(session), resume) => {
                let id = session.handle.id();
                let stands = is_known().and_then(|claim| claim.spend_if(id));
                if stands.is_none() {
                    // What the client knows of the session and what it holds are not the same.
                    self.conversations.forget(&owner, id);
                    fingerprint = None;
                }
                let prompt = if new.is_empty() { fitted() } else { news(&told[known..]) };
                let beside = match new {
                    [] => prompt.blocks().into_owned(),
                    new => blocks_with_names(new.iter().map(Cow::Borrowed)),
                };
                let after = stands.map(|held| held.turn);
                let route = Route::Named { handle: session.handle, after, prompt, beside };
                match resume {
                    Some(resume) => Route::Resume { resume: Box::new(resume), otherwise: Some(Box::new(route)) },
                    None => route,
                }
            }
        };
        let unknown = (matches!(first, Route::New { .. }) && !history.is_empty()).then_some(mark);
        let mut routes = vec![first];
        while routes.len() < request.answers {
            routes.push(Route::New { prompt: fitted() });
        }
        let instruction = required.instruction();
        let answer = |route: Route| AnswerPlan {
            owner: owner.clone(),
            by: ClientId::fresh(),
            certainty: resolved.certainty,
            offer: offer.clone(),
            instruction: instruction.clone(),
            // A new session has all of it in its prompt.
            history: if matches!(route, Route::New { .. }) { Arc::default() } else { Arc::clone(&conversation) },
            route,
            unknown: None,
        };
        let mut answers: Vec<_> = routes.into_iter().map(answer).collect();
        if let Some(first) = answers.first_mut() {
            first.unknown = unknown;
        }
        let options = ReaderOptions {
            stop: request.stop,
            limit: request.limit,
            show_tools: self.config.show_agent_tools,
            calls,
            required,
            request: token_estimate::of_request(&conversation, &offer.tools)
                + instruction.as_deref().map_or(0, token_estimate::of_text),
        };
        Ok(Plan { resolved, owner, answers, options, fingerprint, left_out, sent: None })
    }

    /// The conversation as the agent can be told it in a prompt. Of one that has not said yet what it takes, nothing but
    /// text is expected.
    pub(super) fn tellable<'c>(
        &self,
        conversation: &'c [Message],
        agent: &crate::model::AgentName,
    ) -> Cow<'c, [Message]> {
        for_prompts(conversation, self.catalog.abilities(agent).unwrap_or_default())
    }

    /// What the client's tools and the form it wants come to.
    fn constraints(&self, request: &Request) -> Result<Constraints, ExchangeError> {
        let host = self.sessions.tool_host();
        let offered = &request.tools.offered;
        let tools: Arc<[ClientTool]> = offered.iter().map(|offered| offered.tool.clone()).collect();
        if !tools.is_empty() && host.is_none() {
            let message = "this gateway does not offer a client's tools to agents";
            return Err(ExchangeError::invalid(Field::Tools, message));
        }
        let format = format(request.output.as_ref(), host)?;
        let strict: Arc<[ClientTool]> =
            offered.iter().filter(|offered| offered.strict).map(|offered| offered.tool.clone()).collect();
        let strict = host.filter(|_| !strict.is_empty()).map(|host| Strict { tools: strict, host: Arc::clone(host) });
        let required = match (request.tools.choice, &format) {
            (ToolChoice::Required, _) => RequiredOutput::Call,
            (ToolChoice::Auto | ToolChoice::Never, Some(format)) => RequiredOutput::Output(Arc::clone(format)),
            (ToolChoice::Auto | ToolChoice::Never, None) => RequiredOutput::Nothing,
        };
        let calls = CallOptions {
            choice: request.tools.choice,
            offered: Arc::clone(&tools),
            ids: request.tools.call_ids,
            at_once: request.tools.at_once,
            strict,
        };
        Ok(Constraints { offer: Offer { tools, format }, required, calls })
    }
}

/// Where the results may be waited for; a client that named a session means that one.
fn resume(
    follow_up: FollowUp,
    viewer: Viewer,
    session: Option<&NamedSession>,
    claim: impl FnOnce() -> Option<Claim>,
) -> Option<Resume> {
    let resume = Resume::new(follow_up, viewer, claim)?;
    session.is_none_or(|session| resume.is_of(session.handle.id())).then_some(resume)
}

/// The form that the client wants, ready to be checked.
fn format(
    wanted: Option<&FormatSpec>,
    host: Option<&Arc<dyn ToolHost>>,
) -> Result<Option<Arc<dyn Format>>, ExchangeError> {
    let Some(wanted) = wanted else { return Ok(None) };
    let no_host = "this gateway does not check the form of answers; ask for it in words";
    let host = host.ok_or_else(|| ExchangeError::invalid(Field::Output, no_host))?;
    host.format(wanted).map(Some).map_err(|wrong| ExchangeError::invalid(Field::OutputSchema, wrong))
}
