//! How far the client has got: what is needed to go on where a broken connection left off.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

/// The client's side of the conversation, as far as a new connection must know it.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The client's own `initialize`, to be said again.
    initialize: Option<String>,
    /// The last number that the client saw of each session it is attached to.
    sessions: BTreeMap<String, u64>,
    /// Requests that wait for an answer, by id as it was written; each with its session.
    waiting: BTreeMap<String, Option<String>>,
}

/// What of a message is looked at.
#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(borrow)]
    id: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow)]
    method: Option<std::borrow::Cow<'a, str>>,
    params: Option<Params>,
    result: Option<Answered>,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(rename = "sessionId")]
    session: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
struct Meta {
    gembridge: Option<Mark>,
}

#[derive(Deserialize)]
struct Mark {
    seq: Option<u64>,
}

#[derive(Deserialize)]
struct Answered {
    #[serde(rename = "sessionId")]
    session: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

impl Place {
    /// The client said this.
    pub(super) fn said(&mut self, line: &str) {
        let Ok(seen) = serde_json::from_str::<Seen<'_>>(line) else { return };
        let (Some(method), Some(id)) = (seen.method, seen.id) else { return };
        if method == "initialize" {
            self.initialize = Some(line.to_owned());
        }
        if self.waiting.len() < MOST_WAITING {
            let session = seen.params.and_then(|params| params.session);
            self.waiting.insert(id.get().to_owned(), session);
        }
    }

    /// The client heard this.
    pub(super) fn heard(&mut self, line: &str) {
        let Ok(seen) = serde_json::from_str::<Seen<'_>>(line) else { return };
        match (seen.method, seen.id) {
            (Some(_), _) => {
                let Params { session: Some(session), meta } = seen.params.unwrap_or_default() else { return };
                if let Some(seq) = meta.and_then(seq) {
                    self.reached(session, seq);
                }
            }
            (None, Some(id)) => {
                let asked_of = self.waiting.remove(id.get()).flatten();
                let answered = seen.result.unwrap_or(Answered { session: None, meta: None });
                if let Some(session) = answered.session.or(asked_of) {
                    let seq = answered.meta.and_then(seq).unwrap_or(0);
                    self.reached(session, seq);
                }
            }
            (None, None) => {}
        }
    }

    fn reached(&mut self, session: String, seq: u64) {
        if self.sessions.contains_key(&session) || self.sessions.len() < MOST_SESSIONS {
            let known = self.sessions.entry(session).or_default();
            *known = seq.max(*known);
        }
    }

    /// The answers that a broken connection took with it, as errors: whoever waits must not wait for ever.
    pub(super) fn fail_waiting(&mut self) -> Vec<String> {
        let message = "the gateway went away; the session is taken up again, and what it did meanwhile follows";
        let waiting = std::mem::take(&mut self.waiting);
        let failed = waiting.into_keys().map(|id| {
            let id: Value = serde_json::from_str(&id).unwrap_or(Value::Null);
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32_603, "message": message } }).to_string()
        });
        failed.collect()
    }

    /// What a new connection is told first, and how many of its answers are not for the client.
    pub(super) fn take_up(&self) -> Vec<String> {
        let initialize = self.initialize.as_deref().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let Some(mut initialize) = initialize else { return Vec::new() };
        initialize["id"] = json!(format!("{OURS}initialize"));
        let attach = self.sessions.iter().map(|(session, after)| {
            let id = format!("{OURS}{session}");
            let params = json!({ "sessionId": session, "after": after });
            json!({ "jsonrpc": "2.0", "id": id, "method": "_gembridge/attach", "params": params })
        });
        std::iter::once(initialize).chain(attach).map(|message| message.to_string()).collect()
    }

    /// Whether a message answers what the relay itself asked.
    pub(super) fn is_ours(line: &str) -> bool {
        let Ok(seen) = serde_json::from_str::<Seen<'_>>(line) else { return false };
        let id = seen.id.and_then(|id| serde_json::from_str::<String>(id.get()).ok());
        seen.method.is_none() && id.is_some_and(|id| id.starts_with(OURS))
    }
}

/// Before the ids of the relay's own requests.
const OURS: &str = "gembridge-connect:";
/// A client that never gets an answer is not remembered for ever.
const MOST_WAITING: usize = 1_024;
const MOST_SESSIONS: usize = 256;

fn seq(meta: Meta) -> Option<u64> {
    meta.gembridge?.seq
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let mut place = Place::default();
        place.said(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#);
        place.heard(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
        place.said(r#"{"jsonrpc":"2.0","id":"a","method":"session/new","params":{"cwd":"/"}}"#);
        place.heard(r#"{"jsonrpc":"2.0","id":"a","result":{"sessionId":"s1","_meta":{"gembridge":{"seq":2}}}}"#);
        place
    }

    #[test]
    fn a_new_connection_hears_who_speaks_and_what_was_seen_last() {
        let mut place = place();
        place.said(r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}"#);
        place.heard(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","_meta":{"gembridge":{"seq":9}}}}"#);
        place.heard(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","_meta":{"gembridge":{"seq":5}}}}"#);
        let told: Vec<Value> = place.take_up().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(told.len(), 2);
        assert_eq!(told[0]["method"], "initialize");
        assert_eq!(told[0]["params"]["protocolVersion"], 1);
        assert_eq!(told[1]["method"], "_gembridge/attach");
        assert_eq!(told[1]["params"], json!({ "sessionId": "s1", "after": 9 }));
        for line in place.take_up() {
            let id = serde_json::from_str::<Value>(&line).unwrap()["id"].clone();
            assert!(Place::is_ours(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string()));
        }
        assert!(!Place::is_ours(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
    }

    #[test]
    fn whoever_waits_is_told_once_that_the_answer_is_gone() {
        let mut place = place();
        place.said(r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s1"}}"#);
        let failed: Value = serde_json::from_str(&place.fail_waiting()[0]).unwrap();
        assert_eq!((failed["id"].clone(), failed["error"]["code"].clone()), (json!(7), json!(-32_603)));
        assert_eq!(place.fail_waiting(), Vec::<String>::new());
    }

    #[test]
    fn a_client_that_never_began_has_nothing_to_take_up() {
        let mut place = Place::default();
        place.said("no json");
        place.heard("[]");
        assert_eq!(place.take_up(), Vec::<String>::new());
    }
}
