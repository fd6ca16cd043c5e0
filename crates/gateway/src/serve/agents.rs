//! The agents of a gateway: the default one with its warm spare, the other installed ones on demand.

use std::collections::HashMap;
use std::sync::Arc;

use gembridge_api::guard::rate::Rate;
use gembridge_core::admission::{Admission, AdmissionLimits, GuestLimits};
use gembridge_core::driver::Driver;
use gembridge_core::limit::Limits;
use gembridge_core::model::{AgentName, Principal};
use gembridge_core::session::AgentSetup;
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::Execution;
use gembridge_drivers::setup::{DriverSetup, HARMLESS, Spares};
use gembridge_process::Spawner;
use tokio::sync::Notify;

use super::openings::Openings;
use super::session_cap::{Allotment, CappedDriver, SessionCap};
use super::tenant_driver::TenantDriver;
use crate::agents::{self, Agent, Chosen, setup};
use crate::command::Context;
use crate::config::settings::{Policy, Settings};
use crate::exit::CommandError;
use crate::keys::FileKeys;

/// The default limits of concurrent turns: of an installed agent, and of the built-in one, which costs next to nothing.
const TURNS: usize = 64;
const TURNS_OF_THE_BUILT_IN: usize = 1_024;

/// How many processes full of waiting sessions an agent may have, and how many sessions in any case.
const WAITING_PROCESSES: u32 = 4;
const WAITING_AT_LEAST: usize = 16;

/// Sessions that are opened only to ask what the agent offers.
const LEARNERS: usize = 4;

/// None of its own: room for whoever listens to it.
const DESCRIPTORS_OF_A_SESSION: usize = 1;
/// Its pipes, its guard and its folder.
const DESCRIPTORS_OF_A_PROCESS: usize = 5;

/// One agent that the gateway serves.
pub struct Served {
    pub name: AgentName,
    pub agent: Agent,
    pub driver: Arc<TenantDriver>,
    pub cap: SessionCap,
    /// Those of all agents.
    pub openings: Arc<Openings>,
}

/// The agents, the default one first.
pub struct Agents {
    pub served: Vec<Served>,
    pub setups: HashMap<AgentName, AgentSetup>,
    /// Told when somebody waits for a session of an agent.
    pub wanted: Arc<Notify>,
}

impl Agents {
    /// Which agents will be served. Starts nothing.
    pub fn choose(context: &Context) -> Result<Vec<Agent>, CommandError> {
        let default = agents::choose(&context.profiles, &context.config)?;
        let others = agents::detect_all(&context.profiles, &context.config).into_iter().zip(&context.profiles);
        let others =
            others.filter(|(_, profile)| profile.name != default.profile.name).filter_map(|(found, profile)| {
                let program = found.found?.program;
                Some(Agent { profile: profile.clone(), program, chosen: Chosen::Named })
            });
        Ok(std::iter::once(default.clone()).chain(others).collect())
    }

    /// Starts to warm the default agent.
    pub fn start(chosen: Vec<Agent>, context: &Context, spawner: &Spawner, keys: &Arc<FileKeys>) -> Self {
        let openings = Arc::new(openings(&context.config.settings));
        let mut agents = Self { served: Vec::new(), setups: HashMap::new(), wanted: Arc::default() };
        for (place, agent) in chosen.into_iter().enumerate() {
            let name = AgentName::new(agent.profile.name.as_str());
            let spares = if place == 0 { Spares::OfTheProfile } else { Spares::None };
            let workspace = match agent.profile.chosen.execution {
                Execution::Agent => agent.profile.chosen.workspace.clone(),
                Execution::Chat => None,
            };
            let policy = policy(&context.config.settings, &agent, workspace.as_deref());
            let settings = &context.config.settings;
            let open = turns(settings, &agent) + waiting(settings, &agent) + LEARNERS;
            let open = open.min(affordable(&agent)).max(2);
            let setup = setup::of(&agent, workspace, context, spawner.clone()).for_many();
            // Every session that may be open may wait for its process: no bound of its own stands behind that one.
            let setup = DriverSetup { waiting: open, ..setup };
            let driver = Arc::new(TenantDriver::new(name.clone(), keys, spares, setup));
            let served: Arc<dyn Driver> = Arc::<TenantDriver>::clone(&driver);
            let cap = SessionCap::new(allotment(settings, open), Arc::clone(&agents.wanted));
            let capped = Arc::new(CappedDriver::new(served, name.clone(), keys, cap.clone(), &openings));
            let limits = limits(settings, &agent);
            let admission = admission(settings, &agent, keys);
            agents.setups.insert(name.clone(), AgentSetup { driver: capped, limits, policy, admission });
            agents.served.push(Served { name, agent, driver, cap, openings: Arc::clone(&openings) });
        }
        agents
    }
}

