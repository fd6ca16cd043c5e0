//! An agent that fails: what came before is kept, one sentence says why, the exit code says what to do.

use gembridge_core::model::{FailureKind, Outcome};

use crate::history;
use crate::support::home::Home;
use crate::support::run::InTerminal;

#[test]
fn r1_a_crash_in_the_middle_of_a_turn_keeps_what_came_and_says_how_the_agent_ended() {
    let home = Home::with_modes("crash-mid:3");
    for output in ["text", "stream-json"] {
        let ran = home.run(&["run", "-o", output, "anything"]).fails(1, "agent `fake` ended with exit code 3");
        for chunk in ["chunk-0 ", "chunk-1 ", "chunk-2 "] {
            assert!(ran.stdout.contains(chunk), "{}", ran.stdout);
        }
        // Agents dump prompts there: not for a file or another program.
        assert!(!ran.stderr.contains("crashed as told"), "{}", ran.stderr);
    }
    home.is_deserted();
    for (_, entries) in history::sessions(&home.state_folder()) {
        assert_eq!(history::text(&entries), "chunk-0 chunk-1 chunk-2 ");
        let [Outcome::Interrupted(failure)] = &history::outcomes(&entries)[..] else { panic!("{entries:?}") };
        assert_eq!(failure.kind, FailureKind::Crashed);
    }
}

#[test]
fn r1_a_person_at_a_terminal_sees_the_last_words_of_the_agent_too() {
    let home = Home::with_modes("crash-mid:3");
    let (code, screen) = InTerminal::start(&home.command(&["run", "anything"])).ends();
    assert_eq!(code, Some(1), "{screen}");
    assert!(screen.contains("chunk-0 chunk-1 chunk-2"), "{screen}");
    assert!(screen.contains("fake-agent: crashed as told"), "{screen}");
    assert!(screen.trim_end().ends_with("gembridge: agent `fake` ended with exit code 3"), "{screen}");
}

#[test]
fn r1_a_signal_is_named() {
    let home = Home::with_modes("ok");
    let ran = home.run(&["run", "say part ;; abort"]).fails(1, "agent `fake` ended with signal 6 (SIGABRT)");
    assert_eq!(ran.stdout, "part\n");
    home.is_deserted();
}

#[test]
fn r5_an_agent_that_ends_in_the_middle_of_a_line_or_politely_has_still_not_finished() {
    for modes in ["halfline", "exit0-mid"] {
        let home = Home::with_modes(modes);
        let ran = home.run(&["run", "anything"]).fails(1, "agent `fake` ended with exit code 0");
        assert_eq!(ran.stdout, "chunk-0 \n", "{modes}");
        home.is_deserted();
    }
}

#[test]
fn r3_an_agent_that_hangs_is_ended_when_the_time_is_over() {
    let home = Home::configured("hang-prompt,ignore-sigterm", "limits = { cancel_grace_ms = 200 }\n");
    let ran = home.run(&["run", "--timeout", "5", "anything"]).fails(4, "the turn took longer than 5 s");
    assert_eq!(ran.stdout, "");
    home.is_deserted();
    let received = home.record();
    assert_eq!(received.messages_of("session/cancel").len(), 1, "it was asked first");
}

#[test]
fn r3_an_agent_that_hangs_at_its_start_is_ended_when_the_time_is_over() {
    let home = Home::with_modes("hang-init,ignore-sigterm");
    home.run(&["run", "--timeout", "5", "anything"]).fails(4, " within ");
    assert_eq!(home.record().starts().len(), 1, "what hung once is not started again");
    home.is_deserted();
}

#[test]
fn an_agent_that_needs_a_login_is_told_with_the_way_out() {
    let home = Home::with_modes("needs-auth");
    let ran = home.run(&["run", "anything"]).fails(3, "agent `fake` is not logged in");
    assert!(ran.stderr.contains("`gembridge doctor` names the ways to log in"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    home.is_deserted();
}

#[test]
fn an_agent_of_another_protocol_version_is_refused_and_ended() {
    let home = Home::with_modes("bad-version");
    let ran = home.run(&["run", "anything"]).fails(1, "it speaks ACP version 99, gembridge speaks 1");
    assert_eq!(ran.stdout, "");
    assert!(home.record().messages_of("session/new").is_empty());
    home.is_deserted();
}

#[test]
fn after_a_failure_the_next_run_works() {
    let home = Home::with_modes("ok");
    home.run(&["run", "exit 9"]).fails(1, "ended with exit code 9");
    assert_eq!(home.run(&["run", "say well"]).succeeds().stdout, "well\n");
}
