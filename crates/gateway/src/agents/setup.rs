//! How an agent is set up by the settings of this program.

use std::path::PathBuf;

use gembridge_core::limit::Limits;
use gembridge_drivers::setup::{self, DriverSetup, GuestFence, Host, NoFence};
use gembridge_process::{Spawner, sandbox};

use super::Agent;
use crate::command::Context;
use crate::config::settings::Settings;

/// An agent for the operator, with a home that stays. The workspace is ours, named in the settings, or was checked against
/// the trust list when the flags were read.
pub fn of(agent: &Agent, workspace: Option<PathBuf>, context: &Context, spawner: Spawner) -> DriverSetup {
    let (profile, program) = (agent.profile.clone(), agent.program.clone());
    let setup = DriverSetup::new(profile, program, workspace, &host(context, spawner));
    setup.starting_within(context.config.settings.turn.total.0)
}

fn host(context: &Context, spawner: Spawner) -> Host {
    let folders = &context.config.folders;
    Host {
        environment: context.config.environment.to_map(),
        private: folders.runs(),
        cache: folders.cache.clone(),
        homes: folders.state.join("agents"),
        umask: context.umask,
        line: usize::try_from(context.config.settings.limits.agent_line.0).unwrap_or(usize::MAX),
        spawner,
        shim: std::env::current_exe().ok(),
        guest_fence: guest_fence(&context.config.settings),
        guest_nice: context.config.settings.guests.nice.0,
    }
}

/// What keeps guests' processes from the operator's files, by the settings and by what the kernel has.
pub fn guest_fence(settings: &Settings) -> GuestFence {
    if !settings.guests.fence.0 {
        GuestFence::Absent(NoFence::TurnedOff)
    } else if sandbox::support().confines() {
        GuestFence::Landlock
    } else {
        GuestFence::Absent(NoFence::Kernel)
    }
}

/// The bounds of turns: those of the agent, and those of the settings.
pub fn limits(settings: &Settings, agent: &Agent) -> Limits {
    Limits {
        idle: settings.turn.idle.0,
        turn: settings.turn.total.0,
        answer: settings.permissions.wait.0,
        answer_alone: settings.permissions.alone.0,
        ring_entries: settings.limits.history.0 as usize,
        recap_bytes: usize::try_from(settings.openai.history.0).unwrap_or(usize::MAX),
        ..setup::limits(&agent.profile)
    }
}
