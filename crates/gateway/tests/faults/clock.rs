//! The wall clock jumps in the middle of a turn: nothing fires, nothing sticks, nothing is out of order.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gembridge_core::model::{Event, Timestamp};

use crate::history;
use crate::support::home::Home;
use crate::support::run::Running;

const HOUR: u64 = 3_600_000;

/// The library that lies to a program about the time.
fn libfaketime() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path());
    let mut libraries = folders.map(|folder| folder.join("faketime/libfaketime.so.1"));
    let found = libraries.find(|library| library.exists());
    found.expect("libfaketime is not installed; run `scripts/setup tests`, or install Debian's `faketime`")
}

/// A clock that a test sets.
struct Clock {
    file: PathBuf,
}

impl Clock {
    fn of(home: &Home) -> Self {
        let clock = Self { file: home.path("clock") };
        clock.jump("+0");
        clock
    }

    fn jump(&self, offset: &str) {
        // In one step: a file that is empty for a moment would be a clock without a time.
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{offset}\n")).unwrap();
        fs::rename(next, &self.file).unwrap();
    }

    /// Only the wall clock of the gateway: what measures how long something takes is left alone.
    fn command(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.command(args);
        command.env("LD_PRELOAD", libfaketime()).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        command.env("FAKETIME_NO_CACHE", "1").env("DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
        command
    }
}

#[test]
fn r18_a_clock_that_jumps_in_the_middle_of_a_turn_changes_nothing_but_the_time() {
    let home = Home::with_modes("ok");
    let clock = Clock::of(&home);
    let began = Timestamp::now();
    let jumps = ["-3600", "+86400", "-86400"];
    for (number, offset) in jumps.into_iter().enumerate() {
        clock.jump("+0");
        let go = home.path(&format!("go-{number}"));
        let prompt = format!("say before ;; until {} ;; chunks 20 delay 10 ;; say after", go.display());
        let mut run = Running::start(clock.command(&home, &["run", &prompt]));
        run.shows("before");
        clock.jump(offset);
        fs::write(&go, "").unwrap();
        let ran = run.ends().succeeds();
        assert!(ran.stdout.starts_with("before") && ran.stdout.ends_with("after\n"), "{offset}: {}", ran.stdout);
        assert_eq!(ran.stderr, "", "{offset}");
        // A session that is begun on the other side of the jump.
        Running::start(clock.command(&home, &["run", "say beyond"])).ends().succeeds();
    }
    home.is_deserted();

    let sessions = history::sessions(&home.state_folder());
    let ids: BTreeSet<String> = sessions.iter().map(|(record, _)| record.id.to_string()).collect();
    assert_eq!(ids.len(), 2 * jumps.len(), "every session has an id of its own");
    for (_, entries) in &sessions {
        history::is_in_order(entries);
        history::outcomes(entries);
    }
    let created = |at: Timestamp| sessions.iter().filter(|(record, _)| record.created >= at).count();
    assert_eq!(created(Timestamp(began.0 - 2 * HOUR)), 5, "one was begun a day ago");
    assert_eq!(created(began), 4, "and one an hour ago");
    assert_eq!(created(Timestamp(began.0 + 23 * HOUR)), 1, "and one tomorrow");
    let leaps = sessions.iter().filter(|(_, log)| log.last().unwrap().at.0 > log[0].at.0 + 23 * HOUR).count();
    assert_eq!(leaps, 1, "the turn that saw the clock go forward says so");
}

#[test]
fn r18_a_session_goes_on_with_a_clock_that_was_set_back() {
    let home = Home::with_modes("ok");
    let clock = Clock::of(&home);
    clock.jump("+86400");
    Running::start(clock.command(&home, &["run", "say tomorrow"])).ends().succeeds();
    let id = history::sessions(&home.state_folder())[0].0.id.to_string();
    for offset in ["+0", "-86400"] {
        clock.jump(offset);
        let ran = Running::start(clock.command(&home, &["run", "--resume", &id, "say today"])).ends().succeeds();
        assert_eq!(ran.stdout, "today\n");
    }
    let entries = history::session(&home.state_folder(), &id);
    history::is_in_order(&entries);
    assert_eq!(history::text(&entries), "tomorrowtodaytoday");
    assert_eq!(entries.iter().filter(|entry| matches!(entry.event, Event::Ended(_))).count(), 3);
}

#[test]
fn r18_a_deadline_goes_by_the_time_that_passes_not_by_the_clock() {
    let jump = |offset: &str| {
        let home = Home::with_modes("ok");
        let clock = Clock::of(&home);
        let mut run = Running::start(clock.command(&home, &["run", "--timeout", "8", "say before ;; wait-cancel"]));
        run.shows("before");
        clock.jump(offset);
        let ran = run.ends().fails(4, "the turn took longer than 8 s");
        assert_eq!(ran.stdout, "before\n", "{offset}");
        home.is_deserted();
    };
    std::thread::scope(|scope| {
        for offset in ["-86400", "-3600", "+86400"] {
            scope.spawn(move || jump(offset));
        }
    });
}
