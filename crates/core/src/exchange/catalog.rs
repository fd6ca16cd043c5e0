//! What can be named as a model: agents, their models, and names that stand for them.

mod resolve;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

pub use resolve::{Certainty, Resolved};

use crate::driver::{CloseMode, Driver, SessionSpec};
use crate::model::{AgentName, Principal, PromptAbilities};
use crate::session::Sessions;

#[derive(Clone, Debug)]
pub struct CatalogConfig {
    /// Answers where no other agent is named.
    pub default_agent: AgentName,
    /// Names that stand for an agent, an `agent/model` or a model.
    pub mapped: BTreeMap<String, String>,
    pub unknown: UnknownModels,
    pub unlisted: Unlisted,
}

/// What answers when it is named, and is not listed.
#[derive(Clone, Debug)]
pub struct Unlisted {
    pub agents: Vec<AgentName>,
    /// Models that are not for conversations.
    pub models: fn(&str) -> bool,
}

impl Default for Unlisted {
    fn default() -> Self {
        Self { agents: Vec::new(), models: |_| false }
    }
}

/// What becomes of a request for a model that nobody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownModels {
    /// The default agent answers with its default model, and the response says so.
    #[default]
    FallBack,
    Refuse,
}

pub struct Catalog {
    config: CatalogConfig,
    /// The names that stand for others. They may be read again while the gateway runs.
    mapped: RwLock<Arc<BTreeMap<String, String>>>,
    /// In the order in which they are listed: the default first.
    agents: Vec<(AgentName, Arc<dyn Driver>)>,
    fingerprints: HashMap<AgentName, Arc<str>>,
    /// When an agent was last asked what it offers, to no avail.
    asked: Mutex<HashMap<AgentName, Instant>>,
    /// Models that an agent refused, by when.
    refused: Mutex<HashMap<(AgentName, Arc<str>), Instant>>,
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub id: String,
    pub agent: AgentName,
    /// What the name stands for, where it is another name for something.
    pub alias_of: Option<String>,
}

/// How long a listing waits for an agent that has not said yet what it offers.
const LEARNING: Duration = Duration::from_secs(10);
/// An agent that could not say is not asked again for this long.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// How long a refusal of a model is believed.
const TRY_AGAIN: Duration = Duration::from_mins(5);
/// Names come from clients: a table of them has a bound.
const MOST_REFUSED: usize = 256;

impl Catalog {
    pub fn new(sessions: &Sessions, mut config: CatalogConfig) -> Self {
        let mapped = RwLock::new(Arc::new(std::mem::take(&mut config.mapped)));
        let mut agents: Vec<_> =
            sessions.agents().map(|(name, setup)| (name.clone(), Arc::clone(&setup.driver))).collect();
        agents.sort_by(|(one, _), (other, _)| {
            (*one != config.default_agent, one.as_str()).cmp(&(*other != config.default_agent, other.as_str()))
        });
        let fingerprints = agents.iter().map(|(name, _)| (name.clone(), fingerprint(name))).collect();
        Self { config, mapped, agents, fingerprints, asked: Mutex::default(), refused: Mutex::default() }
    }

    /// Other names stand for models from now on.
    pub fn set_mapped(&self, mapped: BTreeMap<String, String>) {
        *self.mapped.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(mapped);
    }

