//! The faults of a prompt: what happens before its script, or instead of it.

use std::io::{self, Write};

use serde_json::json;

use super::{
    agent::{end_process, park_for_ever},
    client_calls, escape, firehose,
    mode::Mode,
    options::Options,
    prompt::{Ended, PromptRun},
    script::Variant,
    surroundings,
    turn::Patience,
    wire::{WRITE_SIZE, chunk, update},
};

pub fn before_script(run: &mut PromptRun) -> Result<(), Ended> {
    let agent = run.agent;
    flood_stderr(&agent.options);
    for mode in &agent.options.modes {
        match mode {
            Mode::HangPrompt => park_for_ever(),
            Mode::CrashMid(pieces) => {
                firehose::chunks(run, *pieces, None, std::time::Duration::ZERO)?;
                eprintln!("fake-agent: about to crash\nfake-agent: crashed as told");
                end_process(3);
            }
            Mode::Exit0Mid => {
                run.say("chunk-0 ")?;
                end_process(0);
            }
            Mode::HalfLine => {
                run.say("chunk-0 ")?;
                let line = update(run.session, &chunk("half a line")).to_string();
                agent.wire.write(&line.as_bytes()[..line.len() / 2]);
                end_process(0);
            }
            Mode::HugeLine(size) => firehose::huge_line(run, *size)?,
            Mode::Flood(total) => firehose::flood(run, *total)?,
            Mode::PermissionStorm(count) => permission_storm(run, *count)?,
            Mode::FsEscape => escape::try_all(run)?,
            Mode::DumpEnv => run.say(&surroundings::describe().to_string())?,
            _ => {}
        }
    }
    Ok(())
}

/// In these modes a prompt without a script has its answer already.
pub fn answers_by_itself(options: &Options) -> bool {
    options.modes.iter().any(|mode| matches!(mode, Mode::PermissionStorm(_) | Mode::FsEscape | Mode::DumpEnv))
}

pub fn flood_stderr(options: &Options) {
    let Some(Mode::StderrFlood(total)) = options.modes.iter().find(|mode| matches!(mode, Mode::StderrFlood(_))) else {
        return;
    };
    let line = b"fake-agent: this line is one of very many on stderr\n";
    let block = line.repeat(WRITE_SIZE / line.len());
    let mut written = 0;
    let mut stderr = io::stderr().lock();
    while written < *total && stderr.write_all(&block).is_ok() {
        written += block.len();
    }
}

fn permission_storm(run: &PromptRun, count: usize) -> Result<(), Ended> {
    let options = client_calls::offered(Variant::Usual);
    let requests: Vec<u64> = (0..count)
        .map(|number| {
            let tool = json!({"toolCallId": client_calls::tool_call_id("storm"), "title": format!("storm {number}"),
                "kind": "execute", "status": "pending"});
            let params = json!({"sessionId": run.session, "options": options, "toolCall": tool});
            run.agent.request(run.turn, "session/request_permission", &params)
        })
        .collect();
    let (mut allowed, mut rejected, mut cancelled, mut errors) = (0, 0, 0, 0);
    for request in requests {
        let response = run.turn.wait_for_answer(request, Patience::UntilCancelled)?;
        let outcome = client_calls::outcome_of(&response, &options);
        let counter = match outcome.split(['_', ' ']).next() {
            Some("allow") => &mut allowed,
            Some("reject") => &mut rejected,
            Some("cancelled") => &mut cancelled,
            _ => &mut errors,
        };
        *counter += 1;
    }
    run.say(&format!("storm: {allowed} allowed, {rejected} rejected, {cancelled} cancelled, {errors} errors"))
}
