//! However a run ends in the middle of its turn, no process and no folder of it stays.

use std::fs;

use rustix::process::Signal;

use crate::support::home::Home;
use crate::support::run::{InTerminal, Running, exit_code};

const STUBBORN: [&str; 5] =
    ["fork", "fork-setsid", "ignore-sigterm", "ignore-eof", "fork,fork-setsid,ignore-sigterm,ignore-eof"];

const WAITING: [&str; 2] = ["run", "say busy ;; wait-cancel"];

fn homes() -> Vec<Home> {
    STUBBORN.iter().map(|modes| Home::with_modes(modes)).collect()
}

/// Every agent in the middle of its turn, all at once.
fn busy(homes: &[Home]) -> Vec<Running> {
    let mut runs: Vec<_> = homes.iter().map(|home| home.start(&WAITING)).collect();
    for (run, home) in runs.iter_mut().zip(homes) {
        run.shows("busy");
        assert!(home.processes().len() >= 2, "the agent and its guard");
    }
    runs
}

/// The signal to each gateway, and every process of theirs is gone in time.
fn all_end(homes: &[Home], runs: &[Running], signal: Signal) {
    for run in runs {
        run.signal(signal);
    }
    for home in homes {
        home.is_deserted();
    }
}

/// Nothing runs, and the next start finds nothing or clears it away.
fn nothing_stays(homes: &[Home]) {
    for home in homes {
        home.is_deserted();
        assert_eq!(home.run(&["run", "say next"]).succeeds().stdout, "next\n");
        home.is_deserted();
        assert!(home.private_folders().is_empty(), "{:?}", home.private_folders());
    }
}

#[test]
fn r9_ctrl_c_leaves_nothing_behind() {
    let homes = homes();
    let runs = busy(&homes);
    all_end(&homes, &runs, Signal::INT);
    for (run, modes) in runs.into_iter().zip(STUBBORN) {
        let ran = run.ends();
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(130), "busy\n", ""), "{modes}");
    }
    nothing_stays(&homes);
}

#[test]
fn r9_sigterm_leaves_nothing_behind() {
    let homes = homes();
    let runs = busy(&homes);
    all_end(&homes, &runs, Signal::TERM);
    for (run, modes) in runs.into_iter().zip(STUBBORN) {
        let ran = run.ends();
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(130), ""), "{modes}");
    }
    nothing_stays(&homes);
}

#[test]
fn r9_kill_9_of_the_gateway_leaves_nothing_behind() {
    let homes = homes();
    let runs = busy(&homes);
    all_end(&homes, &runs, Signal::KILL);
    for (run, home) in runs.into_iter().zip(&homes) {
        // Nobody holds its output open either.
        assert_eq!(run.ends().code, None);
        assert!(!home.private_folders().is_empty(), "a killed run cannot clear up: the next one will");
    }
    nothing_stays(&homes);
}

#[test]
fn r9_a_closed_terminal_leaves_nothing_behind() {
    let homes = homes();
    let terminals: Vec<_> = homes.iter().map(|home| InTerminal::start(&home.command(&WAITING))).collect();
    let closed = terminals.into_iter().map(|mut terminal| {
        terminal.shows("busy");
        terminal.close_terminal()
    });
    for (mut child, modes) in closed.zip(STUBBORN) {
        assert_eq!(exit_code(&mut child), Some(130), "{modes}");
    }
    nothing_stays(&homes);
}

#[test]
fn r9_a_reader_that_goes_away_ends_the_turn_and_its_processes() {
    let homes = homes();
    for home in &homes {
        let ran = Running::start(piped_to_head(home)).ends();
        assert_eq!(ran.stdout, "chunk-0 ", "{}", ran.stderr);
        assert!(!ran.stderr.contains("Broken pipe"), "{}", ran.stderr);
        assert!(ran.stderr.ends_with("code 130\n"), "{}", ran.stderr);
    }
    nothing_stays(&homes);
}

/// `gembridge run … | head -c 8`, with the exit code of the first on standard error.
fn piped_to_head(home: &Home) -> std::process::Command {
    let script = "(\"$@\"; echo code $? >&2) | /usr/bin/head -c 8; exit 0; ";
    let mut command = std::process::Command::new("/bin/sh");
    let run = home.command(&["run", "chunks 100000 delay 1"]);
    command.args(["-c", script, "sh"]).arg(run.get_program()).args(run.get_args()).env_clear();
    command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(run.get_current_dir().unwrap()).stdin(std::process::Stdio::null());
    command
}

#[test]
fn r9_a_second_ctrl_c_does_not_wait_for_an_agent_that_ignores_the_first() {
    let home = Home::with_modes("hang-prompt,fork-setsid,ignore-sigterm,ignore-eof");
    let run = home.start(&["run", "anything"]);
    home.record().wait_for("session/prompt", 1);
    run.signal(Signal::INT);
    home.record().wait_for("session/cancel", 1);
    run.signal(Signal::INT);
    assert_eq!(run.ends().code, Some(130));
    home.is_deserted();
    assert!(home.private_folders().is_empty());
}

#[test]
fn r9_ctrl_c_works_while_the_agent_is_still_starting() {
    let home = Home::with_modes("hang-init,ignore-sigterm,ignore-eof");
    let run = home.start(&["run", "anything"]);
    home.record().wait_for("initialize", 1);
    run.signal(Signal::INT);
    let ran = run.ends();
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(130), "", ""));
    home.is_deserted();
    assert!(home.private_folders().is_empty());
}

#[test]
fn r9_a_command_that_the_agent_runs_in_its_workspace_ends_with_the_run() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let home = Home::configured("ok", "mode = 'agent'\nworkspace = '{home}/workspace'\n");
        let followed = home.path("workspace").join(home.tag());
        fs::write(&followed, "").unwrap();
        let prompt = format!("say busy ;; terminal /usr/bin/tail -f {}", followed.display());
        let run = home.start(&["run", "--permissions", "allow", &prompt]);
        let tail = |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("tail"));
        home.record().wait("the command", |_| home.processes().iter().any(tail).then_some(()));
        run.signal(signal);
        run.ends();
        home.is_deserted();
    }
}
