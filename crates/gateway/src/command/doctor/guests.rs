//! Guests, the keys of rank `user`: what keeps their agents from the operator's files, and which agents serve them.

use gembridge_core::model::Failure;
use gembridge_drivers::profile::{ChatTools, Execution, Profile, Version};
use gembridge_drivers::setup::{GuestFence, GuestRefusal, NoFence};
use gembridge_process::{GuardProgram, Spawner};

use super::{Check, Greeting, Probe};
use crate::agents::{self, Agent, Chosen, setup};
use crate::command::Context;
use crate::keys::{KeyFile, StoredRank};

pub fn checks(context: &Context, probe: &dyn Probe) -> Vec<Check> {
    let mut checks = vec![fence(setup::guest_fence(&context.config.settings))];
    let installed = installed(context);
    let Ok(spawner) = Spawner::new(GuardProgram::this_binary()) else { return checks };
    let refusals: Vec<_> = installed.iter().map(|agent| refusal(agent, context, spawner.clone())).collect();
    let outcomes: Vec<_> =
        installed.iter().map(|agent| agent.profile.name.as_str()).zip(refusals.iter().copied()).collect();
    checks.push(served(&outcomes));
    let of_guests = installed.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none()).map(|(agent, _)| agent);
    let by_name = of_guests.filter(|agent| agent.profile.tools.in_chat == ChatTools::DeniedByName);
    checks.extend(untested(by_name, context));
    if let Some(agent) = agents::choose(&context.profiles, &context.config).ok().filter(|_| has_guests(context))
        && outcomes.iter().any(|(name, refusal)| *name == agent.profile.name && refusal.is_none())
    {
        checks.push(handshake(&agent.profile, probe.initialize_for_guests(&agent, context)));
    }
    checks
}

fn fence(fence: GuestFence) -> Check {
    let name = "guest fence";
    match fence {
        GuestFence::Landlock => {
            Check::ok(name, "the kernel keeps a guest's agent to its own folders, its program and its libraries")
        }
        GuestFence::Absent(NoFence::TurnedOff) => Check::warn(
            name,
            "`guests.fence` is off, so only agents that have no way to a file serve guests",
            "remove `guests.fence` from the settings",
        ),
        GuestFence::Absent(NoFence::Kernel) => Check::warn(
            name,
            "the kernel has none, so only agents that have no way to a file serve guests",
            "use Linux 6.2 or newer with Landlock on, or run a gateway of its own for guests: docs/deployment.md",
        ),
    }
}

fn installed(context: &Context) -> Vec<Agent> {
    let found = agents::detect_all(&context.profiles, &context.config).into_iter().zip(&context.profiles);
    let agents = found.filter_map(|(detection, profile)| {
        Some(Agent { profile: profile.clone(), program: detection.found?.program, chosen: Chosen::Named })
    });
    agents.collect()
}

/// Why an agent serves no guest, as the gateway would decide it.
fn refusal(agent: &Agent, context: &Context, spawner: Spawner) -> Option<GuestRefusal> {
    let workspace = match agent.profile.chosen.execution {
        Execution::Agent => agent.profile.chosen.workspace.clone(),
        Execution::Chat => None,
    };
    setup::of(agent, workspace, context, spawner).guest_refusal()
}

fn served(agents: &[(&str, Option<GuestRefusal>)]) -> Check {
    let names: Vec<_> =
        agents.iter().filter(|(_, refusal)| refusal.is_none()).map(|(name, _)| format!("`{name}`")).collect();
    let others = agents.iter().filter_map(|(name, refusal)| Some(format!("`{name}` not: {}", short((*refusal)?))));
    let served =
        if names.is_empty() { "no agent serves guests".to_owned() } else { format!("served by {}", names.join(", ")) };
    let told = std::iter::once(served).chain(others).collect::<Vec<_>>().join("; ");
    if names.is_empty() {
        Check::warn("guests", told, "install another agent, or give it a login that serves others")
    } else {
        Check::ok("guests", told)
    }
}

