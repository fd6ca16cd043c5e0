//! A frame of the agent on its way to a client: the same bytes, with our id, our name of the session and our marks put
//! in. Nothing is parsed into values and written again, so whatever the agent put there comes through as it was.

use std::ops::Range;

use bytes::{BufMut, BytesMut};

use crate::websocket::write_header;

/// Where in a frame something of ours goes.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub id: Option<Range<usize>>,
    pub session: Option<Range<usize>>,
    pub marks: Option<Marks>,
}

/// Where the value of `_meta.gembridge` goes, and what must stand around it there.
#[derive(Debug)]
pub(super) struct Marks {
    pub at: Range<usize>,
    pub before: &'static str,
    pub after: &'static str,
}

/// What is put into a frame.
pub struct Inlay<'a> {
    /// For requests.
    pub id: Option<u64>,
    /// Our name of the session, as JSON.
    pub session: &'a [u8],
    /// The value of `_meta.gembridge`.
    pub marks: &'a [u8],
}

/// Appends the frame as one WebSocket message. `false` if it is not the object it should be; then nothing is appended.
pub fn splice(out: &mut BytesMut, frame: &[u8], inlay: &Inlay<'_>) -> bool {
    let Some(places) = find(frame) else { return false };
    let id = inlay.id.map(|id| id.to_string());
    let (Some(session), Some(marks)) = (places.session, places.marks) else { return false };
    if id.is_some() != places.id.is_some() {
        return false;
    }
    let Marks { at, before, after } = marks;
    let mut edits: Vec<(Range<usize>, [&[u8]; 3])> =
        vec![(session, [inlay.session, b"", b""]), (at, [before.as_bytes(), inlay.marks, after.as_bytes()])];
    if let (Some(id), Some(at)) = (&id, places.id) {
        edits.push((at, [id.as_bytes(), b"", b""]));
    }
    edits.sort_by_key(|(at, _)| at.start);
    let removed: usize = edits.iter().map(|(at, _)| at.len()).sum();
    let added: usize = edits.iter().flat_map(|(_, parts)| parts).map(|part| part.len()).sum();
    let length = frame.len() - removed + added;
    out.reserve(length + 10);
    write_header(out, length);
    let mut from = 0;
    for (at, parts) in edits {
        out.put_slice(&frame[from..at.start]);
        for part in parts {
            out.put_slice(part);
        }
        from = at.end;
    }
    out.put_slice(&frame[from..]);
    true
}

pub(super) fn find(frame: &[u8]) -> Option<Places> {
    let mut places = Places::default();
    let mut members = Members::of(frame, skip_space(frame, 0))?;
    while let Some(member) = members.next()? {
        match member.key(frame)? {
            b"id" => places.id = Some(member.value),
            b"params" => in_params(frame, &member.value, &mut places)?,
            _ => {}
        }
    }
    Some(places)
}

fn in_params(frame: &[u8], params: &Range<usize>, places: &mut Places) -> Option<()> {
    let inside = params.start + 1;
    let mut members = Members::of(frame, params.start)?;
    let mut meta = None;
    while let Some(member) = members.next()? {
        match member.key(frame)? {
            b"sessionId" => places.session = Some(member.value),
            b"_meta" => meta = Some(member.value),
            _ => {}
        }
    }
    places.marks = Some(match meta {
        Some(value) if frame[value.start] == b'{' => in_meta(frame, &value)?,
        Some(value) => Marks { at: value, before: "{\"gembridge\":", after: "}" },
        // There is a `sessionId` behind it, or the frame is refused.
        None => Marks { at: inside..inside, before: "\"_meta\":{\"gembridge\":", after: "}," },
    });
    Some(())
}

fn in_meta(frame: &[u8], meta: &Range<usize>) -> Option<Marks> {
    let inside = meta.start + 1;
    let mut members = Members::of(frame, meta.start)?;
    let mut is_empty = true;
    while let Some(member) = members.next()? {
        is_empty = false;
        // The agent may be one of ours, behind another gateway: the marks that a client sees are those of its own.
        if member.key(frame)? == b"gembridge" {
            return Some(Marks { at: member.value, before: "", after: "" });
        }
    }
    let after = if is_empty { "" } else { "," };
    Some(Marks { at: inside..inside, before: "\"gembridge\":", after })
}

