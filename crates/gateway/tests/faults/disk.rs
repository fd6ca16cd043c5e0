//! A disk without room: nothing is shown that was not stored, one sentence says so, and it is over when there is room.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use gembridge_core::model::Outcome;

use crate::history;
use crate::support::home::Home;
use crate::support::run::{Ran, Running};

const FULL: &str = "free some space";

/// Something that is stored, then more than any disk here takes.
const LONG: &str = "chunks 50 size 100 delay 1 ;; chunks 20000 size 100 ;; say done";

/// All that was shown is in the log, and no turn has two ends.
#[track_caller]
fn shown_is_stored(home: &Home, ran: &Ran) {
    let (_, entries) = history::sessions(&home.state_folder()).into_iter().next().expect("the session is kept");
    history::is_in_order(&entries);
    let stored = history::text(&entries);
    let shown = ran.stdout.trim_end();
    assert!(!shown.is_empty() && !shown.contains("done"), "{} bytes were shown", shown.len());
    assert!(stored.starts_with(shown), "{} bytes were shown, {} stored", shown.len(), stored.len());
}

#[test]
fn r16_a_log_that_may_not_grow_ends_the_turn_with_a_plain_sentence() {
    let home = Home::with_modes("fork-setsid,ignore-sigterm");
    // Blocks of 512 bytes.
    let ran = Running::start(home.command_after("ulimit -f 400", &["run", LONG])).ends().fails(1, FULL);
    home.is_deserted();
    shown_is_stored(&home, &ran);
    let id = history::sessions(&home.state_folder())[0].0.id.to_string();
    assert_eq!(home.run(&["run", "--resume", &id, "say room"]).succeeds().stdout, "room\n");
    let outcomes = history::outcomes(&history::session(&home.state_folder(), &id));
    assert!(matches!(outcomes[..], [Outcome::Interrupted(_), Outcome::Finished(_)]), "{outcomes:?}");
    history::database_is_sound(&home.state_folder());
}

#[test]
fn r16_a_disk_that_takes_nothing_from_the_start_is_told_before_the_agent_runs() {
    for blocks in [0, 8, 40] {
        let home = Home::with_modes("ok");
        // Standard error and standard output are pipes: no limit touches them.
        let command = home.command_after(&format!("ulimit -f {blocks}"), &["run", "say lost"]);
        let ran = Running::start(command).ends().fails(1, "the sessions on disk cannot be written");
        assert_eq!(ran.stdout, "", "at {blocks} blocks");
        assert!(home.record().starts().is_empty(), "at {blocks} blocks");
        assert_eq!(home.run(&["run", "say room"]).succeeds().stdout, "room\n");
    }
}

#[test]
fn r16_whatever_the_limit_is_nothing_is_shown_that_is_not_stored() {
    for blocks in [48, 64, 96, 128, 200, 1000] {
        let home = Home::with_modes("ok");
        let command = home.command_after(&format!("ulimit -f {blocks}"), &["run", LONG]);
        let ran = Running::start(command).ends();
        // Where the limit lets small files be made, many of them hold it all.
        assert_eq!(ran.code, Some(i32::from(blocks < 1000)), "at {blocks} blocks: {}", ran.stderr);
        let shown = ran.stdout.trim_end();
        let stored = history::sessions(&home.state_folder()).first().map(|(_, entries)| history::text(entries));
        assert!(stored.unwrap_or_default().starts_with(shown), "at {blocks} blocks");
        home.is_deserted();
    }
}

#[test]
fn r16_a_full_file_system_ends_the_turn_and_works_again_when_there_is_room() {
    let home = Home::with_modes("ok");
    let (state, kept) = (home.path(".local/state"), home.path("kept"));
    fs::create_dir_all(&state).unwrap();
    if !can_mount(&home) {
        // Around the test harness, which would swallow it.
        let note = b"r16: no small file system can be mounted here; only limits of file sizes were tested\n";
        std::io::stderr().write_all(note).unwrap();
        return;
    }
    let script = format!(
        "mount -t tmpfs -o size=1500k,mode=700 none '{state}' || exit 99
         \"$0\" run '{LONG}'; echo \"code $?\"
         LOG_FILE='{state}/log' LOG_LEVEL=debug \"$0\" run '{LONG}'; echo \"code $?\"
         mount -o remount,size=64m '{state}'
         \"$0\" run 'say room'; echo \"code $?\"
         cp -a '{state}' '{kept}'",
        state = state.display(),
        kept = kept.display()
    );
    let ran = Running::start(in_own_mounts(&home, &script)).ends().succeeds();
    let parts: Vec<&str> = ran.stdout.split("code ").collect();
    assert_eq!(parts.len(), 4, "{}", ran.stdout);
    assert!(parts[1].starts_with("1\n") && parts[2].starts_with("1\n"), "both runs met the full disk: {}", ran.stderr);
    assert_eq!((&parts[2][2..], parts[3]), ("room\n", "0\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains(FULL), "{}", ran.stderr);
    home.is_deserted();
    let stored: Vec<_> = history::sessions(&kept.join("gembridge")).iter().map(|(_, log)| history::text(log)).collect();
    for shown in [parts[0], &parts[1][2..]].map(str::trim_end) {
        assert!(stored.iter().any(|stored| stored.starts_with(shown)), "{} bytes shown, not stored", shown.len());
    }
    history::database_is_sound(&kept.join("gembridge"));
}

#[test]
fn r16_a_log_file_on_a_full_disk_neither_blocks_nor_stops_a_turn() {
    let home = Home::with_modes("ok");
    for file in ["/dev/full", home.path("log").to_str().unwrap()] {
        let mut command = home.command_after("ulimit -f 400", &["run", "chunks 200 ;; say done"]);
        command.env("LOG_FILE", file).env("LOG_LEVEL", "debug");
        // No room for a single line.
        fs::write(home.path("log"), vec![b'\n'; 400 * 512]).unwrap();
        let ran = Running::start(command).ends().succeeds();
        assert!(ran.stdout.ends_with("chunk-199 done\n"), "{}", ran.stdout);
        assert_eq!(ran.stderr.matches("cannot write the log to").count(), 1, "{}", ran.stderr);
    }
}

/// Whether this user may have file systems of its own.
fn can_mount(home: &Home) -> bool {
    let mut trial = in_own_mounts(home, &format!("mount -t tmpfs none '{}'", home.path("workspace").display()));
    trial.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A script that may mount what nobody else sees, with the binary as its `$0`.
fn in_own_mounts(home: &Home, script: &str) -> Command {
    let run = home.command(&[]);
    let mut command = Command::new("/usr/bin/unshare");
    command.args(["--map-root-user", "--mount", "/bin/sh", "-c", script]).arg(run.get_program()).env_clear();
    command.env("HOME", home.path("")).env("PATH", "/usr/bin:/bin").current_dir(home.path("")).stdin(Stdio::null());
    command
}
