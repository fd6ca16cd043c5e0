//! From a request to what is to be done: who answers, in which session, on which terms.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::Bytes;
use gembridge_core::exchange::{Claim, Fingerprint, Owner, fit, news};
use gembridge_core::model::{ClientId, ClientTool, Message, Role, SessionId, blocks_with_names};
use gembridge_core::session::SessionHandle;
use gembridge_core::session::demand::Demand;
use gembridge_core::tool_host::{Format, Offer, ToolHost};

use super::begin::{Plan, Route};
use super::chat_completions::Call;
use super::decode::{self, Choice, FollowUp, Wishes};
use super::encode::{CallOptions, Strict};
use super::resume::Resume;
use crate::catalog::Resolved;
use crate::identity::SESSION_HEADER;
use crate::problem::Problem;

/// What is to be done, once the request is understood.
pub(super) struct Order {
    pub wishes: Wishes,
    pub resolved: Resolved,
    pub plans: Vec<Plan>,
    pub terms: Terms,
    /// Everything said so far, where the answer shall be found again.
    pub fingerprint: Option<Fingerprint>,
    pub left_out: usize,
}

impl Order {
    /// Whether a session is made for it.
    pub(super) fn is_new(&self) -> bool {
        self.plans.iter().any(|plan| matches!(plan.route, Route::New { .. }))
    }
}

/// What the agent is offered, and what the client insists on.
pub(super) struct Terms {
    offer: Offer,
    pub demand: Demand,
    pub calls: CallOptions,
}

/// A session that the client named.
pub(super) struct Pin {
    handle: SessionHandle,
    owner: Owner,
}

impl Call {
    pub(super) async fn pinned(&self, headers: &HeaderMap) -> Result<Option<Pin>, Problem> {
        // Other programs send ids of their own under this name. Those are labels, and name no session of ours.
        let mut named = headers
            .get_all(SESSION_HEADER)
            .iter()
            .filter_map(|value| SessionId::of_our_form(value.to_str().ok()?.trim()));
        let Some(id) = named.next() else { return Ok(None) };
        if named.any(|other| other != id) {
            let message = "the request names two sessions; send `x-session-id` once";
            return Err(Problem::invalid(SESSION_HEADER.as_str(), message));
        }
        self.note_session(id);
        let handle = self.app.sessions.get(id, &self.identity.viewer()).await?;
        let owner = handle.owner();
        Ok(Some(Pin { handle, owner }))
    }

    /// Reads the request, once: what it wants, who answers, and what the agent is told. Nothing waits here, so that
    /// only as many requests are held in their parsed form as there are threads.
    pub(super) fn understand(&self, body: &Bytes, pin: Result<Option<Pin>, Problem>) -> Result<Order, Problem> {
        let request = decode::parse(body)?;
        self.note_asked(&request);
        let pin = pin?;
        let wishes = decode::wishes(&request)?;
        let conversation = decode::conversation(&request, decode::Source(body))?;
        let follow_up = decode::follow_up(&request, &conversation)?;
        let terms = self.terms(&wishes)?;
        let asked = self.app.catalog.resolve(&wishes.model)?;
        let resolved = match &pin {
            Some(pin) => self.resolved_in(pin, &asked, &wishes)?,
            None => asked,
        };
        if resolved.fell_back {
            tracing::warn!(asked = ?wishes.model, answers = resolved.shown(), "another model answers than was asked for");
        }
        self.note_used(&resolved);
        if let Some(abilities) = self.app.catalog.abilities(&resolved.agent) {
            decode::check_abilities(&conversation, abilities, resolved.agent.as_str())?;
        }
        let talk = Talk { conversation: &conversation, follow_up, body };
        Ok(self.plan(wishes, terms, resolved, talk, pin))
    }

    /// Who answers in the session that the client named: what it was begun with.
    fn resolved_in(&self, pin: &Pin, asked: &Resolved, wishes: &Wishes) -> Result<Resolved, Problem> {
        let Owner { agent, model, .. } = &pin.owner;
        if *agent != asked.agent && !asked.fell_back {
            let message = format!(
                "the session belongs to agent `{agent}`, but `model` names agent `{}`; leave `x-session-id` out",
                asked.agent
            );
            return Err(Problem::invalid("model", message));
        }
        if wishes.choices > 1 {
            let message = "a session gives one answer to a prompt; leave `n` or `x-session-id` out";
            return Err(Problem::invalid("n", message));
        }
        let is_other = asked.model.is_some() && asked.model != *model;
        let fell_back = asked.fell_back || is_other;
        let resolved = Resolved { agent: agent.clone(), model: model.clone(), fell_back, certainty: asked.certainty };
        if is_other && self.app.catalog.is_strict() {
            let message = format!(
                "the session answers with `{}`; ask for that, or leave `x-session-id` out to have `{}`",
                resolved.shown(),
                wishes.model
            );
            return Err(Problem::invalid("model", message));
        }
        Ok(resolved)
    }

