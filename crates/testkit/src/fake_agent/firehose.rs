//! Many small updates, written as fast as a pipe takes them.

use std::time::Duration;

use serde_json::json;

use super::{
    prompt::{Ended, Stage},
    wire::WRITE_SIZE,
};

pub fn chunks(stage: &Stage, count: usize, size: Option<usize>, delay: Duration) -> Result<(), Ended> {
    let lines = Lines::new(stage.session, size);
    let mut buffer = Vec::with_capacity(WRITE_SIZE + 4096);
    for number in 0..count {
        lines.add(number, &mut buffer);
        if buffer.len() >= WRITE_SIZE || !delay.is_zero() {
            flush(stage, &mut buffer)?;
            stage.turn.pause(delay)?;
        }
    }
    flush(stage, &mut buffer)
}

pub fn burst(stage: &Stage, count: usize, size: Option<usize>) -> Result<(), Ended> {
    let lines = Lines::new(stage.session, size);
    let mut buffer = Vec::new();
    for number in 0..count {
        lines.add(number, &mut buffer);
    }
    flush(stage, &mut buffer)
}

/// Whole lines until their bytes reach `total`.
pub fn flood(stage: &Stage, total: usize) -> Result<(), Ended> {
    let lines = Lines::new(stage.session, Some(60));
    let mut buffer = Vec::with_capacity(WRITE_SIZE + 4096);
    let mut written = 0;
    while written < total {
        while buffer.len() < WRITE_SIZE.min(total - written) {
            lines.add(0, &mut buffer);
        }
        written += buffer.len();
        flush(stage, &mut buffer)?;
    }
    Ok(())
}

/// One update whose text has `size` bytes, never held in memory whole.
pub fn huge_line(stage: &Stage, size: usize) -> Result<(), Ended> {
    let lines = Lines::new(stage.session, None);
    let mut left = size;
    stage.agent.wire.write(&lines.before);
    while left > 0 {
        let piece = left.min(WRITE_SIZE);
        stage.agent.wire.write(&vec![b'x'; piece]);
        left -= piece;
    }
    stage.agent.wire.write(&lines.after);
    stage.turn.pause(Duration::ZERO).map_err(Ended::from)
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

fn flush(stage: &Stage, buffer: &mut Vec<u8>) -> Result<(), Ended> {
    stage.agent.wire.write(buffer);
    buffer.clear();
    stage.turn.pause(Duration::ZERO).map_err(Ended::from)
}
