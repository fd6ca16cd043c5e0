//! Sessions as clients begin, find and enter them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gembridge_core::driver::{ServerOrigin, SlashCommands, ToolServer};
use gembridge_core::model::{AgentName, Seq, SessionFacts, SessionId, TurnId};
use gembridge_core::session::{Description, NewSession, SessionHandle, TurnState};
use serde_json::{Value, json};

use super::RequestContext;
use crate::acp::encode::{self, execution};
use crate::acp::error::Refusal;
use crate::acp::replay::{self, Window};
use crate::acp::subscription::{Announce, Subscription, Taken, When};
use crate::acp::wire::{self, ReplayWish, Wishes};
use crate::acp::{AgentCard, ClientServers, Execution, WorkInCwd};
use crate::identity::Rank;
use crate::iso_time::iso;

/// Sessions that one page of a list holds.
const PAGE: usize = 100;

impl RequestContext {
    pub async fn new_session(&self, new: wire::NewSession, wishes: Wishes) -> Result<(SessionId, Box<Taken>), Refusal> {
        let card = self.chosen(wishes.agent.as_deref())?;
        let tool_servers = self.tool_servers(new.mcp_servers)?;
        let (workspace, ignored) = self.workspace(card, new.cwd.as_deref(), wishes.work_in_cwd)?;
        let shown = workspace.clone().or_else(|| card.workspace.clone());
        let session = NewSession {
            principal: self.identity.principal.clone(),
            agent: card.name.clone(),
            workspace,
            model: wishes.model.map(Into::into),
            mode: None,
            tool_servers,
            slash: self.slash(),
        };
        let handle = self.app.sessions().create(session).await?;
        let id = handle.id();
        match self.seat_of_new(handle).await {
            Ok((subscription, facts)) => {
                let meta = json!({
                    "agent": card.name.as_str(),
                    "mode": execution(if shown.is_some() { Execution::Agent } else { card.execution }),
                    "workspace": shown,
                    "ignored": ignored,
                    "seq": 0,
                });
                let mut result = json!({ "sessionId": id.to_string(), "_meta": { "gembridge": meta } });
                encode::new_session(&mut result, &facts);
                Ok((id, Box::new(Taken { subscription, result, when: When::AtOnce })))
            }
            Err(refusal) => {
                // It is empty, and no client knows its id.
                if let Err(error) = self.app.sessions().remove(id, &self.viewer).await {
                    tracing::debug!(session = %id, %error, "a session that could not begin is left behind");
                }
                Err(refusal)
            }
        }
    }

    /// The place first, so that what the agent says while it wakes is not missed.
    async fn seat_of_new(&self, handle: SessionHandle) -> Result<(Subscription, SessionFacts), Refusal> {
        let subscription = self.subscription(handle.clone(), Window::default(), Announce::No).await?;
        let facts = handle.wake().await?;
        Ok((subscription, facts))
    }

    async fn subscription(
        &self,
        handle: SessionHandle,
        window: Window,
        announce: Announce,
    ) -> Result<Subscription, Refusal> {
        let logs = self.app.sessions().logs();
        let place = self.app.fanouts.join(handle.id());
        Ok(Subscription::take(handle, logs, window, announce, place, |agent| self.app.patience(agent)).await?)
    }

    /// A place at a session that is there: with what was before, or from now on.
    pub async fn attach(&self, id: SessionId, wish: Option<ReplayWish>, when: When) -> Result<Box<Taken>, Refusal> {
        let handle = self.app.sessions().get(id, &self.viewer).await?;
        let (window, announce) = match wish {
            Some(wish) => {
                replay::check(&wish)?;
                let logs = self.app.sessions().logs();
                let (begun, waiting) = match wish.limit {
                    Some(_) => running(&handle).await?,
                    None => (None, 0),
                };
                let window = replay::window(logs.as_ref(), id, &wish, begun, waiting);
                (window.await.map_err(gembridge_core::error::Error::from)?, Announce::Yes)
            }
            None => (Window { after: Seq(u64::MAX), ..Window::default() }, Announce::No),
        };
        let mut subscription = self.subscription(handle, window, announce).await?;
        // A place that was just taken has its replay before it.
        let Some(described) = subscription.description() else {
            return Err(gembridge_core::error::Error::Closed.into());
        };
        described.facts = self.present(described);
        let agent = &described.record.agent;
        let mut result = json!({
            "sessionId": id.to_string(),
            "state": encode::turn_name(described.turn),
            "last": described.last.0,
            "_meta": { "gembridge": {
                "agent": agent.as_str(),
                "mode": self.app.card(agent).map(|card| match described.record.workspace {
                    Some(_) => execution(Execution::Agent),
                    None => execution(card.execution),
                }),
                "seq": described.last.0,
            } },
        });
        encode::new_session(&mut result, &described.facts);
        Ok(Box::new(Taken { subscription, result, when }))
    }

    /// What is true of a session now. An agent that is not there says what its sessions can be in general.
    fn present(&self, described: &Description) -> SessionFacts {
        let (record, mut facts) = (&described.record, described.facts.clone());
        let is_known = !facts.modes.is_empty() || !facts.models.is_empty();
        if let Some(offers) = self.offers(&record.agent).filter(|_| !is_known) {
            let offers = SessionFacts::clone(&offers);
            facts.mode = facts.mode.or_else(|| record.mode.clone()).or(offers.mode);
            facts.model = facts.model.or_else(|| record.model.clone()).or(offers.model);
            facts.options = facts.options.or(offers.options);
            (facts.modes, facts.models) = (offers.modes, offers.models);
        }
        facts.title.clone_from(&record.title);
        facts
    }

