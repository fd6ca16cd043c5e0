//! Sessions as Claude Code and Gemini CLI write them, made of words by a fixed rule: the same each time.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The id of the session of [`one_session`].
pub const LARGE: &str = "aaaaaaaa-0000-4000-8000-000000000000";

/// As large as a session of some days becomes.
const SESSION: u64 = 8_000_000;

const CLAUDE: &str = ".claude/projects/-work-app";
const GEMINI: &str = ".gemini/tmp/app/chats";

const WORDS: &str = "the of to and in that is was for it with as on be at by this had not are but from or have an they \
    which one you were all there would their we been has when who will more if out so said what up its about into than them \
    can only other time new some could these two may first then do any like now over such our even most made after also \
    did many off before must well back through years much where your way down should because long each just state those \
    people too how little good world make very year still see own work day get here old life both between being under \
    three never know same last another while us might great go come since against right came take used few house use place";
const RARE: [&str; 8] = ["deadlock", "flaky", "index", "segment", "parser", "buffer", "guard", "token"];

/// Sessions of both agents with so many bytes in all. How many they are in truth.
pub fn sessions(home: &Path, bytes: u64) -> anyhow::Result<u64> {
    let half = bytes / 2;
    let count = half.div_ceil(SESSION).max(1);
    let mut writer = Writer::default();
    let mut written = 0;
    for number in 0..count {
        let id = format!("{number:08x}-0000-4000-8000-000000000000");
        written += writer.claude(home, &id, half / count)?;
        written += writer.gemini(home, &format!("{number:08x}-1111-4000-8000-000000000000"), half / count)?;
    }
    Ok(written)
}

/// One session of Claude Code.
pub fn one_session(home: &Path, bytes: u64) -> anyhow::Result<u64> {
    Writer::default().claude(home, LARGE, bytes)
}

/// The files that were made.
pub fn files(home: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in [CLAUDE, GEMINI] {
        for entry in fs::read_dir(home.join(folder))? {
            found.push(entry?.path());
        }
    }
    Ok(found)
}

/// Numbers answers over all sessions.
#[derive(Default)]
struct Writer {
    answers: u64,
    state: u64,
}

impl Writer {
    fn claude(&mut self, home: &Path, id: &str, bytes: u64) -> anyhow::Result<u64> {
        fs::create_dir_all(home.join(CLAUDE))?;
        self.file(&home.join(CLAUDE).join(format!("{id}.jsonl")), bytes, Vec::new(), Self::claude_turn)
    }

    fn gemini(&mut self, home: &Path, id: &str, bytes: u64) -> anyhow::Result<u64> {
        fs::create_dir_all(home.join(GEMINI))?;
        let short = id.get(..8).unwrap_or(id);
        let header = json!({"sessionId": id, "projectHash": "h", "startTime": "2026-01-01T00:00:00Z", "kind": "main"});
        let path = home.join(GEMINI).join(format!("session-2026-01-01T00-00-{short}.jsonl"));
        self.file(&path, bytes, vec![header], Self::gemini_turn)
    }

    fn file(
        &mut self,
        path: &Path,
        bytes: u64,
        header: Vec<Value>,
        turn: fn(&mut Self) -> Vec<Value>,
    ) -> anyhow::Result<u64> {
        let mut file = BufWriter::new(File::create(path)?);
        let mut written = 0;
        let mut records = header;
        loop {
            for record in records {
                let line = format!("{record}\n");
                file.write_all(line.as_bytes())?;
                written += line.len() as u64;
            }
            if written >= bytes {
                break;
            }
            records = turn(self);
        }
        file.flush()?;
        Ok(written)
    }

    fn claude_turn(&mut self) -> Vec<Value> {
        let (number, at) = self.next();
        let output = self.text(3_000);
        let usage = json!({"input_tokens": number % 1_000, "output_tokens": number % 77,
            "cache_read_input_tokens": number % 5_000, "cache_creation_input_tokens": number % 300});
        let content = json!([{"type": "text", "text": self.text(500)},
            {"type": "tool_use", "id": format!("t{number}"), "name": "Bash", "input": {"command": self.text(40)}}]);
        vec![
            json!({"type": "user", "uuid": format!("u{number}"), "timestamp": at, "cwd": "/home/me/app",
                "message": {"role": "user", "content": self.text(200)}}),
            json!({"type": "assistant", "uuid": format!("a{number}"), "timestamp": at, "requestId": format!("r{number}"),
                "message": {"id": format!("m{number}"), "role": "assistant", "model": "claude-opus-5", "content": content, "usage": usage}}),
            json!({"type": "user", "uuid": format!("v{number}"), "timestamp": at, "toolUseResult": {"stdout": output}, "message":
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("t{number}"), "content": output}]}}),
        ]
    }

    /// An answer is written three times, as Gemini CLI does.
    fn gemini_turn(&mut self) -> Vec<Value> {
        let (number, at) = self.next();
        let prompt =
            json!({"id": format!("u{number}"), "timestamp": at, "type": "user", "content": [{"text": self.text(200)}]});
        let bare = json!({"id": format!("g{number}"), "timestamp": at, "type": "gemini", "content": self.text(500),
            "thoughts": [{"subject": "Plan", "description": self.text(100), "timestamp": at}], "model": "gemini-3.8-flash"});
        let (input, output, thoughts) = (2_000 + number % 1_000, number % 77, number % 9);
        let mut counted = bare.clone();
        counted["tokens"] = json!({"input": input, "output": output, "cached": number % 500, "thoughts": thoughts, "tool": 0,
            "total": input + output + thoughts});
        let mut called = counted.clone();
        let response = json!({"id": "c", "name": "run_shell_command", "response": {"output": self.text(3_000)}});
        called["toolCalls"] = json!([{"id": format!("c{number}"), "name": "run_shell_command", "args": {"command": "ls"},
            "result": [{"functionResponse": response}], "status": "success", "timestamp": at}]);
        vec![prompt, bare, counted, called]
    }

    /// The number of an answer, and its time.
    fn next(&mut self) -> (u64, String) {
        self.answers += 1;
        let number = self.answers;
        (
            number,
            format!("2026-{:02}-{:02}T{:02}:{:02}:00.000Z", 1 + number % 11, 1 + number % 27, number % 24, number % 60),
        )
    }

    /// So many bytes of words, with a rare one now and then.
    fn text(&mut self, bytes: usize) -> String {
        let common: Vec<&str> = WORDS.split_ascii_whitespace().collect();
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            // The usual linear congruence; its upper bits are good enough for words.
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let pick = usize::try_from(self.state >> 33).unwrap_or(0);
            let word =
                if pick.is_multiple_of(997) { RARE[pick / 997 % RARE.len()] } else { common[pick % common.len()] };
            text.push_str(word);
            text.push(if pick.is_multiple_of(17) { '\n' } else { ' ' });
        }
        text
    }
}
