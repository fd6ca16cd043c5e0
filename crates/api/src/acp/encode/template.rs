//! Pieces of text follow each other in frames that differ in nothing but the text: how one of them is passed on holds
//! for the next.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Seq, Text, Timestamp, TurnId};

use super::SessionName;
use super::splice::{self, Marks};
use crate::websocket::write_header;

/// What the last piece of text of one session was like.
#[derive(Debug, Default)]
pub struct Template {
    cast: Option<Cast>,
}

#[derive(Debug)]
struct Cast {
    /// What stands around the text in the agent's frame.
    before: Vec<u8>,
    after: Vec<u8>,
    /// What stands around text and marks in ours.
    pieces: [Vec<u8>; 3],
    first: Hole,
    last: Marked,
}

/// What goes between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Marks,
    Text,
}

/// The last message but for its text. The next one has the next number, and most often nothing else that is new.
#[derive(Debug, Default)]
struct Marked {
    seq: Seq,
    at: Timestamp,
    turn: Option<TurnId>,
    bytes: Vec<u8>,
    /// Where the number stands.
    digits: Range<usize>,
    /// Where the text goes.
    hole: usize,
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
        let Some(cast) = &mut self.cast else { return false };
        let (before, after) = cast.around(entry);
        let text = &frame.bytes[range];
        let length = before.len() + text.len() + after.len();
        out.reserve(length + 10);
        write_header(out, length);
        for piece in [before, text, after] {
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
        let (before, after) = (frame[..text.start].to_vec(), frame[text.end..].to_vec());
        Some(Self { before, after, pieces, first, last: Marked::default() })
    }

    /// What stands before and after the text of this entry.
    fn around(&mut self, entry: &LogEntry) -> (&[u8], &[u8]) {
        if !self.last.count_on_to(entry) {
            self.mark(entry);
        }
        self.last.bytes.split_at(self.last.hole)
    }

    fn mark(&mut self, entry: &LogEntry) {
        let Self { pieces: [start, middle, end], first, last, .. } = self;
        (last.seq, last.at, last.turn) = (entry.seq, entry.at, entry.turn);
        last.bytes.clear();
        last.bytes.extend_from_slice(start);
        match first {
            Hole::Marks => {
                last.write_marks();
                last.bytes.extend_from_slice(middle);
                last.hole = last.bytes.len();
            }
            Hole::Text => {
                last.hole = last.bytes.len();
                last.bytes.extend_from_slice(middle);
                last.write_marks();
            }
        }
        last.bytes.extend_from_slice(end);
    }
}

impl Marked {
    /// Counts one further where that is all that this entry needs.
    fn count_on_to(&mut self, entry: &LogEntry) -> bool {
        let is_next = entry.seq == self.seq.next() && entry.at == self.at && entry.turn == self.turn;
        self.seq = entry.seq;
        is_next && count_on(&mut self.bytes[self.digits.clone()])
    }

    fn write_marks(&mut self) {
        let Self { seq, at, turn, bytes, digits, .. } = self;
        bytes.extend_from_slice(b"{\"seq\":");
        let start = bytes.len();
        bytes.extend_from_slice(seq.0.to_string().as_bytes());
        *digits = start..bytes.len();
        bytes.extend_from_slice(b",\"at\":");
        bytes.extend_from_slice(at.0.to_string().as_bytes());
        if let Some(turn) = turn {
            bytes.extend_from_slice(b",\"turn\":");
            bytes.extend_from_slice(turn.0.to_string().as_bytes());
        }
        bytes.push(b'}');
    }
}

/// Adds one to a decimal number. `false` if it has no room for that, or is none.
fn count_on(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return true;
        }
        *digit = b'0';
    }
    false
}

#[cfg(test)]
mod tests {
    use gembridge_core::model::{Dialect, Event, Frame, SessionId};
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
    fn numbers_count_on_within_a_batch_and_beyond_it() {
        let session = SessionName::new(SessionId::new());
        let mut template = Template::default();
        let times = [(8, 1), (9, 1), (10, 1), (11, 1), (99, 1), (100, 1), (101, 2), (102, 2), (102, 2), (1_999, 2)];
        for ((seq, at), (before, after)) in AROUND.iter().flat_map(|around| times.map(|time| (time, *around))) {
            let entry = LogEntry { at: Timestamp(at), ..piece(before, "hi", after, seq, Some(at)) };
            let (mut by_template, mut by_splice) = (BytesMut::new(), BytesMut::new());
            let Event::Text(text) = &entry.event else { unreachable!("a piece of text") };
            assert!(template.write(&mut by_template, &session, &entry, text));
            write_entry(&mut by_splice, &session, &mut Template::default(), &copied(&entry), View::Replay);
            assert_eq!(by_template, by_splice);
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
