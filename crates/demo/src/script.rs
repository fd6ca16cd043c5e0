//! From a prompt's text to the steps of a turn: each line that begins with a known word is a step.
//!
//! A word whose operands do not fit is no step, so that "history of Rome" is an ordinary prompt.

use std::time::Duration;

use serde_json::Value;

#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Help,
    Think(String),
    Story(u64),
    Long(u64),
    Slow {
        words: u64,
        every: Duration,
    },
    Chunks {
        count: u64,
        size: usize,
    },
    Tool,
    Edit,
    Plan,
    Permission(String),
    Image,
    Markdown,
    Hostile,
    Unicode,
    Json(Option<String>),
    Stop(StopReason),
    Error {
        code: i64,
        message: String,
    },
    Crash(u8),
    Wait,
    Usage,
    Read {
        path: String,
        line: Option<u64>,
        limit: Option<u64>,
    },
    Write {
        path: String,
        text: String,
    },
    Terminal(String),
    Elicit,
    Tools,
    Call(Call),
    AnswerWith(Call),
    Parallel(Vec<Call>),
    Rounds {
        rounds: u64,
        call: Call,
    },
    /// What a later prompt of the session is taken for, whatever it says.
    Next(String),
    History,
    Count,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub tool: String,
    /// The arguments, or why they are not JSON.
    pub arguments: Result<Value, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

/// The largest text of one chunk, so that one word cannot take all memory.
const LARGEST_CHUNK: usize = 16 * 1024 * 1024;

/// The steps of a prompt; none for a plain prompt.
pub(crate) fn read(text: &str) -> Vec<Step> {
    let Some(block) = last_user_block(text) else { return steps(text) };
    // A folded prompt holds earlier turns and instructions around the question: only the last word counts, and what it says of
    // later prompts.
    let mut found = steps(&block);
    let first = found.iter().rposition(|step| !matches!(step, Step::Next(_))).unwrap_or(0);
    found.drain(..first);
    found
}

fn steps(text: &str) -> Vec<Step> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    if lines.clone().next().is_some_and(|first| without_slash(first) == "parallel") {
        let calls = lines.skip(1).filter_map(step).filter_map(|step| match step {
            Step::Call(call) | Step::AnswerWith(call) => Some(vec![call]),
            Step::Parallel(calls) => Some(calls),
            _ => None,
        });
        return vec![Step::Parallel(calls.flatten().collect())];
    }
    lines.by_ref().filter_map(step).collect()
}

/// The text after the last `[User]` at a line start, up to the next role; `None` if the prompt is not folded. A block whose
/// tools have answered already asks for nothing more.
fn last_user_block(text: &str) -> Option<String> {
    let mut block: Option<Vec<&str>> = None;
    let mut inside = false;
    for line in text.lines() {
        match role(line) {
            Some((role, rest)) if role.eq_ignore_ascii_case("user") => {
                block = Some(vec![rest]);
                inside = true;
            }
            Some((role, _)) => {
                inside = false;
                if role.eq_ignore_ascii_case("tool") {
                    block = block.map(|_| Vec::new());
                }
            }
            None if inside => block.get_or_insert_default().push(line),
            None => {}
        }
    }
    block.map(|lines| lines.join("\n"))
}

fn role(line: &str) -> Option<(&str, &str)> {
    const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "instructions"];
    let (role, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    ROLES.iter().any(|known| known.eq_ignore_ascii_case(role)).then_some((role, rest.trim_start_matches(':').trim()))
}

/// The advertised commands arrive with a slash, typed words without.
fn without_slash(line: &str) -> &str {
    line.strip_prefix('/').unwrap_or(line)
}

fn step(line: &str) -> Option<Step> {
    let line = without_slash(line.trim());
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    bare(word).filter(|_| rest.is_empty()).or_else(|| with_operands(word, rest))
}

/// Words that stand alone on their line.
fn bare(word: &str) -> Option<Step> {
    Some(match word {
        "help" => Step::Help,
        "tool" => Step::Tool,
        "edit" | "diff" => Step::Edit,
        "plan" => Step::Plan,
        "image" => Step::Image,
        "markdown" => Step::Markdown,
        "hostile" => Step::Hostile,
        "unicode" => Step::Unicode,
        "refuse" => Step::Stop(StopReason::Refusal),
        "max_tokens" => Step::Stop(StopReason::MaxTokens),
        "max_turns" => Step::Stop(StopReason::MaxTurnRequests),
        "wait" => Step::Wait,
        "usage" => Step::Usage,
        "elicit" => Step::Elicit,
        "tools" => Step::Tools,
        "history" => Step::History,
        "count" => Step::Count,
        _ => return None,
    })
}