/// The members of an object, by where they stand. The frame is known to be JSON; what is not ends the walk with `None`.
struct Members<'a> {
    frame: &'a [u8],
    at: usize,
    is_first: bool,
}

struct Member {
    key: Range<usize>,
    value: Range<usize>,
}

impl Member {
    /// A key that hides behind escapes is no key that we look for, and might be one: such a frame is left alone.
    fn key<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let key = &frame[self.key.clone()];
        (!key.contains(&b'\\')).then_some(key)
    }
}

impl<'a> Members<'a> {
    fn of(frame: &'a [u8], at: usize) -> Option<Self> {
        (frame.get(at) == Some(&b'{')).then_some(Self { frame, at: at + 1, is_first: true })
    }

    /// The inner `None` is the end of the object.
    #[expect(clippy::option_option, reason = "the outer one is a frame that cannot be walked, the inner one its end")]
    fn next(&mut self) -> Option<Option<Member>> {
        let mut at = skip_space(self.frame, self.at);
        if self.frame.get(at) == Some(&b'}') {
            return Some(None);
        }
        if !std::mem::replace(&mut self.is_first, false) {
            at = skip_space(self.frame, expect(self.frame, at, b',')?);
        }
        let key_end = skip_string(self.frame, at)?;
        let colon = skip_space(self.frame, key_end);
        let start = skip_space(self.frame, expect(self.frame, colon, b':')?);
        let end = skip_value(self.frame, start)?;
        self.at = end;
        Some(Some(Member { key: at + 1..key_end - 1, value: start..end }))
    }
}

fn expect(frame: &[u8], at: usize, byte: u8) -> Option<usize> {
    (frame.get(at) == Some(&byte)).then_some(at + 1)
}

