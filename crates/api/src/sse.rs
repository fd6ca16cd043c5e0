//! Server-sent events on the wire. Text from an agent cannot break out of its field: data is split at every kind of
//! line end, and names and ids that hold one are refused.

use axum::http::HeaderValue;
use bytes::{BufMut, Bytes, BytesMut};

pub const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A line that clients skip. It shows proxies and clients that the stream lives.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// A name or an id that would end its own line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event's `{field}` must not hold a line end or a NUL")]
pub struct BrokenField {
    field: &'static str,
}

/// Appends an event that has data alone.
pub fn data(out: &mut BytesMut, data: &[u8]) {
    data_lines(out, data);
    out.put_u8(b'\n');
}

/// Appends an event whose data is known to be one line, such as JSON that a serialiser wrote: `write` appends it in
/// place, without a copy in between.
///
/// A line end in it is a bug; it is caught, and costs the copy that was saved.
pub fn data_line(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    out.put_slice(b"data: ");
    let start = out.len();
    write(out);
    if memchr::memchr2(b'\n', b'\r', &out[start..]).is_some() {
        let text = out.split_off(start);
        out.truncate(start - b"data: ".len());
        data_lines(out, &text);
    } else {
        out.put_u8(b'\n');
    }
    out.put_u8(b'\n');
}

/// Appends an event that has a name, or an id to resume from, or both.
pub fn event(out: &mut BytesMut, name: Option<&str>, id: Option<&str>, data: &[u8]) -> Result<(), BrokenField> {
    for (field, value) in [("event", name), ("id", id)] {
        if value.is_some_and(|value| value.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | 0))) {
            return Err(BrokenField { field });
        }
    }
    for (field, value) in [("event: ", name), ("id: ", id)] {
        if let Some(value) = value {
            out.put_slice(field.as_bytes());
            out.put_slice(value.as_bytes());
            out.put_u8(b'\n');
        }
    }
    self::data(out, data);
    Ok(())
}

fn data_lines(out: &mut BytesMut, mut data: &[u8]) {
    out.reserve(data.len() + 16);
    loop {
        out.put_slice(b"data: ");
        let Some(end) = memchr::memchr2(b'\n', b'\r', data) else {
            out.put_slice(data);
            out.put_u8(b'\n');
            return;
        };
        out.put_slice(&data[..end]);
        out.put_u8(b'\n');
        let width = if data[end..].starts_with(b"\r\n") { 2 } else { 1 };
        data = &data[end + width..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a browser's parser makes of a stream, by the words of the standard: lines end at CR LF, LF or CR; one
    /// space after the colon is dropped; an empty line dispatches.
    #[derive(Debug, Default, PartialEq, Eq, Clone)]
    struct Seen {
        name: String,
        id: String,
        data: String,
    }

    fn parse(stream: &str) -> Vec<Seen> {
        let unified = stream.replace("\r\n", "\n").replace('\r', "\n");
        let mut events = Vec::new();
        let mut current = Seen::default();
        let mut data: Vec<&str> = Vec::new();
        for line in unified.split('\n') {
            if line.is_empty() {
                if !data.is_empty() {
                    current.data = data.join("\n");
                    events.push(std::mem::take(&mut current));
                    data.clear();
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => data.push(value),
                "event" => value.clone_into(&mut current.name),
                "id" => value.clone_into(&mut current.id),
                _ => {}
            }
        }
        events
    }

    proptest! {
        #[test]
        fn s22_whatever_the_data_holds_one_event_comes_out_with_it(
            pieces in prop::collection::vec(prop_oneof![Just("\n"), Just("\r"), Just("\r\n"), Just("data: x"), Just("id: 1"), Just("é: "), Just(" ")], 0..12),
            tail in "\\PC*",
        ) {
            let text = pieces.concat() + &tail;
            let expected = text.replace("\r\n", "\n").replace('\r', "\n");
            for write in [
                |out: &mut BytesMut, text: &str| data(out, text.as_bytes()),
                |out: &mut BytesMut, text: &str| data_line(out, |out| out.put_slice(text.as_bytes())),
            ] {
                let mut out = BytesMut::new();
                write(&mut out, &text);
                let events = parse(std::str::from_utf8(&out).unwrap());
                prop_assert_eq!(events, vec![Seen { data: expected.clone(), ..Seen::default() }]);
            }
        }

        #[test]
        fn s22_a_name_or_an_id_either_comes_through_whole_or_is_refused(name in "[a-z \\n\\r\\x00:]{1,6}", id in "[0-9\\n\\r]{1,4}") {
            let mut out = BytesMut::new();
            let breaks = |text: &str| text.contains(['\n', '\r', '\0']);
            if event(&mut out, Some(&name), Some(&id), b"x").is_ok() {
                prop_assert_eq!(parse(std::str::from_utf8(&out).unwrap()), vec![Seen { name, id, data: "x".into() }]);
            } else {
                prop_assert!(breaks(&name) || breaks(&id));
                prop_assert!(out.is_empty());
            }
        }
    }

    #[test]
    fn a_keep_alive_is_no_event() {
        assert_eq!(parse(std::str::from_utf8(&KEEP_ALIVE).unwrap()), []);
    }
}
