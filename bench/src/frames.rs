//! What a stream must bring: every piece of text, in order, unchanged, and an end. Else there is no score.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::sync::Notify;

/// What the demo agent is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// So many pieces of this size at once.
    Chunks { count: u32, size: usize },
    /// So many words, one each so many milliseconds.
    Paced { count: u32, every: u32 },
    /// A word, a pause of so many milliseconds, another word, and then so many pieces at once.
    Held { count: u32, size: usize, pause: u32 },
}

impl Script {
    pub fn prompt(self) -> String {
        match self {
            Self::Chunks { count, size } => format!("chunks {count} size {size}"),
            Self::Paced { count, every } => format!("slow {count} {every}"),
            Self::Held { count, size, pause } => format!("slow 2 {pause}\nchunks {count} size {size}"),
        }
    }

    pub fn count(self) -> u32 {
        match self {
            Self::Chunks { count, .. } | Self::Paced { count, .. } => count,
            Self::Held { count, .. } => count + 2,
        }
    }

    /// The script of a request, wherever its words stand in the body.
    pub fn find(body: &[u8]) -> Option<Self> {
        let numbers = |word: &str| {
            let at = memmem::find(body, word.as_bytes())? + word.len();
            let text = body[at..].split(|byte| *byte == b'"').next()?;
            let text = std::str::from_utf8(text).ok()?;
            let mut numbers = text.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
            Some((numbers.next()?, numbers.next()?))
        };
        let chunks = numbers("chunks ").map(|(count, size)| Self::Chunks { count, size: size as usize });
        chunks.or_else(|| numbers("slow ").map(|(count, every)| Self::Paced { count, every }))
    }

    /// The text with this number, counted from 1.
    pub fn write(self, number: u32, text: &mut Vec<u8>) {
        text.clear();
        let (is_word, size, number) = match self {
            Self::Chunks { size, .. } => (false, size, number),
            Self::Held { size, .. } if number > 2 => (false, size, number - 2),
            Self::Paced { .. } | Self::Held { .. } => (true, 0, number),
        };
        if is_word {
            text.extend_from_slice(b"word-");
        }
        let mut digits = [0; 10];
        let mut rest = number;
        let mut first = digits.len();
        while rest > 0 || first == digits.len() {
            first -= 1;
            digits[first] = b"0123456789"[(rest % 10) as usize];
            rest /= 10;
        }
        text.extend_from_slice(&digits[first..]);
        text.resize(text.len().max(size.saturating_sub(1)), b'.');
        text.push(b' ');
    }
}

/// Reads one stream of server-sent events.
pub struct Frames {
    script: Script,
    expected: Vec<u8>,
    seen: u32,
    finished: bool,
    over: bool,
    /// The beginning of an event whose end has not come yet.
    partial: Vec<u8>,
    since: Instant,
    first: Option<Duration>,
    last: Instant,
    longest_gap: Duration,
    longest_early_gap: Duration,
    gaps: Option<Vec<f32>>,
    start: Arc<Start>,
}

/// Where streams that begin together wait for each other: what happens before all have begun is another matter.
#[derive(Default)]
pub struct Start {
    streams: usize,
    missing: AtomicUsize,
    all: Notify,
}

impl Start {
    pub fn of(streams: usize) -> Arc<Self> {
        Arc::new(Self { streams, missing: AtomicUsize::new(streams), all: Notify::new() })
    }

    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Resolves when every stream has had its first piece.
    pub async fn everybody(&self) {
        let all = self.all.notified();
        if !self.is_over() {
            all.await;
        }
    }

    fn is_over(&self) -> bool {
        self.missing.load(Ordering::Relaxed) == 0
    }

    fn one_more(&self) {
        let before = self.missing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |missing| missing.checked_sub(1));
        if before == Ok(1) {
            self.all.notify_waiters();
        }
    }
}

/// A stream as its client saw it.
#[derive(Debug)]
pub struct Seen {
    /// Until the first piece of text.
    pub first: Duration,
    /// Once all streams had begun.
    pub longest_gap: Duration,
    /// While others still came.
    pub longest_early_gap: Duration,
    /// Between each piece and the next, in milliseconds, if they were asked for.
    pub gaps: Vec<f32>,
}

impl Frames {
    pub fn new(script: Script, since: Instant) -> Self {
        Self {
            script,
            expected: Vec::new(),
            seen: 0,
            finished: false,
            over: false,
            partial: Vec::new(),
            since,
            first: None,
            last: since,
            longest_gap: Duration::ZERO,
            longest_early_gap: Duration::ZERO,
            gaps: None,
            start: Arc::default(),
        }
    }

    /// Tells the others when it has begun.
    pub fn together(self, start: &Arc<Start>) -> Self {
        Self { start: Arc::clone(start), ..self }
    }

    pub fn with_gaps(self) -> Self {
        Self { gaps: Some(Vec::with_capacity(self.script.count() as usize)), ..self }
    }