fn admission(settings: &Settings, agent: &Agent, keys: &Arc<FileKeys>) -> Admission {
    let running = turns(settings, agent);
    let waiting = agent.profile.chosen.queue.unwrap_or(settings.limits.queue.0) as usize;
    let guests = Some(guest_limits(allotment(settings, running), keys));
    Admission::new(AdmissionLimits { running, waiting, shares: keys.shares(), guests, ..AdmissionLimits::default() })
}

/// How many sessions a guest's key may have opened.
fn openings(settings: &Settings) -> Openings {
    let limits = &settings.limits;
    let rate = Rate { requests: limits.requests(), window: limits.window.0 };
    Openings::new(limits.openings_per_key.map(|most| most.0 as usize), rate)
}

/// How many turns run at once with an agent.
pub fn turns(settings: &Settings, agent: &Agent) -> usize {
    let chosen = agent.profile.chosen.turns.or(settings.limits.turns.map(|turns| turns.0));
    let wished = match chosen {
        Some(turns) => turns as usize,
        None if agents::is_built_in(&agent.profile) => TURNS_OF_THE_BUILT_IN,
        None => TURNS,
    };
    wished.min(affordable(agent) * 4 / 5).max(1)
}

/// How `all` of what an agent has are shared out between operators and guests.
pub fn allotment(settings: &Settings, all: usize) -> Allotment {
    Allotment::of(all, settings.limits.sessions_per_key.map(|each| each.0 as usize))
}

/// The same for whoever tells guests by their names.
pub fn guest_limits(allotment: Allotment, keys: &Arc<FileKeys>) -> GuestLimits {
    let keys = Arc::clone(keys);
    let is_guest = Arc::new(move |principal: &Principal| !keys.is_operator(principal));
    GuestLimits { each: allotment.each, together: allotment.guests, is_guest }
}

/// How many sessions of an agent may wait for their next message.
pub fn waiting(settings: &Settings, agent: &Agent) -> usize {
    let wished = match settings.limits.idle_sessions {
        Some(most) => most.0 as usize,
        None => ((WAITING_PROCESSES * agent.profile.limits.sessions_per_process) as usize).max(WAITING_AT_LEAST),
    };
    wished.min((affordable(agent) / 5).max(1))
}

/// How many sessions of an agent the descriptors allow that no client takes.
fn affordable(agent: &Agent) -> usize {
    let of_a_process = DESCRIPTORS_OF_A_PROCESS.div_ceil(agent.profile.limits.sessions_per_process.max(1) as usize);
    gembridge_api::server::set_aside() / (DESCRIPTORS_OF_A_SESSION + of_a_process)
}

fn limits(settings: &Settings, agent: &Agent) -> Limits {
    Limits { keep: settings.limits.keep.0, ..setup::limits(settings, agent) }
}

/// Without a workspace an agent has nothing to ask for, except for the built-in one, which asks in order to show it and
/// does nothing, and for a server elsewhere, whose tools are its own; with one, the settings decide.
fn policy(settings: &Settings, agent: &Agent, workspace: Option<&std::path::Path>) -> PermissionPolicy {
    let Some(workspace) = workspace else {
        let asks = agents::is_built_in(&agent.profile) || agent.profile.is_at_address();
        let in_chat = if asks { PermissionPolicy::ask_if_attended() } else { PermissionPolicy::reject() };
        let named = settings.permissions.workspaces.iter();
        let named = named.map(|(path, policy)| (path.as_path().to_owned(), chosen_policy(*policy)));
        return in_chat.but_in_folders(named, chosen_policy(settings.permissions.policy));
    };
    let of_workspace = settings.permissions.workspaces.iter().find(|(path, _)| path.as_path() == workspace);
    chosen_policy(of_workspace.map_or(settings.permissions.policy, |(_, policy)| *policy))
}

fn chosen_policy(policy: Policy) -> PermissionPolicy {
    match policy {
        Policy::Ask => PermissionPolicy::ask(),
        Policy::Deny => PermissionPolicy::reject(),
        Policy::Allow => PermissionPolicy::ask().with_auto(HARMLESS),
    }
}
