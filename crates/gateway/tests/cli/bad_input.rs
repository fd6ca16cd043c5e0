//! Whatever is wrong is told in one sentence with the way out, and nothing is half-started.

use crate::support::home::Home;

#[test]
fn a_mistyped_command_line_refused_with_what_was_meant() {
    let home = Home::new();
    home.run(&["rum"]).refused(2, "a similar subcommand exists: `run`");
    home.run(&["run", "--agnt", "demo", "hi"]).refused(2, "`--agent`; see `gembridge run --help`");
    home.run(&["run", "--timeout", "soon", "hi"]).refused(2, "expected a number of seconds from 1");
    home.run(&["run", "--model", "--yolo", "hi"]).refused(2, "unexpected argument `--yolo`");
    home.run(&["run", "--model=a b", "hi"]).refused(2, "is not a model name");
    home.run(&["config", "show", "--jsn"]).refused(2, "`--json`");
}

#[test]
fn a_file_with_an_unknown_key_or_a_wrong_value_refused_by_every_command_that_reads_it() {
    let home = Home::new().with_config("gembridge.toml", "[server]\nprot = 1\n");
    for args in [&["run", "hi"][..], &["chat"], &["config", "show"], &["trust", "list"]] {
        home.run(args).refused(2, "gembridge.toml` line 2: unknown key `server.prot`; did you mean `port`?");
    }
    let home = home.with_config("gembridge.toml", "[turn]\n\nidle = 'soon'\n");
    home.run(&["config", "show"]).refused(2, "line 3: `turn.idle`: `soon` is not a duration");
}

#[test]
fn what_needs_no_configuration_works_while_it_is_broken() {
    let home = Home::new().with_config("gembridge.toml", "[server\n");
    home.run(&["config", "schema"]).succeeds();
    home.run(&["completions", "bash"]).succeeds();
    home.run(&["--version"]).succeeds();
}

#[test]
fn an_agent_without_a_command_refused_with_its_line() {
    let home = Home::new().with_config("gembridge.toml", "[agents.mine]\nargs = ['--acp']\n");
    home.run(&["run", "hi"]).refused(2, "line 2: agent `mine` has no `command`");
}

#[test]
fn a_driver_that_is_not_there_refused_by_name() {
    let home = Home::new();
    home.run(&["run", "--driver", "telepathy", "hi"])
        .refused(2, "invalid value `telepathy` for `--driver <DRIVER>` [possible values: acp, headless]");
    home.run(&["run", "--driver", "headless", "--agent", "codex", "hi"])
        .refused(2, "agent `codex` does not run with the driver `headless`");
    home.run(&["run", "--driver", "headless", "--agent", "claude", "hi"]).refused(3, "claude");
}

#[test]
fn a_folder_that_nobody_trusts_refused_with_the_command_that_trusts_it() {
    let home = Home::new();
    home.run(&["run", "--cwd", "empty", "hi"]).refused(2, "run `gembridge trust add");
    home.run(&["run", "--cwd", "missing", "hi"]).refused(2, "name a folder that exists");
}

#[test]
fn an_empty_prompt_refused() {
    let home = Home::new();
    home.run(&["run"]).refused(2, "the prompt is empty");
    home.run(&["run", "-"]).refused(2, "the prompt is empty");
    home.run(&["run", " "]).refused(2, "the prompt is empty");
}

#[test]
fn s16_text_from_outside_cannot_steer_the_terminal() {
    let ran = Home::new().run(&["run", "--\u{1b}[2Jx", "hi"]);
    assert_eq!(ran.code, Some(2));
    assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
}
