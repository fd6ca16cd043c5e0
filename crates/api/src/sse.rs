//! Server-sent events on the wire. Text from an agent cannot break out of its field: data is split at every kind of line
//! end.

use axum::http::HeaderValue;
use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;

pub const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A line that clients skip. It shows proxies and clients that the stream lives.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// Appends an event that has data alone.
pub fn data(out: &mut BytesMut, data: &[u8]) {
    data_lines(out, data);
    out.put_u8(b'\n');
}

/// An event whose data is a value as JSON, which a serialiser writes without line ends.
pub fn json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut event = b"data: ".to_vec();
    serde_json::to_writer(&mut event, value)?;
    event.extend_from_slice(b"\n\n");
    Ok(event)
}

/// Appends an event with a name. Its data is JSON, which a serialiser writes without line ends.
pub fn named(out: &mut BytesMut, name: &str, json: &[u8]) {
    out.reserve(name.len() + json.len() + 18);
    out.put_slice(b"event: ");
    out.put_slice(name.as_bytes());
    out.put_slice(b"\ndata: ");
    out.put_slice(json);
    out.put_slice(b"\n\n");
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
    fn parse(stream: &str) -> Vec<String> {
        let unified = stream.replace("\r\n", "\n").replace('\r', "\n");
        let mut events = Vec::new();
        let mut data: Vec<&str> = Vec::new();
        for line in unified.split('\n') {
            if line.is_empty() {
                if !data.is_empty() {
                    events.push(data.join("\n"));
                    data.clear();
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            if field == "data" {
                data.push(value);
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
            let mut out = BytesMut::new();
            data(&mut out, text.as_bytes());
            prop_assert_eq!(parse(std::str::from_utf8(&out).unwrap()), vec![expected]);
            let event = json(&text).unwrap();
            let events = parse(std::str::from_utf8(&event).unwrap());
            prop_assert_eq!(events.len(), 1);
            prop_assert_eq!(serde_json::from_str::<String>(&events[0]).unwrap(), text);
        }
    }

    #[test]
    fn a_keep_alive_is_no_event() {
        assert!(parse(std::str::from_utf8(&KEEP_ALIVE).unwrap()).is_empty());
    }
}
