//! The envelope of JSON-RPC 2.0, borrowed from the message it stands in.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A message as its envelope shows it. What is inside stays as it was written.
#[derive(Debug)]
pub enum Incoming<'a> {
    Request { id: &'a RawValue, method: Cow<'a, str>, params: Option<&'a RawValue> },
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    Response { id: &'a RawValue, result: Result<&'a RawValue, &'a RawValue> },
}

/// What is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not JSON.
    Unreadable,
    /// JSON, and no message of the protocol.
    Invalid(&'static str),
}

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// `null` is a value here, not the want of one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

pub fn read(text: &str) -> Result<Incoming<'_>, Malformed> {
    if text.trim_start().starts_with('[') {
        return Err(Malformed::Invalid("batches are not supported; send one message at a time"));
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            Malformed::Invalid("not a JSON-RPC 2.0 message; send `jsonrpc`, `id`, `method` and `params` once each")
        } else {
            Malformed::Unreadable
        }
    })?;
    match (envelope.method, envelope.id) {
        (Some(method), Some(id)) if is_id(id) => Ok(Incoming::Request { id, method, params: envelope.params }),
        (Some(_), Some(_)) => Err(Malformed::Invalid("`id` must be a string, a number or null")),
        (Some(method), None) => Ok(Incoming::Notification { method, params: envelope.params }),
        (None, Some(id)) => match (envelope.result, envelope.error) {
            (_, Some(error)) => Ok(Incoming::Response { id, result: Err(error) }),
            (Some(result), None) => Ok(Incoming::Response { id, result: Ok(result) }),
            (None, None) => Err(Malformed::Invalid("the message has neither a `method` nor a `result` nor an `error`")),
        },
        (None, None) => Err(Malformed::Invalid("the message has neither a `method` nor an `id`")),
    }
}

fn is_id(id: &RawValue) -> bool {
    !matches!(id.get().as_bytes().first(), Some(b'{' | b'[' | b't' | b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_message_is_told_from_the_others() {
        let kind = |text: &str| match read(text) {
            Ok(Incoming::Request { id, method, .. }) => format!("request {} {method}", id.get()),
            Ok(Incoming::Notification { method, params }) => format!("notification {method} {}", params.is_some()),
            Ok(Incoming::Response { id, result }) => format!("response {} {}", id.get(), result.is_ok()),
            Err(Malformed::Unreadable) => "unreadable".to_owned(),
            Err(Malformed::Invalid(_)) => "invalid".to_owned(),
        };
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{}}"#, "request 1 a"),
            (r#"{"id":"x","method":"a\u0062"}"#, "request \"x\" ab"),
            (r#"{"id":null,"method":"a"}"#, "request null a"),
            (r#"{"id":{},"method":"a"}"#, "invalid"),
            (r#"{"method":"a","params":[1]}"#, "notification a true"),
            (r#"{"id":1,"result":null}"#, "response 1 true"),
            (r#"{"id":1,"error":{"code":1}}"#, "response 1 false"),
            (r#"{"id":1}"#, "invalid"),
            ("{}", "invalid"),
            ("7", "invalid"),
            (r#"[{"id":1,"method":"a"}]"#, "invalid"),
            (r#"{"id":1,"id":2,"method":"a"}"#, "invalid"),
            ("{", "unreadable"),
            ("nonsense", "unreadable"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }
}
