//! The chat in a real terminal: what a person sees, types and interrupts.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crate::support::home::Home;
use crate::support::terminal;

/// Long enough for a loaded machine; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_mins(1);

/// The binary with a terminal of its own, in which Ctrl-C is a key.
struct Screen {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Screen {
    fn start(home: &Home, args: &[&str]) -> Self {
        let (child, mut screen) = terminal::start(&home.command(args), "xterm", &["--wait"]);
        let keyboard = screen.try_clone().unwrap();
        let (sender, output) = sync_channel(1024);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The terminal is gone when its last user is.
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, output, seen: String::new() }
    }

    /// Waits until `text` appears after everything that was waited for before.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("`{text}` does not appear ({error}); the screen shows {:?}", self.seen),
            }
        }
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn ends_with(mut self, code: i32) {
        assert_eq!(self.child.wait().unwrap().code(), Some(code), "{:?}", self.seen);
    }
}

#[test]
fn a_person_chats_answers_a_permission_and_leaves() {
    let home = Home::new();
    let mut screen = Screen::start(&home, &["chat", "--agent", "demo", "--no-color"]);
    screen.shows("Ctrl-D leaves");
    screen.shows("> ");
    screen.types("think about it\n");
    screen.shows("(thinking) ");
    screen.shows("I pretended to think");
    screen.shows("> ");
    screen.types("permission rm -rf build\n");
    screen.shows("? the agent asks to execute:");
    screen.shows("rm -rf build");
    screen.shows("your choice");
    screen.types("perhaps\n");
    screen.shows("your choice");
    screen.types("y\n");
    screen.shows("Allowed");
    screen.shows("> ");
    screen.types("permission rm -rf build\n");
    screen.shows("your choice");
    screen.types("n\n");
    screen.shows("Rejected");
    screen.shows("> ");
    screen.types("\u{4}");
    screen.ends_with(0);
}

#[test]
fn f16_a_person_at_a_terminal_is_told_the_first_key_and_a_link_with_it() {
    let home = Home::new();
    let mut screen = Screen::start(&home, &["serve", "--port", "0", "--agent", "demo", "--no-color"]);
    screen.shows("key     gb-");
    screen.shows("shown this once");
    screen.shows("/#key=gb-");
    screen.shows("/docs");
    screen.types("\u{3}");
    // By its own end or by the signal, whichever is ready first.
    screen.child.wait().unwrap();
}

#[test]
fn s16_an_exported_document_does_not_steer_the_terminal_and_a_file_has_it_as_it_is() {
    let home = Home::new();
    let line = serde_json::json!({"type": "user", "uuid": "u", "cwd": "/w", "message": {"role": "user",
        "content": "a\u{1b}]52;c;x\u{7}b"}});
    crate::sessions::write(&home, ".claude/projects/p/abc.jsonl", format!("{line}\n"));
    let export = ["sessions", "export", "abc", "--format", "markdown"];
    let mut screen = Screen::start(&home, &export);
    screen.shows("a\\u{1b}]52;c;x\\u{7}b");
    screen.ends_with(0);
    let file = home.run(&export).succeeds().stdout;
    assert!(file.contains("a\u{1b}]52;c;x\u{7}b"), "{file:?}");
}

#[test]
fn ctrl_c_cancels_the_turn_and_the_chat_goes_on() {
    let home = Home::new();
    let mut screen = Screen::start(&home, &["chat", "--agent", "demo"]);
    screen.shows("> ");
    screen.types("wait\n");
    screen.shows("waiting for");
    screen.types("\u{3}");
    screen.shows("cancelled");
    screen.shows("> ");
    screen.types("hello again\n");
    screen.shows("You wrote");
    screen.shows("> ");
    // Nothing runs: a slip of the hand does not end the chat.
    screen.types("\u{3}");
    screen.shows("Ctrl-D or /exit leaves");
    screen.shows("> ");
    screen.types("/exit\n");
    screen.ends_with(0);
}

#[test]
fn a_prompt_is_edited_with_history_cursor_keys_and_completion() {
    let home = Home::new();
    let mut screen = Screen::start(&home, &["chat", "--agent", "demo", "--no-color"]);
    screen.shows("> ");
    // Home, then a word before the rest.
    screen.types("world\u{1}hello \n");
    screen.shows("You wrote");
    screen.shows("hello world");
    screen.shows("> ");
    screen.types("\u{1b}[A again\n");
    screen.shows("You wrote");
    screen.shows("hello world again");
    screen.shows("> ");
    screen.types("/qu\t\n");
    screen.ends_with(0);
    let history = home.path(".local/state/gembridge/chat_history").metadata().unwrap();
    assert_eq!(history.permissions().mode() & 0o077, 0, "what was typed is for its owner only");
    let mut screen = Screen::start(&home, &["chat", "--agent", "demo", "--no-color"]);
    screen.shows("> ");
    screen.types("\u{1b}[A\u{1b}[A\n");
    screen.shows("You wrote");
    screen.shows("hello world again");
    screen.shows("> ");
    screen.types("\u{4}");
    screen.ends_with(0);
}

#[test]
fn a_paste_of_many_lines_is_one_prompt() {
    let home = Home::new();
    let mut screen = Screen::start(&home, &["chat", "--agent", "demo", "--no-color"]);
    screen.shows("> ");
    screen.types("\u{1b}[200~first line\rsecond line\u{1b}[201~");
    screen.shows("second line");
    screen.types("\n");
    screen.shows("You wrote");
    screen.shows("first line");
    screen.shows("second line");
    screen.shows("> ");
    screen.types("\u{4}");
    screen.ends_with(0);
}

#[test]
fn ctrl_c_ends_a_run_with_its_own_exit_code() {
    let home = Home::new();
    let mut screen = Screen::start(&home, &["run", "--agent", "demo", "wait"]);
    screen.shows("waiting for");
    screen.types("\u{3}");
    screen.ends_with(130);
}

#[test]
fn colours_are_for_terminals_and_can_be_turned_off() {
    let home = Home::new();
    let mut screen = Screen::start(&home, &["run", "--agent", "demo", "think hard"]);
    screen.shows("\u{1b}[2m");
    screen.shows("tokens");
    screen.ends_with(0);
    let mut screen = Screen::start(&home, &["--no-color", "run", "--agent", "demo", "think hard"]);
    screen.shows("(thinking) ");
    screen.ends_with(0);
}