    fn mapped(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(&self.mapped.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn is_strict(&self) -> bool {
        self.config.unknown == UnknownModels::Refuse
    }

    pub fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.agents.iter().map(|(name, _)| name)
    }

    /// What the agent takes in a prompt; `None` while no process of it was seen.
    pub fn abilities(&self, agent: &AgentName) -> Option<PromptAbilities> {
        self.driver(agent)?.facts().map(|facts| facts.prompt)
    }

    /// Stands for the setup that answers. Known before the agent has said anything, so that it is the same from the
    /// first answer on.
    pub fn fingerprint(&self, agent: &AgentName) -> Arc<str> {
        self.fingerprints.get(agent).map_or_else(|| fingerprint(agent), Arc::clone)
    }

    /// What there is to choose from. A model that two agents have is listed with its agent's name the second time; names that
    /// stand for others come last.
    pub fn list(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut add = |id: String, agent: &AgentName, alias_of: Option<String>| {
            let taken = entries.iter().any(|entry| entry.id == id);
            if !taken {
                entries.push(Entry { id, agent: agent.clone(), alias_of });
            }
            !taken
        };
        let unlisted = &self.config.unlisted;
        let listed = || self.agents.iter().filter(|(name, _)| !unlisted.agents.contains(name));
        for (name, _) in listed() {
            add(name.as_str().to_owned(), name, None);
        }
        for (name, driver) in listed() {
            for model in driver.offers().iter().flat_map(|offers| offers.models.iter()) {
                // A name that cannot be asked for is of no use.
                let is_offered = !(unlisted.models)(&model.id) && resolve::check_name(&model.id).is_ok();
                if is_offered && !add(model.id.to_string(), name, None) {
                    add(format!("{name}/{}", model.id), name, None);
                }
            }
        }
        for (mapped, target) in self.mapped().iter() {
            if let Ok(resolved) = self.resolve(mapped) {
                add(mapped.clone(), &resolved.agent, Some(target.clone()));
            }
        }
        entries
    }

    /// What a name stands for, if it can run.
    pub fn entry(&self, id: &str) -> Option<Entry> {
        if let Some(listed) = self.list().into_iter().find(|entry| entry.id == id) {
            return Some(listed);
        }
        let resolved = self.resolve(id).ok()?;
        let named = !resolved.fell_back && resolved.certainty != Certainty::Tentative;
        named.then(|| Entry { id: id.to_owned(), agent: resolved.agent, alias_of: None })
    }

    /// Asks agents that have not said yet what they offer, in a session of whoever wants to know.
    pub async fn learn(&self, principal: &Principal) {
        for (name, driver) in &self.agents {
            if driver.offers().is_some() || !self.may_ask(name) {
                continue;
            }
            let spec = SessionSpec { principal: principal.clone(), ..SessionSpec::plain() };
            match tokio::time::timeout(LEARNING, driver.open(spec)).await {
                Ok(Ok(opened)) => opened.agent.close(CloseMode::Release).await,
                Ok(Err(failure)) => tracing::warn!(agent = %name, %failure, "the agent cannot say what it offers"),
                Err(_) => tracing::warn!(agent = %name, "the agent did not say in time what it offers"),
            }
        }
    }

    /// The agent does not have the model: for a while nobody tries it again.
    pub fn refuse(&self, agent: &AgentName, model: &Arc<str>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        refused.retain(|_, at| now.duration_since(*at) < TRY_AGAIN);
        if refused.len() < MOST_REFUSED {
            refused.insert((agent.clone(), Arc::clone(model)), now);
        }
    }

    fn is_refused(&self, agent: &AgentName, model: &Arc<str>) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let at = refused.get(&(agent.clone(), Arc::clone(model)));
        at.is_some_and(|at| at.elapsed() < TRY_AGAIN)
    }

    fn may_ask(&self, agent: &AgentName) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let recently = asked.get(agent).is_some_and(|at| now.duration_since(*at) < ASK_AGAIN);
        if !recently {
            asked.insert(agent.clone(), now);
        }
        !recently
    }

    fn driver(&self, agent: &AgentName) -> Option<&dyn Driver> {
        self.agents.iter().find(|(name, _)| name == agent).map(|(_, driver)| driver.as_ref())
    }
}

/// A short name for an agent and this version, by FNV-1a.
fn fingerprint(agent: &AgentName) -> Arc<str> {
    let text = format!("{agent} {}", env!("CARGO_PKG_VERSION"));
    let digest = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("fp_{:010x}", digest & 0xff_ffff_ffff).into()
}
