//! From what a dialect understood of a request to the response of its answer, whole or as a stream.

use axum::body::Body;
use axum::http::{HeaderValue, Response};
use gembridge_core::exchange::{self, AnswerSink, FollowUp, NamedSession, Plan, TokenCount, TokenLimit, Tools};
use gembridge_core::model::Message;
use gembridge_core::tool_host::FormatSpec;

use super::{Caller, FieldNames, StreamEncoder, media, problem};
use crate::problem::{Kind, Problem};

/// What a request asks for, in no dialect's words.
pub(crate) struct Asked {
    pub model: String,
    /// Everything that was said, the newest last.
    pub history: Vec<Message>,
    pub follow_up: Option<FollowUp>,
    pub tools: Tools,
    /// The form that the answer shall have. `None`: text.
    pub output: Option<FormatSpec>,
    pub stop: Vec<String>,
    pub limit: Option<TokenLimit>,
    /// How many answers.
    pub answers: usize,
}

/// Keeps the pieces of all answers of a request until their end.
pub(crate) trait WholeEncoder: AnswerSink {
    /// The body of the response.
    fn encode(&mut self, tokens: TokenCount) -> serde_json::Result<Vec<u8>>;
}

impl Caller {
    /// Who answers, and what the agent is told. `place` names the content of the message with this number. Nothing waits here.
    pub(crate) fn plan(
        &self,
        asked: Asked,
        session: Option<NamedSession>,
        names: &FieldNames,
        place: impl Fn(usize) -> String,
    ) -> Result<Plan, Problem> {
        let resolved =
            self.resolve(&asked.model, session.as_ref(), asked.answers).map_err(|error| problem(error, names))?;
        let exchanges = &self.dialects.exchanges;
        if let Some(abilities) = exchanges.catalog().abilities(&resolved.agent) {
            media::check_abilities(&asked.history, abilities, resolved.agent.as_str(), place)?;
        }
        let plan = exchanges.plan(exchange::Request {
            principal: self.identity.principal.clone(),
            viewer: self.identity.viewer(),
            resolved,
            session,
            history: asked.history.into(),
            follow_up: asked.follow_up,
            tools: asked.tools,
            output: asked.output,
            stop: asked.stop,
            limit: asked.limit,
            answers: asked.answers,
        });
        plan.map_err(|error| problem(error, names))
    }

    /// Carries out a plan, and answers once everything was said.
    pub(crate) async fn answer_whole(
        &mut self,
        plan: Plan,
        mut encoder: impl WholeEncoder,
        ignored: &[String],
        names: &FieldNames,
    ) -> Result<Response<Body>, Problem> {
        let resolved = plan.resolved.clone();
        let mut exchange = self.start(plan).map_err(|error| problem(error, names))?;
        exchange.finish(&mut encoder).await.map_err(|error| problem(error, names))?;
        let body = encoder
            .encode(exchange.tokens())
            .map_err(|error| Problem::new(Kind::Agent, format!("the agent's text is not sound JSON: {error}")))?;
        Ok(self.whole(body, ignored, &resolved, &exchange))
    }

    /// Carries out a plan, and answers while it is being carried out.
    pub(crate) async fn answer_stream(
        &mut self,
        plan: Plan,
        encoder: impl StreamEncoder,
        kind: HeaderValue,
        ignored: &[String],
        names: &FieldNames,
    ) -> Result<Response<Body>, Problem> {
        let resolved = plan.resolved.clone();
        let exchange = self.start(plan).map_err(|error| problem(error, names))?;
        let response = self.stream(exchange, encoder, kind, ignored, &resolved).await;
        response.map_err(|error| problem(error, names))
    }
}
