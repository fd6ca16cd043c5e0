//! Many small updates, written as fast as a pipe takes them.

use std::time::Duration;

use serde_json::json;

use super::{
    prompt::{Ended, PromptRun},
    wire::WRITE_SIZE,
};

pub fn chunks(run: &PromptRun, count: usize, size: Option<usize>, delay: Duration) -> Result<(), Ended> {
    let lines = Lines::new(run.session, size);
    let mut buffer = Vec::with_capacity(WRITE_SIZE + 4096);
    for number in 0..count {
        lines.add(number, &mut buffer);
        if buffer.len() >= WRITE_SIZE || !delay.is_zero() {
            flush(run, &mut buffer)?;
            run.turn.pause(delay)?;
        }
    }
    flush(run, &mut buffer)
}

pub fn burst(run: &PromptRun, count: usize, size: Option<usize>) -> Result<(), Ended> {
    let lines = Lines::new(run.session, size);
    let mut buffer = Vec::new();
    for number in 0..count {
        lines.add(number, &mut buffer);
    }
    flush(run, &mut buffer)
}

/// Whole lines until their bytes reach `total`.
pub fn flood(run: &PromptRun, total: usize) -> Result<(), Ended> {
    let lines = Lines::new(run.session, Some(60));
    let mut buffer = Vec::with_capacity(WRITE_SIZE + 4096);
    let mut written = 0;
    while written < total {
        while buffer.len() < WRITE_SIZE.min(total - written) {
            lines.add(0, &mut buffer);
        }
        written += buffer.len();
        flush(run, &mut buffer)?;
    }
    Ok(())
}

/// One update whose text has `size` bytes, never held in memory whole.
pub fn huge_line(run: &PromptRun, size: usize) -> Result<(), Ended> {
    let lines = Lines::new(run.session, None);
    let mut left = size;
    run.agent.wire.write(&lines.before);
    while left > 0 {
        let piece = left.min(WRITE_SIZE);
        run.agent.wire.write(&vec![b'x'; piece]);
        left -= piece;
    }
    run.agent.wire.write(&lines.after);
    run.turn.pause(Duration::ZERO).map_err(Ended::from)
}

struct Lines {
    before: Vec<u8>,
    after: Vec<u8>,
    text: Option<Vec<u8>>,
}

impl Lines {
    /// By hand, for the order in which real agents write the fields.
    fn new(session: &str, size: Option<usize>) -> Self {
        let before = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":{},"update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":""#,
            json!(session),
        );
        Self { before: before.into(), after: b"\"}}}}\n".to_vec(), text: size.map(|size| vec![b'x'; size]) }
    }

    fn add(&self, number: usize, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&self.before);
        match &self.text {
            Some(text) => buffer.extend_from_slice(text),
            None => buffer.extend_from_slice(format!("chunk-{number} ").as_bytes()),
        }
        buffer.extend_from_slice(&self.after);
    }
}

fn flush(run: &PromptRun, buffer: &mut Vec<u8>) -> Result<(), Ended> {
    run.agent.wire.write(buffer);
    buffer.clear();
    run.turn.pause(Duration::ZERO).map_err(Ended::from)
}