    pub async fn list(&self, wish: wire::ListSessions) -> Result<Value, Refusal> {
        let skip: usize = match wish.cursor.as_deref() {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| Refusal::params("`cursor` is none that was given here"))?,
        };
        let views = self.shown(skip + PAGE + 1).await?;
        let entry = |view: &Arc<gembridge_core::session::SessionView>| {
            let record = &view.record;
            let workspace = record.workspace.as_deref().or_else(|| self.app.card(&record.agent)?.workspace.as_deref());
            json!({
                "sessionId": record.id.to_string(),
                "cwd": workspace.unwrap_or(Path::new("/")),
                "title": record.title,
                "updatedAt": iso(record.updated),
            })
        };
        let sessions: Vec<_> = views.iter().skip(skip).take(PAGE).map(entry).collect();
        let mut result = json!({ "sessions": sessions });
        if views.len() > skip + PAGE {
            result["nextCursor"] = json!((skip + PAGE).to_string());
        }
        Ok(result)
    }

    fn offers(&self, agent: &AgentName) -> Option<Arc<SessionFacts>> {
        self.app.sessions().agents().find(|(name, _)| *name == agent)?.1.driver.offers()
    }

    fn chosen(&self, name: Option<&str>) -> Result<&AgentCard, Refusal> {
        let agents = &self.app.parts.agents;
        let found = match name {
            None => agents.first(),
            Some(name) => agents.iter().find(|card| card.name.as_str() == name),
        };
        found.ok_or_else(|| {
            let shown: String = name.unwrap_or_default().chars().take(64).flat_map(char::escape_default).collect();
            Refusal::params(format!("agent `{shown}` is not served here; `_gembridge/agents` lists those that are"))
        })
    }

    /// Where the agent works, and what of the request means nothing to it.
    fn workspace(
        &self,
        card: &AgentCard,
        cwd: Option<&str>,
        work_in_cwd: bool,
    ) -> Result<(Option<PathBuf>, Vec<&'static str>), Refusal> {
        let Some(cwd) = cwd else { return Ok((None, Vec::new())) };
        let may_work = work_in_cwd
            && self.identity.rank == Rank::Admin
            && self.app.parts.config.work_in_cwd == WorkInCwd::OnRequest;
        if card.execution == Execution::Chat && !may_work {
            return Ok((None, vec!["cwd"]));
        }
        if card.workspace.as_deref() == Some(Path::new(cwd)) {
            return Ok((None, Vec::new()));
        }
        Ok((Some(self.trusted(cwd)?), Vec::new()))
    }

    /// Lets a session of this client in which nothing was said yet work in a folder that is trusted by now.
    pub async fn work_in(&self, handle: &SessionHandle, folder: &str) -> Result<(), Refusal> {
        let is_own = handle.record().await?.principal == self.identity.principal;
        if !is_own || self.identity.rank != Rank::Admin || self.app.parts.config.work_in_cwd == WorkInCwd::Never {
            return Err(Refusal::params("`work_in` is for sessions of the operator's own".to_owned()));
        }
        Ok(handle.work_in(self.trusted(folder)?).await?)
    }

    fn trusted(&self, folder: &str) -> Result<PathBuf, Refusal> {
        let shown: String = folder.chars().take(256).flat_map(char::escape_debug).collect();
        self.app.parts.folders.trusted(Path::new(folder)).ok_or_else(|| {
            let why =
                format!("`cwd` `{shown}` is no folder that the operator trusts; run `gembridge trust add` for it");
            Refusal::new(crate::jsonrpc::INVALID_PARAMS, "untrusted_cwd", why)
        })
    }

    fn tool_servers(&self, servers: Vec<wire::McpServer>) -> Result<Vec<ToolServer>, Refusal> {
        let refuse = |server: &wire::McpServer, why: &str| {
            let shown: String = server.name.chars().take(64).flat_map(char::escape_default).collect();
            Refusal::new(crate::jsonrpc::INVALID_PARAMS, "mcp_server_refused", format!("MCP server `{shown}` {why}"))
        };
        let taken = servers.into_iter().map(|server| {
            if self.app.parts.config.servers == ClientServers::Refused {
                return Err(refuse(&server, "is not taken; the operator may allow them with `acp.allow_mcp_servers`"));
            }
            match (server.kind.as_deref(), &server.url) {
                (Some("http"), Some(url)) => Ok(ToolServer {
                    name: server.name.as_str().into(),
                    url: url.clone(),
                    headers: server.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect(),
                    origin: ServerOrigin::Others,
                }),
                _ => Err(refuse(&server, "is not reached over HTTP; name one with `type` `http` and its `url`")),
            }
        });
        taken.collect()
    }

    /// Only the operator's own hand commands the agent itself.
    fn slash(&self) -> SlashCommands {
        match self.identity.rank {
            Rank::Admin => SlashCommands::Run,
            Rank::User => SlashCommands::AsText,
        }
    }
}

/// The turn that runs now, and how many wait behind it.
async fn running(handle: &SessionHandle) -> Result<(Option<TurnId>, usize), Refusal> {
    let found = handle.describe().await?;
    Ok(match found.turn {
        TurnState::Idle => (None, 0),
        TurnState::Opening(turn) | TurnState::Running(turn) => (Some(turn), found.queued),
    })
}