fn with_operands(word: &str, rest: &str) -> Option<Step> {
    match word {
        "think" => Some(Step::Think(rest.to_owned())),
        "story" => numbers(rest).map(|n| Step::Story(n.first().copied().unwrap_or(5))),
        "long" => numbers(rest).map(|n| Step::Long(n.first().copied().unwrap_or(100))),
        "slow" | "pace" => numbers(rest).map(|n| Step::Slow {
            words: n.first().copied().unwrap_or(20),
            every: Duration::from_millis(n.get(1).copied().unwrap_or(50)),
        }),
        "chunks" => chunks(rest),
        "markdown" => (rest == "hostile").then_some(Step::Hostile),
        "permission" if rest.is_empty() => Some(Step::Permission("make demo".to_owned())),
        "permission" | "run" => (!rest.is_empty()).then(|| Step::Permission(rest.to_owned())),
        "json" => json(rest),
        "error" => error(rest),
        "crash" if rest.is_empty() => Some(Step::Crash(1)),
        "crash" => rest.parse().ok().map(Step::Crash),
        "read" => read_file(rest),
        "write" => {
            let (path, text) = rest.split_once(char::is_whitespace)?;
            looks_like_a_path(path).then(|| Step::Write { path: path.to_owned(), text: text.trim().to_owned() })
        }
        "terminal" => (!rest.is_empty()).then(|| Step::Terminal(rest.to_owned())),
        "call" => calls(rest),
        "answer-with" => call(rest).map(|(call, _)| Step::AnswerWith(call)),
        "rounds" => {
            let (rounds, rest) = rest.split_once(char::is_whitespace)?;
            let (rounds, (call, _)) = (rounds.parse().ok()?, call(rest.trim())?);
            Some(Step::Rounds { rounds, call })
        }
        "next" => step(rest).map(|_| Step::Next(rest.to_owned())),
        _ => None,
    }
}

/// All operands as numbers, `ms` and `lines` being decoration; `None` if there is any other word.
fn numbers(rest: &str) -> Option<Vec<u64>> {
    rest.split_whitespace()
        .filter(|word| !matches!(*word, "ms" | "lines" | "words"))
        .map(|word| word.strip_suffix("ms").unwrap_or(word).parse().ok())
        .collect()
}

fn chunks(rest: &str) -> Option<Step> {
    let mut operands = rest.split_whitespace().filter(|word| *word != "size");
    let count = operands.next()?.parse().ok()?;
    let size = operands.next().map_or(Some(0), |size| size.parse().ok())?;
    Some(Step::Chunks { count, size: size.min(LARGEST_CHUNK) })
}

fn json(rest: &str) -> Option<Step> {
    if rest.is_empty() {
        return Some(Step::Json(None));
    }
    serde_json::from_str::<&serde_json::value::RawValue>(rest).ok().map(|_| Step::Json(Some(rest.to_owned())))
}

fn error(rest: &str) -> Option<Step> {
    let (code, message) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let code = if code.is_empty() { -32603 } else { code.parse().ok()? };
    let message = message.trim();
    let message = if message.is_empty() { "the demo agent was asked to fail" } else { message };
    Some(Step::Error { code, message: message.to_owned() })
}

fn read_file(rest: &str) -> Option<Step> {
    let (path, range) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let range = numbers(range)?;
    (!path.is_empty()).then(|| Step::Read {
        path: path.to_owned(),
        line: range.first().copied(),
        limit: range.get(1).copied(),
    })
}

fn looks_like_a_path(word: &str) -> bool {
    word.contains(['/', '.'])
}

/// One call, or several that are joined by `and`.
fn calls(rest: &str) -> Option<Step> {
    let (first, mut rest) = call(rest)?;
    let mut calls = vec![first];
    while let Some(further) = rest.strip_prefix("and ") {
        let (next, left) = call(further.trim())?;
        calls.push(next);
        rest = left;
    }
    if !rest.is_empty() {
        return None;
    }
    match <[Call; 1]>::try_from(calls) {
        Ok([call]) => Some(Step::Call(call)),
        Err(calls) => Some(Step::Parallel(calls)),
    }
}