fn short(refusal: GuestRefusal) -> &'static str {
    match refusal {
        GuestRefusal::Workspace => "it works in your workspace",
        GuestRefusal::PersonalLogin => "its login is your own",
        GuestRefusal::OwnTools => "its tools cannot be turned off",
        GuestRefusal::Headless => "it runs headless",
        GuestRefusal::A2a => "it is an A2A server",
        GuestRefusal::NoFence(_) => "it has a way to files and there is no fence",
    }
}

/// Agents whose tools are turned off one by one, in a version whose tools nobody has looked at.
fn untested<'a>(agents: impl Iterator<Item = &'a Agent>, context: &Context) -> Vec<Check> {
    let asked: Vec<_> = agents.map(|agent| (agent.profile.clone(), agent.program.clone())).collect();
    let versions = if asked.is_empty() { Vec::new() } else { agents::versions(&asked, &context.config) };
    asked.iter().zip(versions).filter_map(|((profile, _), version)| tools_by_name(profile, version)).collect()
}

fn tools_by_name(profile: &Profile, version: Option<Version>) -> Option<Check> {
    if version.is_some_and(|version| profile.tested.contains(&version)) {
        return None;
    }
    let version = version.map_or_else(|| "an unknown version".to_owned(), |version| format!("version {version}"));
    let tested: Vec<_> = profile.tested.iter().map(Version::to_string).collect();
    Some(Check::warn(
        "guests",
        format!(
            "the tools of {} are turned off by name, and {version} was not tested: a new tool would be on",
            profile.title
        ),
        format!("use a tested version ({}), or give it to no guest", tested.join(", ")),
    ))
}

fn has_guests(context: &Context) -> bool {
    let keys = KeyFile::load(&context.config.folders);
    keys.is_ok_and(|keys| keys.entries().iter().any(|entry| entry.rank == StoredRank::User))
}

fn handshake(profile: &Profile, greeted: Result<Greeting, Failure>) -> Check {
    match greeted {
        Ok(greeting) => Check::ok(
            "guests",
            format!("{} answered `initialize` as a guest has it in {} ms", profile.title, greeting.took.as_millis()),
        ),
        Err(failure) => Check::fail(
            "guests",
            format!("{} does not start as a guest has it: {}", profile.title, failure.message),
            format!("name the files that it needs in `guest_read` of `[agents.{}]`", profile.name),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn each_agent_is_named_with_what_keeps_it_from_guests() {
        let agents = [("demo", None), ("codex", Some(GuestRefusal::OwnTools)), ("mine", Some(GuestRefusal::Workspace))];
        let check = served(&agents);
        assert_eq!(check.status, Status::Ok);
        let told =
            "served by `demo`; `codex` not: its tools cannot be turned off; `mine` not: it works in your workspace";
        assert_eq!(check.detail, told);
        assert_eq!(served(&agents[1..]).status, Status::Warn);
    }

    #[test]
    fn a_missing_fence_is_said_with_its_reason() {
        assert_eq!(fence(GuestFence::Landlock).status, Status::Ok);
        for (why, word) in [(NoFence::Kernel, "the kernel has none"), (NoFence::TurnedOff, "`guests.fence` is off")] {
            let check = fence(GuestFence::Absent(why));
            assert!(check.status == Status::Warn && check.detail.contains(word), "{check:?}");
        }
    }

    #[test]
    fn tools_that_are_off_by_name_need_a_tested_version() {
        let qwen = Profile::builtin().unwrap().into_iter().find(|profile| profile.name == "qwen").unwrap();
        let tested = qwen.tested[0];
        assert!(tools_by_name(&qwen, Some(tested)).is_none());
        for version in [None, Some(Version::new(9, 9, 9))] {
            let check = tools_by_name(&qwen, version).unwrap();
            assert!(check.status == Status::Warn && check.fix.unwrap().contains(&tested.to_string()));
        }
    }
}