    /// What the client's tools and the form it wants come to.
    fn terms(&self, wishes: &Wishes) -> Result<Terms, Problem> {
        let host = self.app.sessions.tool_host();
        let tools: Arc<[ClientTool]> = wishes.tools.offered.iter().map(|offered| offered.tool.clone()).collect();
        if !tools.is_empty() && host.is_none() {
            return Err(Problem::invalid("tools", "this gateway does not offer a client's tools to agents"));
        }
        let format = format(wishes, host)?;
        let strict = wishes.tools.offered.iter().filter(|offered| offered.strict).map(|offered| offered.tool.clone());
        let strict: Arc<[ClientTool]> = strict.collect();
        let strict = host.filter(|_| !strict.is_empty()).map(|host| Strict { tools: strict, host: Arc::clone(host) });
        let demand = match (wishes.tools.choice, &format) {
            (Choice::Always, _) => Demand::Call,
            (Choice::AsItLikes | Choice::Never, Some(format)) => Demand::Output(Arc::clone(format)),
            (Choice::AsItLikes | Choice::Never, None) => Demand::Nothing,
        };
        let calls = CallOptions {
            choice: wishes.tools.choice,
            offered: Arc::clone(&tools),
            wording: wishes.tools.wording,
            at_once: wishes.tools.at_once,
            strict,
        };
        Ok(Terms { offer: Offer { tools, format }, demand, calls })
    }

    /// Finds the session that holds the history or waits for what comes with it, or folds it for a new one.
    fn plan(&self, wishes: Wishes, terms: Terms, resolved: Resolved, talk: Talk<'_>, pin: Option<Pin>) -> Order {
        let app = &self.app;
        let Talk { conversation, follow_up, body } = talk;
        let owner = pin.as_ref().map_or_else(
            || Owner {
                principal: self.identity.principal.clone(),
                agent: resolved.agent.clone(),
                model: resolved.model.clone(),
            },
            |pin| pin.owner.clone(),
        );
        let known = conversation.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |at| at + 1);
        let (history, new) = conversation.split_at(known);
        let told = app.tellable(conversation, &resolved.agent);
        let mut fingerprint = app.conversations.fingerprint();
        for message in history {
            fingerprint.add(message);
        }
        let mark = fingerprint.mark();
        let claim = || app.conversations.claim(&owner, mark);
        for message in new {
            fingerprint.add(message);
        }
        let mut fingerprint = Some(fingerprint);

        let mut left_out = 0;
        let mut folded = || {
            let folded = fit(&told, app.config.fold_budget);
            left_out = folded.left_out;
            folded.prompt
        };
        let resume = follow_up.and_then(|follow_up| self.resume(follow_up, pin.as_ref(), claim));
        let is_known = || if history.is_empty() || new.is_empty() { None } else { claim() };
        let first = match (pin, resume) {
            (None, Some(resume)) => Route::Resume { resume: Box::new(resume), otherwise: None },
            (None, None) => match is_known() {
                Some(claim) => Route::Continue { claim, prompt: news(new) },
                None => Route::New { prompt: folded() },
            },
            (Some(pin), resume) => {
                let stands = is_known().and_then(|claim| claim.spend_if(pin.handle.id()));
                if stands.is_none() {
                    // What the client knows of the session and what it holds are not the same.
                    app.conversations.forget(&owner, pin.handle.id());
                    fingerprint = None;
                }
                let prompt = if new.is_empty() { folded() } else { news(&told[known..]) };
                let beside = match new {
                    [] => prompt.blocks().into_owned(),
                    new => blocks_with_names(new.iter().map(Cow::Borrowed)),
                };
                let route = Route::Pinned { handle: pin.handle, after: stands.map(|held| held.turn), prompt, beside };
                match resume {
                    Some(resume) => Route::Resume { resume: Box::new(resume), otherwise: Some(Box::new(route)) },
                    None => route,
                }
            }
        };
        let mut routes = vec![first];
        while routes.len() < wishes.choices {
            routes.push(Route::New { prompt: folded() });
        }
        let plan = |route| Plan {
            owner: owner.clone(),
            route,
            by: ClientId::fresh(),
            certainty: resolved.certainty,
            offer: terms.offer.clone(),
            instruction: terms.demand.instruction(),
            body: body.clone(),
        };
        let plans = routes.into_iter().map(plan).collect();
        Order { wishes, resolved, plans, terms, fingerprint, left_out }
    }

    /// Where the results may be waited for; a client that named a session means that one.
    fn resume(&self, follow_up: FollowUp, pin: Option<&Pin>, claim: impl FnOnce() -> Option<Claim>) -> Option<Resume> {
        let resume = Resume::new(follow_up, self.identity.viewer(), claim)?;
        pin.is_none_or(|pin| resume.is_of(pin.handle.id())).then_some(resume)
    }
}

/// The form that the client wants, ready to be checked.
fn format(wishes: &Wishes, host: Option<&Arc<dyn ToolHost>>) -> Result<Option<Arc<dyn Format>>, Problem> {
    let Some(wanted) = &wishes.format else { return Ok(None) };
    let host = host.ok_or_else(|| {
        Problem::invalid("response_format", "this gateway does not check the form of answers; ask for it in words")
    })?;
    let wrong = |wrong: String| Problem::invalid(decode::SCHEMA_PLACE, decode::shortened(&wrong));
    host.format(wanted).map(Some).map_err(wrong)
}

/// What a request says.
struct Talk<'a> {
    conversation: &'a [Message],
    follow_up: Option<FollowUp>,
    body: &'a Bytes,
}