fn skip_space(frame: &[u8], at: usize) -> usize {
    let spaces = frame[at.min(frame.len())..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    at + spaces.count()
}

/// From a quote to behind the one that ends the string.
fn skip_string(frame: &[u8], at: usize) -> Option<usize> {
    let mut at = expect(frame, at, b'"')?;
    loop {
        at += memchr::memchr2(b'"', b'\\', frame.get(at..)?)?;
        match frame[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

fn skip_value(frame: &[u8], at: usize) -> Option<usize> {
    match frame.get(at)? {
        b'"' => skip_string(frame, at),
        b'{' | b'[' => skip_nested(frame, at),
        _ => {
            let plain = frame[at..]
                .iter()
                .take_while(|byte| !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
            let length = plain.count();
            (length > 0).then_some(at + length)
        }
    }
}

fn skip_nested(frame: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match frame.get(at)? {
            b'"' => {
                at = skip_string(frame, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    const SESSION: &str = "\"ours\"";

    /// The message without the head of its frame.
    fn spliced(frame: &str, id: Option<u64>) -> Option<String> {
        let mut out = BytesMut::new();
        let inlay = Inlay { id, session: SESSION.as_bytes(), marks: br#"{"seq":7}"# };
        if !splice(&mut out, frame.as_bytes(), &inlay) {
            assert!(out.is_empty());
            return None;
        }
        let head = match out[1] {
            126 => 4,
            127 => 10,
            _ => 2,
        };
        Some(String::from_utf8(out[head..].to_vec()).unwrap())
    }

    #[test]
    fn only_the_session_and_the_marks_change_byte_for_byte() {
        for (frame, expected) in [
            (
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{"x":1.50}}}"#,
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"gembridge":{"seq":7}},"sessionId":"ours","update":{"x":1.50}}}"#,
            ),
            (
                r#"{ "params" : { "update" : [ ] , "sessionId" : "a\"}" } , "method":"m" }"#,
                r#"{ "params" : {"_meta":{"gembridge":{"seq":7}}, "update" : [ ] , "sessionId" : "ours" } , "method":"m" }"#,
            ),
            (
                r#"{"params":{"sessionId":"a","_meta":{}},"z":null}"#,
                r#"{"params":{"sessionId":"ours","_meta":{"gembridge":{"seq":7}}},"z":null}"#,
            ),
            (
                r#"{"params":{"_meta":{"k":"v"},"sessionId":"a"}}"#,
                r#"{"params":{"_meta":{"gembridge":{"seq":7},"k":"v"},"sessionId":"ours"}}"#,
            ),
            (
                r#"{"params":{"_meta":null,"sessionId":"a"}}"#,
                r#"{"params":{"_meta":{"gembridge":{"seq":7}},"sessionId":"ours"}}"#,
            ),
            (
                r#"{"params":{"_meta":{"a":1,"gembridge":{"seq":1}},"sessionId":"a"}}"#,
                r#"{"params":{"_meta":{"a":1,"gembridge":{"seq":7}},"sessionId":"ours"}}"#,
            ),
        ] {
            assert_eq!(spliced(frame, None).as_deref(), Some(expected));
        }
        assert_eq!(
            spliced(r#"{"id":"their own","method":"m","params":{"sessionId":"a"}}"#, Some(12)).as_deref(),
            Some(r#"{"id":12,"method":"m","params":{"_meta":{"gembridge":{"seq":7}},"sessionId":"ours"}}"#),
        );
    }

    #[test]
    fn what_is_not_the_frame_it_should_be_is_left_alone() {
        for (frame, id) in [
            ("", None),
            ("7", None),
            ("{", None),
            (r#"{"params":{"update":1}}"#, None),
            (r#"{"method":"m"}"#, None),
            (r#"{"id":1,"params":{"sessionId":"a"}}"#, None),
            (r#"{"params":{"sessionId":"a"}}"#, Some(1)),
            (r#"{"params":{"session\u0049d":"a"}}"#, None),
            (r#"{"params":{"sessionId":"a"}"#, None),
        ] {
            assert_eq!(spliced(frame, id), None, "{frame}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f32>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            "[\"\\\\{}\\[\\],:\\n\\t é]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z_]{0,8}", inner, 0..5)
                    .prop_map(|map| Value::from(map.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Vec<(String, Value)>> {
        prop::collection::btree_map("[a-z]{1,9}", value(), 0..6)
            .prop_map(|map| map.into_iter().collect())
            .prop_shuffle()
    }

    fn text(members: &[(String, Value)]) -> String {
        let members: Vec<_> =
            members.iter().map(|(key, value)| format!("{}:{value}", Value::from(key.as_str()))).collect();
        format!("{{{}}}", members.join(","))
    }

    proptest! {
        /// Unknown members, unknown kinds, their order and their spelling: what is taken out again is what went in.
        #[test]
        fn every_other_member_survives_in_its_place(
            around in object(), inside in object(), meta in prop::option::of(object()), kind in "[a-z_]{1,20}", at in 0..8_usize,
        ) {
            let mut params = inside;
            params.retain(|(key, _)| key != "sessionId");
            let place = |len: usize, shift: usize| (at + shift) % (len + 1);
            params.insert(place(params.len(), 0), ("sessionId".to_owned(), json!("theirs")));
            params.insert(place(params.len(), 3), ("update".to_owned(), json!({"sessionUpdate": kind, "more": [1, {"x": "}"}]})));
            if let Some(meta) = &meta {
                let meta: Value = serde_json::from_str(&text(meta)).unwrap();
                params.insert(place(params.len(), 5), ("_meta".to_owned(), meta));
            }
            let mut frame = around;
            frame.retain(|(key, _)| key != "id" && key != "params");
            let params_at = place(frame.len(), 1);
            let params_value: Value = serde_json::from_str(&text(&params)).unwrap();
            frame.insert(params_at, ("params".to_owned(), params_value));
            let frame = text(&frame);

            let out = spliced(&frame, None).expect("a good frame");
            // Our marks and our name of the session taken out again, byte for byte.
            let back = out.replacen(r#""sessionId":"ours""#, r#""sessionId":"theirs""#, 1);
            let back = match meta {
                None => back.replacen(r#""_meta":{"gembridge":{"seq":7}},"#, "", 1),
                Some(members) if members.is_empty() => back.replacen(r#""gembridge":{"seq":7}"#, "", 1),
                Some(_) => back.replacen(r#""gembridge":{"seq":7},"#, "", 1),
            };
            prop_assert_eq!(back, frame);
        }

        #[test]
        fn s31_no_bytes_make_it_panic(bytes in "[{}\\[\\]\",:\\\\ a-z0-9]{0,60}", id in prop::option::of(any::<u64>())) {
            let mut out = BytesMut::new();
            splice(&mut out, bytes.as_bytes(), &Inlay { id, session: b"\"s\"", marks: b"{}" });
        }
    }
}
