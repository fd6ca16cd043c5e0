//! How the chosen agent will be started.

use std::path::Path;

use gembridge_drivers::acp::{AcpSetup, Home};
use gembridge_drivers::profile::{Execution, Trust};
use gembridge_process::{RestartPolicy, Spawner};

use crate::agents::{Agent, Chosen};
use crate::command::Context;

/// Everything that decides it. All of it is the operator's word.
pub fn setup(agent: Agent, workspace: Option<&Path>, home: Home, spawner: Spawner, context: &Context) -> AcpSetup {
    let folders = &context.config.folders;
    let environment = context.config.environment.to_map();
    let chosen = agent.profile.chosen.clone();
    let workspace = workspace.map(Path::to_owned).or(chosen.workspace);
    let execution = if workspace.is_some() { Execution::Agent } else { chosen.execution };
    AcpSetup {
        program: agent.program,
        version: None,
        execution,
        workspace,
        // The folder is the gateway's own, or the operator named it: nothing else gets this far.
        trust: Trust::Trusted,
        login: agent.profile.find_login(&environment, &|path| path.exists()),
        environment,
        model: None,
        approval: chosen.approval,
        sandbox: chosen.sandbox,
        home,
        private: folders.state.join("private"),
        cache: folders.cache.clone(),
        spawner,
        restart: RestartPolicy::default(),
        profile: agent.profile,
    }
}

/// What the person should know about the choice.
pub fn notice(agent: &Agent) -> Option<String> {
    let hint =
        "no agent is installed, so the built-in demo agent answers; `gembridge agents` shows how to get a real one";
    (agent.chosen == Chosen::NothingElse).then(|| hint.to_owned())
}
