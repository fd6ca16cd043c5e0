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
    buffer: Vec<u8>,
}

impl Export for Json {
    fn begin(&mut self, out: &mut dyn Write, session: &Located) -> io::Result<()> {
        let (id, agent) = (json!(session.id), json!(session.agent.name()));
        let (parent, files) = (json!(session.parent), json!(session.paths()));
        write!(out, "{{\"id\":{id},\"agent\":{agent},\"parent\":{parent},\"files\":{files},\"messages\":[")
    }

    fn message(&mut self, out: &mut dyn Write, message: &UnifiedMessage) -> io::Result<()> {
        self.buffer.extend_from_slice(if self.count == 0 { b"\n" } else { b",\n" });
        self.count += 1;
        message.append_json(&mut self.buffer)?;
        write_if_full(&mut self.buffer, out)
    }

    fn end(&mut self, out: &mut dyn Write, facts: &Facts) -> io::Result<()> {
        out.write_all(&self.buffer)?;
        let known = serde_json::to_string(facts)?;
        // An object that is continued by another: `{"title":…}` without its brace.
        writeln!(out, "\n],{}", &known[1..])
    }
}

#[derive(Default)]
pub struct Lines {
    buffer: Vec<u8>,
}

impl Export for Lines {
    fn begin(&mut self, _: &mut dyn Write, _: &Located) -> io::Result<()> {
        Ok(())
    }

    fn message(&mut self, out: &mut dyn Write, message: &UnifiedMessage) -> io::Result<()> {
        message.append_json(&mut self.buffer)?;
        self.buffer.push(b'\n');
        write_if_full(&mut self.buffer, out)
    }

    fn end(&mut self, out: &mut dyn Write, _: &Facts) -> io::Result<()> {
        out.write_all(&self.buffer)
    }
}

/// Messages are gathered here rather than by the writer, which would copy each once more.
fn write_if_full(buffer: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
    const FULL: usize = 256 << 10;
    if buffer.len() >= FULL {
        out.write_all(buffer)?;
        buffer.clear();
    }
    Ok(())
}
