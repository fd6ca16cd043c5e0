//! The shape that an agent gives its pieces of text, learned from those that were read before.
//!
//! Around every piece an agent writes the same bytes: only the session and the text differ. A line that has these
//! bytes, and between them nothing but characters that stand for themselves, is the same JSON with two other strings
//! in it. So what it says is known without parsing it again, which is most of what a piece of text costs.

use bytes::Bytes;
use gembridge_core::model::{Event, Text};

use super::Message;

/// Bytes around a text that are worth keeping.
const LARGEST: usize = 1024;
/// An agent that writes something new around every piece is not learned from for ever.
const MOST_IN_VAIN: u32 = 64;

#[derive(Default)]
pub(in crate::acp) struct Shapes {
    text: Option<Shape>,
    thought: Option<Shape>,
    /// Shapes learned since a line last had one.
    in_vain: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thought,
}

/// The bytes of a line without its session and its text.
#[derive(PartialEq, Eq)]
struct Shape {
    before: Box<[u8]>,
    between: Box<[u8]>,
    after: Box<[u8]>,
}

impl Kind {
    pub(super) fn event(self, text: Text) -> Event {
        match self {
            Self::Text => Event::Text(text),
            Self::Thought => Event::Thought(text),
        }
    }
}

impl Shapes {
    /// Reads a line that has a shape known already.
    pub(super) fn read<'a>(&mut self, line: &'a [u8], frame: &Bytes) -> Option<Message<'a>> {
        let fits = |shape: &Option<Shape>| shape.as_ref()?.fit(line);
        let (kind, (session, text)) = match fits(&self.text) {
            Some(fit) => (Kind::Text, fit),
            None => (Kind::Thought, fits(&self.thought)?),
        };
        self.in_vain = 0;
        Some(Message::Update { session, event: kind.event(Text::escaped(frame.slice_ref(text))), meta: None })
    }

    /// Remembers the shape of a line that was parsed: `session` and `text` are parts of it, and nothing in the rest
    /// of it matters.
    pub(super) fn learn(&mut self, line: &[u8], kind: Kind, session: &[u8], text: &[u8]) {
        if self.in_vain >= MOST_IN_VAIN || line.len() - text.len() > LARGEST {
            return;
        }
        let Some(parts) = parts(line, session, text) else { return };
        let known = match kind {
            Kind::Text => &mut self.text,
            Kind::Thought => &mut self.thought,
        };
        // The text was what was special, not what is around it.
        if known.as_ref().is_some_and(|known| [&*known.before, &known.between, &known.after] == parts) {
            return;
        }
        self.in_vain += 1;
        let [before, between, after] = parts.map(Box::from);
        *known = Some(Shape { before, between, after });
    }
}

impl Shape {
    /// The session and the text of a line that has this shape.
    fn fit<'a>(&self, line: &'a [u8]) -> Option<(&'a str, &'a [u8])> {
        let rest = line.strip_prefix(&*self.before)?;
        let (session, rest) = rest.split_at(rest.iter().position(|byte| *byte == b'"')?);
        let text = rest.strip_prefix(&*self.between)?.strip_suffix(&*self.after)?;
        let session = as_it_stands(session)?;
        as_it_stands(text).map(|_| (session, text))
    }
}

/// The characters of a JSON string's body, if each of them stands for itself.
fn as_it_stands(body: &[u8]) -> Option<&str> {
    // No early end, so that many bytes are looked at in one step.
    let special = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    let any = body.iter().fold(0, |any, byte| any | special(*byte));
    if any == 0 { std::str::from_utf8(body).ok() } else { None }
}

/// What stands before, between and after the two, in this order.
fn parts<'a>(line: &'a [u8], session: &[u8], text: &[u8]) -> Option<[&'a [u8]; 3]> {
    let start = |part: &[u8]| (part.as_ptr() as usize).checked_sub(line.as_ptr() as usize);
    let (session_at, text_at) = (start(session)?, start(text)?);
    let before = line.get(..session_at)?;
    let between = line.get(session_at + session.len()..text_at)?;
    Some([before, between, line.get(text_at + text.len()..)?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::acp::decode::message;

    fn line(session: &str, kind: &str, text: &str) -> Vec<u8> {
        let content = json!({"type": "text", "text": text});
        let params = json!({"sessionId": session, "update": {"sessionUpdate": kind, "content": content}});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string().into_bytes()
    }

    /// What a line is read as, in words.
    fn read(line: &[u8], shapes: &mut Shapes) -> String {
        let frame = Bytes::copy_from_slice(line);
        match message(&frame.clone(), &frame, shapes) {
            Message::Update { session, event, meta } => format!("{session:?} {event:?} {meta:?}"),
            Message::Request { method, .. } => format!("request {method}"),
            Message::Notification { method, params } => format!("notification {method} {params:?}"),
            Message::Response { id, .. } => format!("response {id}"),
            Message::Noise => "noise".to_owned(),
        }
    }

    fn taught() -> Shapes {
        let mut shapes = Shapes::default();
        read(&line("one", "agent_message_chunk", "hello"), &mut shapes);
        read(&line("one", "agent_thought_chunk", "hm"), &mut shapes);
        assert!(shapes.text.is_some() && shapes.thought.is_some());
        shapes
    }

    #[test]
    fn a_line_of_a_known_shape_is_read_without_parsing() {
        let taught = &mut taught();
        let other = line("another session", "agent_thought_chunk", "é and 中");
        let frame = Bytes::from(other);
        let Some(Message::Update { session, event, meta: None }) = taught.read(&frame, &frame) else {
            panic!("not read")
        };
        assert_eq!((session, event), ("another session", Event::Thought("é and 中".into())));
    }

    #[test]
    fn whatever_is_special_is_left_to_the_parser() {
        let mut shapes = taught();
        for text in ["a\nb", "a\"b", "a\\b", "\u{1}"] {
            let special = Bytes::from(line("one", "agent_message_chunk", text));
            assert!(shapes.read(&special, &special).is_none(), "{text:?}");
        }
        let mut broken = line("one", "agent_message_chunk", "xyz");
        let at = broken.iter().position(|byte| *byte == b'y').unwrap();
        broken[at] = 0xff;
        let broken = Bytes::from(broken);
        assert!(shapes.read(&broken, &broken).is_none());
    }

    #[test]
    fn an_agent_that_never_repeats_itself_is_not_learned_from_for_ever() {
        let mut shapes = Shapes::default();
        for number in 0..1_000 {
            let text = format!(
                r#"{{"n":{number},"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"x"}}}}}}}}"#
            );
            assert!(read(text.as_bytes(), &mut shapes).contains("Text"), "{text}");
        }
        assert_eq!(shapes.in_vain, MOST_IN_VAIN);
    }

    proptest! {
        #[test]
        fn what_was_learned_never_changes_what_a_line_says(
            session in "[a-z\"\\\\é\n]{0,6}",
            kind in prop_oneof![Just("agent_message_chunk"), Just("agent_thought_chunk"), Just("user_message_chunk")],
            text in any::<String>(),
            meddling in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        ) {
            let mut line = line(&session, kind, &text);
            for (at, byte) in meddling {
                let at = at.index(line.len());
                line[at] = byte;
            }
            prop_assert_eq!(read(&line, &mut taught()), read(&line, &mut Shapes::default()));
        }
    }
}