/// A tool with its arguments, and what follows them.
fn call(rest: &str) -> Option<(Call, &str)> {
    let (tool, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
    let arguments = arguments.trim();
    if tool.is_empty() || !arguments.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
    let (read, left) = match values.next() {
        Some(Ok(value)) => (Ok(value), arguments[values.byte_offset()..].trim()),
        Some(Err(error)) => (Err(error.to_string()), ""),
        None => return None,
    };
    Some((Call { tool: tool.to_owned(), arguments: read }, left))
}

/// Splits a command line at blanks; single and double quotes keep blanks together.
pub(crate) fn command_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '\'' || letter == '"' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(prompt: &str, expected: &[Step]) {
        assert_eq!(read(prompt), expected, "prompt {prompt:?}");
    }

    #[test]
    fn words_at_line_starts_become_steps() {
        check("help", &[Step::Help]);
        check("/help", &[Step::Help]);
        check("hello\n  tool\nthink of it", &[Step::Tool, Step::Think("of it".into())]);
        check("slow 10 20 ms", &[Step::Slow { words: 10, every: Duration::from_millis(20) }]);
        check("pace 3 5ms", &[Step::Slow { words: 3, every: Duration::from_millis(5) }]);
        check("chunks 100 size 64", &[Step::Chunks { count: 100, size: 64 }]);
        check("error 429 too many requests", &[Step::Error { code: 429, message: "too many requests".into() }]);
        check("read a.txt 2 3", &[Step::Read { path: "a.txt".into(), line: Some(2), limit: Some(3) }]);
        check("markdown hostile", &[Step::Hostile]);
        check("run rm -rf x", &[Step::Permission("rm -rf x".into())]);
        check("json [1, 2]", &[Step::Json(Some("[1, 2]".into()))]);
        check("crash 9", &[Step::Crash(9)]);
    }

    #[test]
    fn ordinary_sentences_stay_plain() {
        for prompt in [
            "history of Rome",
            "plan a trip",
            "error in my code",
            "read the docs please",
            "write a poem",
            "story about a dog",
            "call me later",
            "Please help",
            "",
        ] {
            check(prompt, &[]);
        }
    }

    #[test]
    fn calls_carry_their_arguments_or_what_is_wrong_with_them() {
        let call = |tool: &str, arguments| Call { tool: tool.into(), arguments: Ok(arguments) };
        check("call now", &[Step::Call(call("now", json!({})))]);
        check("answer-with out {\"a\": 1}", &[Step::AnswerWith(call("out", json!({"a": 1})))]);
        check(
            "parallel\ncall a\nand also\ncall b {\"x\":2}",
            &[Step::Parallel(vec![call("a", json!({})), call("b", json!({"x": 2}))])],
        );
        check(
            "call a {\"x\": {\"and\": 1}} and b {} and c {\"y\":3}",
            &[Step::Parallel(vec![
                call("a", json!({"x": {"and": 1}})),
                call("b", json!({})),
                call("c", json!({"y": 3})),
            ])],
        );
        check("rounds 25 a {\"x\":2}", &[Step::Rounds { rounds: 25, call: call("a", json!({"x": 2})) }]);
        check("call a {} or else", &[]);
        let [Step::Call(broken)] = &read("call a {\"x\"")[..] else { panic!("not a call") };
        assert!(broken.arguments.is_err());
    }

    #[test]
    fn a_folded_prompt_is_read_in_its_last_user_block() {
        check("[System]\ntool\n\n[User]\nplan\n\n[Assistant]\nimage\n\n[User]\nhi\nthink\ncount", &[Step::Count]);
        check("[System] tool\n[User] help", &[Step::Help]);
        check("[System] tool\n[User] hello", &[]);
        check("[User]\ncount\n[Assistant]\ntool", &[Step::Count]);
        check("[User]\ntool\ncount\nnext json {}", &[Step::Count, Step::Next("json {}".into())]);
        check("[User]\nnext week", &[]);
        check("[User]\ncall a\n[Assistant]\ncalled\n[Tool]\na gave back: 1", &[]);
        check("[User]\ncall a\n[Tool]\n1\n[User]\ncount", &[Step::Count]);
        assert!(matches!(&read("[User]\nparallel\ncall a\ncall b")[..], [Step::Parallel(calls)] if calls.len() == 2));
    }

    #[test]
    fn quotes_keep_the_words_of_a_command_together() {
        assert_eq!(command_words("sh -c 'exit  3' \"\""), ["sh", "-c", "exit  3", ""]);
    }
}
