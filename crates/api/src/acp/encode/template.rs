//! Pieces of text follow each other in frames that differ in nothing but the text: how one of them is passed on holds
//! for the next.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Text, Timestamp, TurnId};

use super::SessionName;
use super::splice::{self, Marks};
use crate::websocket::write_header;

/// What the last piece of text of one session was like.
#[derive(Debug, Default)]
pub struct Template {
    cast: Option<Cast>,
    /// The end of the marks, which entries that were written together share.
    tail: Tail,
    marks: Vec<u8>,
}

#[derive(Debug)]
struct Cast {
    /// What stands around the text in the agent's frame.
    before: Vec<u8>,
    after: Vec<u8>,
    /// What stands around text and marks in ours.
    pieces: [Vec<u8>; 3],
    first: Hole,
}

/// What goes between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Marks,
    Text,
}

#[derive(Debug, Default)]
struct Tail {
    at: Timestamp,
    turn: Option<TurnId>,
    json: Vec<u8>,
}

impl Template {
    /// Appends the frame of this piece of text as one WebSocket message. `false` if that is not so simple; then nothing
    /// is appended.
    pub fn write(&mut self, out: &mut BytesMut, session: &SessionName, entry: &LogEntry, text: &Text) -> bool {
        let Some(frame) = &entry.frame else { return false };
        let Some(range) = text.range_in(&frame.bytes) else { return false };
        let (before, after) = (&frame.bytes[..range.start], &frame.bytes[range.end..]);
        let fits = |cast: &Cast| cast.before == before && cast.after == after;
        if !self.cast.as_ref().is_some_and(fits) {
            self.cast = Cast::of(&frame.bytes, &range, session);
        }
        let Some(Cast { pieces: [start, middle, end], first, .. }) = &self.cast else { return false };
        self.tail.set(entry);
        self.marks.clear();
        self.marks.extend_from_slice(b"{\"seq\":");
        write_number(&mut self.marks, entry.seq.0);
        self.marks.extend_from_slice(&self.tail.json);
        let text = &frame.bytes[range];
        let [one, other] = match first {
            Hole::Marks => [&self.marks, text],
            Hole::Text => [text, &self.marks],
        };
        let length = start.len() + one.len() + middle.len() + other.len() + end.len();
        out.reserve(length + 10);
        write_header(out, length);
        for piece in [start, one, middle, other, end] {
            out.put_slice(piece);
        }
        true
    }
}

impl Cast {
    fn of(frame: &Bytes, text: &Range<usize>, session: &SessionName) -> Option<Self> {
        let places = splice::find(frame)?;
        if places.id.is_some() {
            return None;
        }
        let Marks { at, before, after } = places.marks?;
        let mut edits = [(places.session?, None), (at, Some(Hole::Marks)), (text.clone(), Some(Hole::Text))];
        edits.sort_by_key(|(at, _)| at.start);
        let mut pieces: [Vec<u8>; 3] = Default::default();
        let (mut piece, mut from) = (0, 0);
        for (at, hole) in &edits {
            pieces[piece].extend_from_slice(frame.get(from..at.start)?);
            from = at.end;
            match hole {
                None => pieces[piece].extend_from_slice(&session.json),
                Some(Hole::Text) => piece += 1,
                Some(Hole::Marks) => {
                    pieces[piece].extend_from_slice(before.as_bytes());
                    piece += 1;
                    pieces[piece].extend_from_slice(after.as_bytes());
                }
            }
        }
        pieces[piece].extend_from_slice(frame.get(from..)?);
        let first = edits.iter().find_map(|(_, hole)| *hole)?;
        Some(Self { before: frame[..text.start].to_vec(), after: frame[text.end..].to_vec(), pieces, first })
    }
}

