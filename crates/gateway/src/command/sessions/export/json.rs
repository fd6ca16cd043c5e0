//! Sessions for programs: one object, or a message a line.

use std::io::{self, Write};

use gembridge_transcripts::{Facts, Located};
use gembridge_unified::UnifiedMessage;
use serde_json::json;

use super::Export;

/// `{"id", "agent", "messages": […], "title", …}`. What is known at the end only stands at the end, so that a session of
/// any size is written in the memory of one message.
#[derive(Default)]
pub struct Json {
    count: u64,
}

impl Export for Json {
    fn begin(&mut self, out: &mut dyn Write, session: &Located) -> io::Result<()> {
        let (id, agent) = (json!(session.id), json!(session.agent.name()));
        let (parent, files) = (json!(session.parent), json!(session.paths()));
        write!(out, "{{\"id\":{id},\"agent\":{agent},\"parent\":{parent},\"files\":{files},\"messages\":[")
    }

    fn message(&mut self, out: &mut dyn Write, message: &UnifiedMessage) -> io::Result<()> {
        out.write_all(if self.count == 0 { b"\n" } else { b",\n" })?;
        self.count += 1;
        Ok(serde_json::to_writer(out, message)?)
    }

    fn end(&mut self, out: &mut dyn Write, facts: &Facts) -> io::Result<()> {
        let known = serde_json::to_string(facts)?;
        // An object that is continued by another: `{"title":…}` without its brace.
        writeln!(out, "\n],{}", &known[1..])
    }
}

pub struct Lines;

impl Export for Lines {
    fn begin(&mut self, _: &mut dyn Write, _: &Located) -> io::Result<()> {
        Ok(())
    }

    fn message(&mut self, out: &mut dyn Write, message: &UnifiedMessage) -> io::Result<()> {
        serde_json::to_writer(&mut *out, message)?;
        out.write_all(b"\n")
    }

    fn end(&mut self, _: &mut dyn Write, _: &Facts) -> io::Result<()> {
        Ok(())
    }
}