    pub fn take(&mut self, piece: &[u8]) -> anyhow::Result<()> {
        let now = Instant::now();
        let mut rest = piece;
        if !self.partial.is_empty() {
            // The end of an event may be split as well.
            let held = self.partial.len();
            self.partial.extend_from_slice(piece);
            let Some(end) = memmem::find(&self.partial, b"\n\n") else { return Ok(()) };
            let whole = std::mem::take(&mut self.partial);
            self.event(&whole[..end], now)?;
            rest = &piece[end + 2 - held..];
        }
        while let Some(end) = memmem::find(rest, b"\n\n") {
            self.event(&rest[..end], now)?;
            rest = &rest[end + 2..];
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    fn event(&mut self, event: &[u8], now: Instant) -> anyhow::Result<()> {
        let Some(data) = event.strip_prefix(b"data: ") else {
            anyhow::ensure!(event.starts_with(b":"), "no event: `{}`", String::from_utf8_lossy(event));
            return Ok(());
        };
        anyhow::ensure!(!self.over, "something came after the end");
        if data == b"[DONE]" {
            self.over = true;
        } else if let Some(text) = content(data).filter(|text| !text.is_empty()) {
            self.seen += 1;
            self.script.write(self.seen, &mut self.expected);
            anyhow::ensure!(text == self.expected, "piece {} is `{}`", self.seen, String::from_utf8_lossy(text));
            self.mark(now);
        } else if memmem::find(data, br#""finish_reason":"stop""#).is_some() {
            self.finished = true;
        } else {
            let is_error = memmem::find(data, br#""error""#).is_some();
            anyhow::ensure!(!is_error, "the stream failed: {}", String::from_utf8_lossy(data));
        }
        Ok(())
    }

    fn mark(&mut self, now: Instant) {
        if self.first.is_none() {
            self.first = Some(now - self.since);
            self.start.one_more();
        } else if !self.start.is_over() {
            self.longest_early_gap = self.longest_early_gap.max(now - self.last);
        } else {
            let gap = now - self.last;
            self.longest_gap = self.longest_gap.max(gap);
            if let Some(gaps) = &mut self.gaps {
                gaps.push(gap.as_secs_f32() * 1e3);
            }
        }
        self.last = now;
    }

    /// Everything must have come by now.
    pub fn end(self) -> anyhow::Result<Seen> {
        let count = self.script.count();
        anyhow::ensure!(self.seen == count, "{} pieces of {count} came", self.seen);
        anyhow::ensure!(self.finished && self.over, "the stream did not end as it should");
        let first = self.first.unwrap_or_default();
        let Self { longest_gap, longest_early_gap, .. } = self;
        Ok(Seen { first, longest_gap, longest_early_gap, gaps: self.gaps.unwrap_or_default() })
    }
}

/// The text in a chunk or in a whole answer. No script has anything in it that is escaped.
pub fn content(json: &[u8]) -> Option<&[u8]> {
    const FIELD: &[u8] = br#""content":""#;
    let start = memmem::find(json, FIELD)? + FIELD.len();
    let length = memchr::memchr(b'"', &json[start..])?;
    Some(&json[start..start + length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(script: Script, numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let mut text = Vec::new();
        let mut stream = br#"data: {"delta":{"role":"assistant","content":""}}"#.to_vec();
        for number in numbers {
            script.write(number, &mut text);
            stream.extend_from_slice(b"\n\ndata: {\"delta\":{\"content\":\"");
            stream.extend_from_slice(&text);
            stream.extend_from_slice(b"\"}}");
        }
        stream.extend_from_slice(b"\n\n: alive\n\ndata: {\"finish_reason\":\"stop\"}\n\ndata: [DONE]\n\n");
        stream
    }

    fn read(script: Script, stream: &[u8], width: usize) -> anyhow::Result<Seen> {
        let mut frames = Frames::new(script, Instant::now()).with_gaps();
        stream.chunks(width).try_for_each(|piece| frames.take(piece))?;
        frames.end()
    }

    #[test]
    fn a_stream_is_whole_however_it_is_cut() {
        let held = Script::Held { count: 10, size: 20, pause: 1 };
        for script in [Script::Chunks { count: 12, size: 20 }, Script::Paced { count: 12, every: 1 }, held] {
            let stream = stream(script, 1..=12);
            for width in 1..stream.len() {
                assert_eq!(read(script, &stream, width).unwrap().gaps.len(), 11);
            }
        }
    }

    #[test]
    fn a_piece_that_is_lost_twice_there_or_out_of_order_has_no_score() {
        let script = Script::Chunks { count: 3, size: 20 };
        for numbers in [vec![1, 2], vec![1, 1, 2, 3], vec![1, 3, 2]] {
            assert!(read(script, &stream(script, numbers), 64).is_err());
        }
    }

    #[test]
    fn a_script_is_found_in_the_request_that_asks_for_it() {
        for script in [Script::Chunks { count: 7, size: 60 }, Script::Paced { count: 9, every: 20 }] {
            let body = format!(r#"{{"messages":[{{"content":"{}"}}],"n":5}}"#, script.prompt());
            assert_eq!(Script::find(body.as_bytes()), Some(script));
        }
    }
}