impl Tail {
    fn set(&mut self, entry: &LogEntry) {
        if self.at == entry.at && self.turn == entry.turn && !self.json.is_empty() {
            return;
        }
        (self.at, self.turn) = (entry.at, entry.turn);
        self.json.clear();
        self.json.extend_from_slice(b",\"at\":");
        write_number(&mut self.json, entry.at.0);
        if let Some(turn) = entry.turn {
            self.json.extend_from_slice(b",\"turn\":");
            write_number(&mut self.json, turn.0);
        }
        self.json.push(b'}');
    }
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let (mut rest, mut first) = (number, digits.len());
    loop {
        first -= 1;
        digits[first] = b"0123456789"[usize::try_from(rest % 10).unwrap_or(0)];
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use gembridge_core::model::{Dialect, Event, Frame, Seq, SessionId};
    use proptest::prelude::*;

    use super::super::{View, entry as write_entry};
    use super::*;

    /// A piece of text as a driver tells it: the text is a part of the frame.
    fn piece(before: &str, text: &str, after: &str, seq: u64, turn: Option<u64>) -> LogEntry {
        let bytes = Bytes::from([before, text, after].concat());
        let text = Text::escaped(bytes.slice(before.len()..before.len() + text.len()));
        let frame = Some(Frame { dialect: Dialect::Acp, bytes });
        LogEntry { seq: Seq(seq), at: Timestamp(1_000 + seq), turn: turn.map(TurnId), event: Event::Text(text), frame }
    }

    /// The same entry where no template is at hand, since its text is no part of the frame.
    fn copied(entry: &LogEntry) -> LogEntry {
        let Event::Text(text) = &entry.event else { unreachable!("a piece of text") };
        let copy = Text::escaped(Bytes::copy_from_slice(&text.to_escaped()));
        LogEntry { event: Event::Text(copy), ..entry.clone() }
    }

    const AROUND: [(&str, &str); 5] = [
        (r#"{"method":"session/update","params":{"sessionId":"x","update":{"content":{"text":""#, r#""}}}}"#),
        (r#"{"params":{"update":{"content":{"text":""#, r#"","type":"text"}},"sessionId":"x"},"method":"m"}"#),
        (r#"{"params":{"sessionId":"x","_meta":{"a":1},"update":{"text":""#, r#""}}}"#),
        (r#"{ "params" : {"update":{"text":""#, r#""}, "_meta":{ }, "sessionId" : "x" } }"#),
        (r#"{"params":{"sessionId":"x","_meta":{"gembridge":{"seq":9}},"update":{"_meta":{},"text":""#, r#""}}}"#),
    ];

    proptest! {
        /// Whatever came before, a piece of text comes out as it would have come out alone.
        #[test]
        fn a_template_writes_what_a_splice_writes(
            pieces in prop::collection::vec((0..AROUND.len(), "([a-z {}:,]|\\\\\"|\\\\n){0,12}", any::<u64>(), prop::option::of(any::<u64>())), 1..12),
        ) {
            let session = SessionName::new(SessionId::new());
            let mut template = Template::default();
            for (around, text, seq, turn) in pieces {
                let (before, after) = AROUND[around];
                let entry = piece(before, &text, after, seq >> 12, turn);
                let (mut by_template, mut by_splice) = (BytesMut::new(), BytesMut::new());
                let Event::Text(text) = &entry.event else { unreachable!("a piece of text") };
                prop_assert!(template.write(&mut by_template, &session, &entry, text));
                write_entry(&mut by_splice, &session, &mut Template::default(), &copied(&entry), View::Replay);
                prop_assert_eq!(by_template, by_splice);
            }
        }
    }

    #[test]
    fn a_frame_that_cannot_be_passed_on_is_left_alone_and_the_next_one_is_not() {
        let session = SessionName::new(SessionId::new());
        let (mut template, mut out) = (Template::default(), BytesMut::new());
        let nameless = piece(r#"{"params":{"update":{"text":""#, "hi", r#""}}}"#, 1, None);
        let Event::Text(text) = &nameless.event else { unreachable!("a piece of text") };
        assert!(!template.write(&mut out, &session, &nameless, text));
        assert!(out.is_empty());
        let (before, after) = AROUND[0];
        let named = piece(before, "hi", after, 2, None);
        let Event::Text(text) = &named.event else { unreachable!("a piece of text") };
        assert!(template.write(&mut out, &session, &named, text));
        assert!(!out.is_empty());
    }
}
