//! A guest's process: its own home, folder, program and libraries, and nothing of the operator's or of another guest's.

use std::fs;
use std::path::{Path, PathBuf};

use gembridge_core::model::FailureKind;
use gembridge_drivers::profile::{AgentConfig, Execution, Profile, Sandbox};
use gembridge_drivers::setup::{Audience, GuestFence, NoFence};
use serde_json::Value;

use super::agent_fixture::{AgentFixture, ScriptedAgent, path};

/// The fake agent as a guest has it. It is not recorded: the record would lie outside its fence.
fn guest(change: impl FnOnce(&mut AgentConfig, &Path)) -> ScriptedAgent {
    let folder = tempfile::tempdir().unwrap();
    let mut config = AgentConfig {
        command: Some(gembridge_testkit::fake_agent_path().display().to_string()),
        args: Some(vec!["--tag".to_owned(), format!("fixture-{}", folder.path().file_name().unwrap().display())]),
        ..AgentConfig::default()
    };
    change(&mut config, folder.path());
    let profile = Profile::custom("fake", &config, &[]).unwrap();
    let mut plan = ScriptedAgent::of(profile, gembridge_testkit::fake_agent_path(), None, folder);
    plan.setup.audience = Audience::Guests;
    plan.setup.shim = None;
    plan
}

/// The operator's files, as a gateway has them: the state folder holds the key and everybody's private folders.
fn with_secrets(mut plan: ScriptedAgent) -> (ScriptedAgent, Vec<PathBuf>) {
    let state = plan.folder.path().join("state/gembridge");
    plan.setup.private = state.join("runs");
    let others = plan.setup.private.join("fake-1-2-3");
    fs::create_dir_all(others.join("home")).unwrap();
    let home = plan.folder.path().join("home");
    fs::create_dir_all(home.join(".config/agent")).unwrap();
    plan.setup.environment.insert("HOME".to_owned(), home.display().to_string());
    let files = [state.join("key"), others.join("home/login.json"), home.join(".config/agent/auth.json")];
    for file in &files {
        fs::write(file, "canary").unwrap();
    }
    let folders = [state.clone(), plan.setup.private.clone(), others, home, plan.folder.path().to_owned()];
    let secrets = files.into_iter().chain(folders).collect();
    (plan, secrets)
}

async fn told(fixture: &AgentFixture, principal: &str, script: &str) -> String {
    let mut client = fixture.session_of(principal).await;
    client.turn(script).await.finished()
}

#[tokio::test]
async fn fence_guest_reads_neither_the_operators_files_nor_another_guests() {
    let (plan, mut secrets) = with_secrets(guest(|_, _| {}));
    secrets.extend(["/etc/shadow", "/root", "/home", "/dev/shm"].map(PathBuf::from));
    let fixture = plan.start();
    let script: Vec<String> = secrets
        .iter()
        .flat_map(|path| [format!("open {}", path.display()), format!("shell cat {0} {0}/*", path.display())])
        .collect();
    let told = told(&fixture, "ann", &script.join("\n")).await;
    assert!(!told.contains("canary"), "{told}");
    for path in &secrets {
        assert!(told.contains(&format!("open {}: refused", path.display())), "{}: {told}", path.display());
    }
    fixture.end().await;
}

