//! The words that drive the agent: one table for `--help`, the prompt `help`, the advertised commands and the docs.

use std::fmt::Write as _;

pub(crate) struct Word {
    pub name: &'static str,
    /// What follows the word on its line.
    pub takes: &'static str,
    pub shows: &'static str,
}

const fn word(name: &'static str, takes: &'static str, shows: &'static str) -> Word {
    Word { name, takes, shows }
}

pub(crate) const WORDS: &[Word] = &[
    word("help", "", "this table"),
    word("think", "[text]", "thoughts, then text"),
    word("story", "[N]", "N lines, word by word"),
    word("long", "[N]", "N lines, line by line"),
    word("slow", "[N] [MS]", "N words, one every MS milliseconds (also `pace`)"),
    word("chunks", "N [size S]", "N numbered chunks of S bytes, as fast as they are read"),
    word("tool", "", "a tool call: pending, in progress, completed, with a location"),
    word("edit", "", "an edit tool call with a diff; no file is touched (also `diff`)"),
    word("plan", "", "a plan whose entries progress"),
    word("permission", "[command]", "asks for permission; mode `yolo` does not ask"),
    word("run", "<command>", "the same for a command; nothing is executed"),
    word("image", "", "an image"),
    word("markdown", "[hostile]", "tables, code, lists; with `hostile`, HTML that must stay text"),
    word("unicode", "", "CJK, emoji, right-to-left text, cut between code points"),
    word("json", "[value]", "an answer that is only JSON: the value, or a sample"),
    word("refuse", "", "stop reason `refusal`"),
    word("max_tokens", "", "stop reason `max_tokens`"),
    word("max_turns", "", "stop reason `max_turn_requests`"),
    word("error", "[code] [text]", "a JSON-RPC error instead of an answer"),
    word("crash", "[code]", "the process exits in the middle of the turn"),
    word("wait", "", "silence until cancelled"),
    word("usage", "", "the words counted so far (a word counts as a token)"),
    word("read", "<path> [line] [limit]", "reads a file through the client"),
    word("write", "<path> <text>", "writes a file through the client"),
    word("terminal", "<command>", "runs a command in a terminal of the client"),
    word("elicit", "", "asks the user to fill in a form"),
    word("tools", "", "the tools of the session's MCP servers"),
    word("call", "<tool> [json]", "one MCP tool call; the answer holds its result"),
    word("call", "<a> <json> and <b> <json>", "several at once"),
    word("answer-with", "<tool> [json]", "one call; the answer is only `done`"),
    word("parallel", "", "as the first line: all following `call` lines at once"),
    word("rounds", "N <tool> [json]", "N calls one after the other, `round` added to the arguments"),
    word("next", "<words>", "what the next prompt of the session is taken for, whatever it says"),
    word("history", "", "your earlier prompts in this session"),
    word("count", "", "how many turns this session has had"),
];

/// The table as Markdown: what the prompt `help` and the documentation show.
pub(crate) fn table() -> String {
    let mut table = String::from("| word | what it shows |\n|---|---|\n");
    for word in WORDS {
        let line = format!("{} {}", word.name, word.takes);
        // Writing to a String cannot fail.
        writeln!(table, "| `{}` | {} |", line.trim_end(), word.shows).ok();
    }
    table
}

/// The answer to `--help`.
pub(crate) fn usage() -> String {
    let mut usage = String::from(
        "A demo agent that speaks ACP (JSON-RPC lines) on stdin and stdout. It is no model: what it does is driven\n\
         by the words below at the start of a prompt's line. Any other prompt is echoed.\n\n\
         Usage: gembridge demo-agent [--start-delay-ms N] [--token-delay-ms N]\n\n\
         \x20 --start-delay-ms N   take N milliseconds to start\n\
         \x20 --token-delay-ms N   pause N milliseconds before each streamed word (default 0)\n\
         \x20 --help               show this\n\nWords:\n",
    );
    for word in WORDS {
        let line = format!("{} {}", word.name, word.takes);
        writeln!(usage, "  {:<28} {}", line.trim_end(), word.shows).ok();
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_shows_the_same_table() {
        assert!(include_str!("words.md").ends_with(&table()), "write this table to words.md:\n{}", table());
    }
}
