//! From a name to an agent and a model.

use std::sync::Arc;

use super::{Catalog, UnknownModels};
use crate::driver::Driver;
use crate::exchange::error::{ExchangeError, Field};
use crate::model::AgentName;

/// Who answers a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub agent: AgentName,
    /// `None` is the agent's default.
    pub model: Option<Arc<str>>,
    pub certainty: Certainty,
    /// The name was not known, and the default answers instead.
    pub fell_back: bool,
}

/// Whether the agent is known to have the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    Listed,
    /// A mapped name stands for it, which counts as listed: if the agent refuses, its default answers in any case.
    Mapped,
    /// The agent has not said yet what it offers: it may refuse.
    Tentative,
}

enum Listing {
    Listed,
    NotListed,
    /// The agent has not said yet.
    Unsaid,
}

impl Resolved {
    /// The name that stands for it in a response.
    pub fn shown(&self) -> &str {
        self.model.as_deref().unwrap_or(self.agent.as_str())
    }
}

impl Catalog {
    pub fn resolve(&self, name: &str) -> Result<Resolved, ExchangeError> {
        check_name(name)?;
        let resolved = self.look_up(name)?;
        let refused = resolved.model.as_ref().is_some_and(|model| self.is_refused(&resolved.agent, model));
        match resolved.certainty {
            Certainty::Mapped if refused => Ok(default_of(&resolved.agent)),
            Certainty::Tentative if refused => self.instead_of(name, &resolved.agent),
            Certainty::Listed | Certainty::Mapped | Certainty::Tentative => Ok(resolved),
        }
    }

    /// The answer to a name that nobody has: the default of `agent`, or none.
    fn instead_of(&self, name: &str, agent: &AgentName) -> Result<Resolved, ExchangeError> {
        match self.config.unknown {
            UnknownModels::FallBack => Ok(default_of(agent)),
            UnknownModels::Refuse => Err(ExchangeError::UnknownModel(format!(
                "the model `{name}` does not exist; `GET /v1/models` lists those that do"
            ))),
        }
    }

    fn look_up(&self, name: &str) -> Result<Resolved, ExchangeError> {
        // What a mapped name stands for counts as listed, under its own name too.
        let mapped = self.mapped();
        let target = mapped.get(name).or_else(|| mapped.values().find(|target| *target == name));
        if let Some(found) = self.find(target.map_or(name, String::as_str)) {
            return Ok(found);
        }
        let default = &self.config.default_agent;
        if let Some(target) = target {
            // What the operator wrote down counts as there until the agent says otherwise.
            let (agent, model) = self.split(target).unwrap_or((default, target));
            return Ok(Resolved { certainty: Certainty::Mapped, ..tentative(agent, model) });
        }
        match self.listing(default, name) {
            Listing::Unsaid if self.split(name).is_none() => Ok(tentative(default, name)),
            Listing::Unsaid | Listing::Listed | Listing::NotListed => self.instead_of(name, default),
        }
    }

    /// An agent, `agent/model`, or a model that some agent lists.
    fn find(&self, name: &str) -> Option<Resolved> {
        if let Some((agent, _)) = self.agents.iter().find(|(agent, _)| agent.as_str() == name) {
            return Some(Resolved {
                agent: agent.clone(),
                model: None,
                certainty: Certainty::Listed,
                fell_back: false,
            });
        }
        let listed = |agent: &AgentName, model: &str| Resolved {
            agent: agent.clone(),
            model: Some(model.into()),
            certainty: Certainty::Listed,
            fell_back: false,
        };
        if let Some((agent, model)) = self.split(name) {
            match self.listing(agent, model) {
                Listing::Listed => return Some(listed(agent, model)),
                Listing::Unsaid => return Some(tentative(agent, model)),
                Listing::NotListed => {}
            }
        }
        let has = |agent: &AgentName| matches!(self.listing(agent, name), Listing::Listed);
        self.agents().find(|agent| has(agent)).map(|agent| listed(agent, name))
    }

    /// `agent/model` in its two parts, if the first is an agent.
    fn split<'a>(&'a self, name: &'a str) -> Option<(&'a AgentName, &'a str)> {
        let (agent, model) = name.split_once('/')?;
        let agent = self.agents().find(|known| known.as_str() == agent)?;
        (!model.is_empty()).then_some((agent, model))
    }

    fn listing(&self, agent: &AgentName, model: &str) -> Listing {
        match self.driver(agent).and_then(Driver::offers) {
            Some(offers) if offers.models.iter().any(|offered| &*offered.id == model) => Listing::Listed,
            Some(_) => Listing::NotListed,
            None => Listing::Unsaid,
        }
    }
}

/// What answers instead of a model that is not there.
fn default_of(agent: &AgentName) -> Resolved {
    Resolved { agent: agent.clone(), model: None, certainty: Certainty::Listed, fell_back: true }
}

fn tentative(agent: &AgentName, model: &str) -> Resolved {
    Resolved { agent: agent.clone(), model: Some(model.into()), certainty: Certainty::Tentative, fell_back: false }
}

/// A name that may become an argument of a program.
pub(super) fn check_name(name: &str) -> Result<(), ExchangeError> {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'/' | b'-');
    if (1..=128).contains(&name.len()) && name.bytes().all(sound) && !name.starts_with('-') {
        return Ok(());
    }
    let shown: String = name.chars().take(64).flat_map(char::escape_default).collect();
    Err(ExchangeError::invalid(Field::Model, format!("`{shown}` is not a model name")))
}
