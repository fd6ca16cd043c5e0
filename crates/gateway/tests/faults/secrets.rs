//! Hostile words and secrets: what a prompt cannot do, and what nobody gets to see.

use std::fs;
use std::path::Path;

use crate::support::home::Home;
use crate::support::run::Running;

const CANARIES: [&str; 5] =
    ["GEMBRIDGE_TOKEN", "GEMBRIDGE_AUTH_BEARER_TOKEN", "AWS_SECRET_ACCESS_KEY", "REDIS_URL", "GEMINI_API_KEY"];

fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn holds(pid: u32, file: &str, text: &str) -> bool {
    let bytes = fs::read(Path::new("/proc").join(pid.to_string()).join(file)).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A word that no other process of the machine has, also not that of the same test in another run.
fn marker(home: &Home) -> String {
    format!("hostile-{}", home.tag())
}

fn hostile(home: &Home) -> String {
    let (marker, go) = (marker(home), home.path("go"));
    format!(
        "--yolo -m {marker}\n\"; touch pwn #{marker}\n$(touch pwn) `touch pwn` {marker}\nsay ready\nuntil {}\nsay done",
        go.display()
    )
}

#[test]
fn s12_a_hostile_prompt_reaches_no_argument_of_any_process() {
    let home = Home::with_modes("fork");
    let mut run = Running::start_with_input(home.command(&["run"]), &hostile(&home));
    run.shows("ready");
    let marker = marker(&home);
    let seen: Vec<u32> = all_processes().into_iter().filter(|pid| holds(*pid, "cmdline", &marker)).collect();
    assert_eq!(seen, Vec::<u32>::new());
    assert!(home.processes().len() >= 3, "the guard, the agent and its child were looked at");
    fs::write(home.path("go"), "").unwrap();
    run.ends().succeeds();
    assert_eq!(home.record().messages_of("session/prompt").len(), 1);
    assert!(home.record().messages()[2].to_string().contains(&marker), "it came as text");
    assert!(home.record().starts().iter().flatten().all(|argument| !argument.contains(&marker)));
    assert!(!home.path("pwn").exists() && !home.path("workspace/pwn").exists());
}

#[test]
fn s12_a_typed_prompt_is_in_the_arguments_of_the_command_that_was_typed_alone() {
    let home = Home::configured("fork", "mode = 'agent'\nworkspace = '{home}/workspace'\n");
    let mut run = home.start(&["run", "--", &hostile(&home)]);
    run.shows("ready");
    let marker = marker(&home);
    let seen: Vec<u32> = all_processes().into_iter().filter(|pid| holds(*pid, "cmdline", &marker)).collect();
    assert_eq!(seen, [run.pid()]);
    fs::write(home.path("go"), "").unwrap();
    run.ends().succeeds();
    assert!(!home.path("pwn").exists() && !home.path("workspace/pwn").exists());
}

#[test]
fn s15_s16_secrets_of_the_environment_reach_neither_the_agent_nor_any_output() {
    let endings = [
        ("fork", "say ready ;; until {go} ;; env", Some(0)),
        ("fork", "say ready ;; until {go} ;; exit 3", Some(1)),
        ("fork", "say ready ;; until {go} ;; error 500 no luck", Some(1)),
        ("garbage,fork", "say ready ;; until {go} ;; raw not json", Some(0)),
    ];
    for (modes, prompt, code) in endings {
        let home = Home::with_modes(modes);
        let log = home.path("log");
        let mut command = home.command(&["run", "-o", "stream-json"]);
        command.envs(CANARIES.map(|name| (name, "canary-4c1e"))).env("LOG_FILE", &log).env("LOG_LEVEL", "debug");
        let prompt = format!("prompt-canary-93b0\n{}", prompt.replace("{go}", home.path("go").to_str().unwrap()));
        let mut run = Running::start_with_input(command, &prompt);
        run.shows("ready");
        let tree = home.processes();
        assert!(tree.len() >= 3, "{tree:?}");
        for pid in tree {
            assert!(!holds(pid, "environ", "canary-4c1e"), "{}", pid);
        }
        fs::write(home.path("go"), "").unwrap();
        let ran = run.ends();
        assert_eq!(ran.code, code, "{ran:?}");
        let logged = fs::read_to_string(&log).unwrap();
        assert!(!logged.is_empty());
        for (place, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr), ("the log", &logged)] {
            assert!(!text.contains("canary-4c1e"), "{prompt}: a secret is on {place}: {text}");
        }
        for (place, text) in [("stderr", &ran.stderr), ("the log", &logged)] {
            assert!(!text.contains("prompt-canary-93b0"), "{prompt}: the prompt is on {place}: {text}");
        }
    }
}

#[test]
fn s14_the_gateway_and_a_chatting_agent_make_files_for_their_user_alone() {
    let home = Home::with_modes("ok");
    let prompt = format!("say ready ;; until {}", home.path("go").display());
    let mut run = home.start(&["run", &prompt]);
    run.shows("ready");
    for pid in home.processes().into_iter().chain([run.pid()]) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Umask:\t0077"), "{status}");
    }
    fs::write(home.path("go"), "").unwrap();
    run.ends().succeeds();
}