#[tokio::test]
async fn fence_guest_neither_reads_nor_ends_the_processes_of_others() {
    let fixture = guest(|_, _| {}).start();
    let other = fixture.session_of("bob").await;
    other.prompt("say hello ;; wait-cancel").await;
    let bob: Value = serde_json::from_str(&told(&fixture, "bob-2", "env").await).unwrap();
    assert_eq!(bob["fds"], serde_json::json!([0, 1, 2]));
    let me = std::process::id();
    let processes: Vec<u32> = fixture.processes().into_iter().chain([me]).collect();
    let script: Vec<String> = processes
        .iter()
        .flat_map(|pid| {
            let files = ["environ", "mem", "maps", "cwd/", "root/", "fd/0"];
            let opened = files.map(|file| format!("open /proc/{pid}/{file}"));
            opened.into_iter().chain([
                format!("shell readlink /proc/{pid}/cwd"),
                format!("shell kill -0 {pid} && echo may be signalled"),
            ])
        })
        .collect();
    let told = told(&fixture, "ann", &script.join("\n")).await;
    let reads = |line: &&str| line.starts_with("open ") && !line.ends_with(": refused");
    assert_eq!(told.lines().filter(reads).collect::<Vec<_>>(), Vec::<&str>::new());
    let linked = |line: &&str| line.starts_with("shell: /") && !line.contains("not permitted");
    assert_eq!(told.lines().filter(linked).collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(!told.contains("may be signalled"), "{told}");
    fixture.end().await;
}

#[tokio::test]
async fn fence_guest_has_its_home_its_folder_its_program_and_what_the_operator_named() {
    let fixture = guest(|config, folder| {
        fs::create_dir_all(folder.join("shared/models")).unwrap();
        fs::write(folder.join("shared/models/list"), "models").unwrap();
        fs::create_dir(folder.join("scratch")).unwrap();
        config.guest_read = vec![folder.join("shared/models")];
        config.guest_write = vec![folder.join("scratch")];
    })
    .start();
    let shared = fixture.folder.path().join("shared/models/list");
    let program = gembridge_testkit::fake_agent_path();
    let script = [
        "shell echo mine > $HOME/note && cat $HOME/note".to_owned(),
        "shell echo mine > $XDG_DATA_HOME/note && echo mine > $TMPDIR/note && cat $TMPDIR/note".to_owned(),
        "shell echo mine > here && cat here".to_owned(),
        format!("shell head -c 4 {} | tail -c 3", program.display()),
        format!("open {}", shared.display()),
        format!("shell echo more >> {} || echo read-only", shared.display()),
        format!("shell echo x > {0}/x && cat {0}/x", fixture.folder.path().join("scratch").display()),
        "shell grep -c root /etc/passwd".to_owned(),
    ];
    let told = told(&fixture, "ann", &script.join("\n")).await;
    let lines: Vec<&str> = told.lines().filter(|line| !line.contains("Permission denied")).collect();
    let opened = format!("open {}: models", shared.display());
    let expected =
        ["shell: mine", "shell: mine", "shell: mine", "shell: ELF", &opened, "read-only", "shell: x", "shell: 1"];
    assert_eq!(lines, expected, "{told}");
    fixture.end().await;
}

#[tokio::test]
async fn fence_operators_process_has_none_unless_it_is_asked_for() {
    let (mut plan, secrets) = with_secrets(guest(|_, _| {}));
    plan.setup.audience = Audience::Operators;
    let fixture = plan.start();
    let told = told(&fixture, "operator", &format!("open {}", secrets[0].display())).await;
    assert!(told.ends_with(": canary\n"), "{told}");
    fixture.end().await;
}

#[tokio::test]
async fn fence_that_would_hold_the_gateways_own_files_is_refused() {
    let (plan, _) = with_secrets(guest(|config, folder| config.guest_read = vec![folder.to_owned()]));
    let fixture = plan.start();
    let mut client = fixture.session().await;
    let turned = client.turn("say hello").await;
    let failure = turned.failed_as(FailureKind::Unsupported);
    assert!(failure.message.contains("holds gembridge's own files"), "{failure}");
    fixture.end().await;
}

#[tokio::test]
async fn fence_turned_off_leaves_the_private_home() {
    let (mut plan, secrets) = with_secrets(guest(|_, _| {}));
    plan.setup.guest_fence = GuestFence::Absent(NoFence::TurnedOff);
    let fixture = plan.start();
    let told = told(&fixture, "ann", &format!("open {} ;; shell ls -A $HOME", secrets[0].display())).await;
    assert!(told.contains(": canary") && !told.contains("auth.json"), "{told}");
    fixture.end().await;
}

#[tokio::test]
async fn fence_around_an_agents_writes_holds_for_its_terminals_too() {
    let mut plan = ScriptedAgent::fake(&[]);
    plan.setup.sandbox = Sandbox::Landlock;
    assert_eq!(plan.setup.execution, Execution::Agent);
    // The record is kept where it may write.
    let workspace = plan.setup.workspace.clone().unwrap();
    let outside = plan.folder.path().join("outside");
    plan.setup.profile.command.args.retain(|arg| !arg.contains("record"));
    plan.setup.environment.insert("PATH".to_owned(), path());
    let fixture = plan.start();
    let mut client = fixture.session().await;
    let script =
        format!("terminal touch {} ;; terminal touch {}", outside.display(), workspace.join("inside").display());
    let told = client.turn(&script).await.finished();
    assert!(told.contains("exit 1") && told.contains("exit 0"), "{told}");
    assert!(!outside.exists() && workspace.join("inside").exists());
    fixture.end().await;
}

#[tokio::test]
async fn f14_every_folder_of_a_guests_home_is_private_and_exists() {
    let mut plan = guest(|config, _| config.env = vec!["XDG_DATA_HOME".to_owned(), "XDG_CONFIG_HOME".to_owned()]);
    for variable in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
        plan.setup.environment.insert(variable.to_owned(), "/the/operators".to_owned());
    }
    let private = plan.setup.private.clone();
    let fixture = plan.start();
    let told = told(&fixture, "ann", "env ;; shell cd $HOME/ && cd $XDG_CACHE_HOME && cd $XDG_CONFIG_HOME && cd $XDG_DATA_HOME && cd $XDG_STATE_HOME && pwd").await;
    let (environment, folder) = told.split_once("shell: ").unwrap();
    let environment: Value = serde_json::from_str(environment).unwrap();
    for variable in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
        let value = environment["env"][variable].as_str().unwrap();
        assert!(Path::new(value).starts_with(&private), "{variable}={value}");
    }
    assert!(Path::new(folder.trim()).ends_with(".local/state"), "{folder}");
    fixture.end().await;
}
