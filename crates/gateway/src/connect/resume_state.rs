//! How far the client has got: what is needed to go on where a broken connection left off.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// The client's side of the conversation, as far as a new connection must know it.
#[derive(Debug, Default)]
pub(super) struct ResumeState {
    greeting: Greeting,
    /// The session that the address names.
    named: Option<String>,
    /// The last number that the client saw of each session it is attached to.
    sessions: BTreeMap<String, u64>,
    /// Requests that wait for an answer, by id as it was written.
    waiting: BTreeMap<String, Effect>,
    /// What the client is asked: its own id for the question, and the gateway's.
    questions: BTreeMap<String, String>,
    /// Connections before this one. Each counts its questions anew, so the ids of later ones are changed.
    earlier: u32,
}

/// Whether the client has said who it is.
#[derive(Debug, Default)]
enum Greeting {
    #[default]
    Awaited,
    /// It has not been answered yet.
    Said {
        line: String,
        id: String,
    },
    Done {
        line: String,
    },
}

/// What the success of a request means for the sessions that the client follows.
#[derive(Debug)]
enum Effect {
    None,
    /// It follows this one, or the one that the answer names.
    Enters(Option<String>),
    /// The same, and the past is told after the answer.
    EntersBefore(Option<String>),
    Leaves(String),
}

/// What of a message is looked at.
#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// Which session a message is about, and which of its steps.
#[derive(Default, Deserialize)]
struct Named {
    #[serde(rename = "sessionId")]
    session: Option<String>,
    seq: Option<u64>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
struct Meta {
    gembridge: Option<Mark>,
}

#[derive(Default, Deserialize)]
struct Mark {
    seq: Option<u64>,
    part: Option<u64>,
    parts: Option<u64>,
    session: Option<String>,
}

impl Named {
    /// Of what is put in another way, nothing is known.
    fn read(value: Option<&RawValue>) -> Self {
        value.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
    }

    fn mark(&self) -> Option<&Mark> {
        self.meta.as_ref()?.gembridge.as_ref()
    }

    /// The step that is told to its end.
    fn reached(&self) -> Option<u64> {
        let mark = self.mark();
        let is_whole = mark.is_none_or(|mark| mark.part == mark.parts);
        self.seq.or_else(|| mark?.seq).filter(|_| is_whole)
    }
}

impl ResumeState {
    /// The client says this. What the gateway hears of it; an answer to a question of a connection that is gone is for
    /// nobody.
    pub(super) fn said<'a>(&mut self, line: &'a str) -> Option<Cow<'a, str>> {
        let Ok(seen) = serde_json::from_str::<Seen<'_>>(line) else { return Some(line.into()) };
        let Some(id) = seen.id.map(RawValue::get) else { return Some(line.into()) };
        let Some(method) = seen.method else {
            let theirs = self.questions.remove(id)?;
            return Some(if theirs == id { line.into() } else { with_id(line, &theirs).into() });
        };
        if method == "initialize" {
            self.greeting = Greeting::Said { line: line.to_owned(), id: id.to_owned() };
        }
        if self.waiting.len() < MOST_WAITING {
            self.waiting.insert(id.to_owned(), effect(&method, Named::read(seen.params).session));
        }
        Some(line.into())
    }

    /// The gateway says this. What the client hears of it; answers to the relay itself are not for it.
    pub(super) fn heard<'a>(&mut self, line: &'a str) -> Option<Cow<'a, str>> {
        let Ok(seen) = serde_json::from_str::<Seen<'_>>(line) else { return Some(line.into()) };
        let id = seen.id.map(RawValue::get);
        if seen.method.is_some() {
            let params = Named::read(seen.params);
            if let (Some(seq), Some(session)) = (params.reached(), params.session) {
                self.reached(session, seq);
            }
            return Some(id.map_or(line.into(), |id| self.asked(line, id)));
        }
        let Some(id) = id else { return Some(line.into()) };
        if id.starts_with(&format!("\"{OURS}")) {
            return None;
        }
        self.answered(id, seen.result);
        Some(line.into())
    }

    fn asked<'a>(&mut self, line: &'a str, theirs: &str) -> Cow<'a, str> {
        let id = match self.earlier {
            0 => theirs.to_owned(),
            earlier => json!(format!("{}-{earlier}", theirs.trim_matches('"'))).to_string(),
        };
        let shown = if id == theirs { line.into() } else { with_id(line, &id).into() };
        if self.questions.len() < MOST_WAITING {
            self.questions.insert(id, theirs.to_owned());
        }
        shown
    }

    fn answered(&mut self, id: &str, result: Option<&RawValue>) {
        let effect = self.waiting.remove(id).unwrap_or(Effect::None);
        let Some(result) = result.map(|result| Named::read(Some(result))) else { return };
        if matches!(&self.greeting, Greeting::Said { id: greeting, .. } if greeting == id)
            && let Greeting::Said { line, .. } = std::mem::take(&mut self.greeting)
        {
            self.greeting = Greeting::Done { line };
            self.named = result.mark().and_then(|mark| mark.session.clone());
            return;
        }
        let seq = result.reached().unwrap_or(0);
        match effect {
            Effect::None => {}
            Effect::Enters(session) => {
                if let Some(session) = result.session.or(session) {
                    self.reached(session, seq);
                }
            }
            Effect::EntersBefore(session) => {
                if let Some(session) = session {
                    self.reached(session, 0);
                }
            }
            Effect::Leaves(session) => {
                self.sessions.remove(&session);
            }
        }
    }

    fn reached(&mut self, session: String, seq: u64) {
        if self.sessions.contains_key(&session) || self.sessions.len() < MOST_SESSIONS {
            let known = self.sessions.entry(session).or_default();
            *known = seq.max(*known);
        }
    }

    /// What the client is told when a connection is lost: the answers that went with it, as errors, since whoever waits
    /// must not wait for ever; and that nobody waits for its own any more. Open questions are asked again.
    pub(super) fn lost(&mut self, why: &str) -> Vec<String> {
        let message = format!("the connection to the gateway was lost: {why}; the session goes on when it is back");
        let mut waiting = std::mem::take(&mut self.waiting);
        if let Greeting::Said { id, .. } = &self.greeting
            && let Some(effect) = waiting.remove(id)
        {
            // It is said again, and answered then.
            self.waiting.insert(id.clone(), effect);
        }
        // Ids are written as they came: a `Value` cannot hold every number of JSON.
        let error = json!({ "code": -32_603, "message": message, "data": { "code": "connection_lost" } });
        let failed = waiting.into_keys().map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}"));
        let withdrawn = std::mem::take(&mut self.questions).into_keys().map(|id| {
            let params = format!("{{\"requestId\":{id}}}");
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{params}}}")
        });
        self.earlier += 1;
        failed.chain(withdrawn).collect()
    }

    /// What a new connection is told first.
    pub(super) fn take_up(&self) -> Vec<String> {
        let line = match &self.greeting {
            Greeting::Awaited => return Vec::new(),
            Greeting::Said { line, .. } => return vec![line.clone()],
            Greeting::Done { line } => line,
        };
        let initialize = with_id(line, &json!(format!("{OURS}initialize")).to_string());
        let attach = self.sessions.iter().map(|(session, after)| {
            let id = format!("{OURS}{session}");
            let params = json!({ "sessionId": session, "after": after });
            json!({ "jsonrpc": "2.0", "id": id, "method": "_gembridge/attach", "params": params }).to_string()
        });
        std::iter::once(initialize).chain(attach).collect()
    }

    /// Whether the session that the address names is taken up like the others, so that the address must not name it.
    pub(super) fn has_entered_named(&self) -> bool {
        self.named.as_ref().is_some_and(|named| self.sessions.contains_key(named))
    }
}

fn effect(method: &str, session: Option<String>) -> Effect {
    match (method, session) {
        ("session/new" | "session/load" | "session/resume" | "session/prompt", session) => Effect::Enters(session),
        ("_gembridge/attach", session) => Effect::EntersBefore(session),
        ("session/close" | "session/delete" | "_gembridge/detach", Some(session)) => Effect::Leaves(session),
        _ => Effect::None,
    }
}

/// The same message under another id.
fn with_id(line: &str, id: &str) -> String {
    let members = serde_json::from_str::<BTreeMap<String, &RawValue>>(line);
    let id = serde_json::from_str::<&RawValue>(id);
    match (members, id) {
        (Ok(mut members), Ok(id)) => {
            members.insert("id".to_owned(), id);
            serde_json::to_string(&members).unwrap_or_else(|_| line.to_owned())
        }
        _ => line.to_owned(),
    }
}

/// Before the ids of the relay's own requests.
const OURS: &str = "gembridge-connect:";
/// A client that never gets an answer is not remembered for ever.
const MOST_WAITING: usize = 1_024;
const MOST_SESSIONS: usize = 256;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn state() -> ResumeState {
        let mut state = ResumeState::default();
        say(&mut state, 0, "initialize", &json!({ "protocolVersion": 1 }));
        answer(&mut state, 0, &json!({ "protocolVersion": 1 }));
        say(&mut state, "a", "session/new", &json!({ "cwd": "/" }));
        answer(&mut state, "a", &json!({ "sessionId": "s1", "_meta": { "gembridge": { "seq": 2 } } }));
        state
    }

    fn say(state: &mut ResumeState, id: impl Into<Value>, method: &str, params: &Value) {
        let line = json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }).to_string();
        assert_eq!(state.said(&line).as_deref(), Some(&*line));
    }

    fn answer(state: &mut ResumeState, id: impl Into<Value>, result: &Value) {
        let line = json!({ "jsonrpc": "2.0", "id": id.into(), "result": result }).to_string();
        assert_eq!(state.heard(&line).as_deref(), Some(&*line));
    }

    fn hear(state: &mut ResumeState, message: &Value) -> Value {
        serde_json::from_str(&state.heard(&message.to_string()).unwrap()).unwrap()
    }

    fn update(session: &str, mark: &Value) -> Value {
        let params = json!({ "sessionId": session, "_meta": { "gembridge": mark } });
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
    }

    fn told(lines: &[String]) -> Vec<Value> {
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn after(state: &ResumeState) -> Vec<Value> {
        told(&state.take_up()).into_iter().skip(1).map(|attach| attach["params"].clone()).collect()
    }

    #[test]
    fn a_new_connection_hears_who_speaks_and_what_was_seen_last() {
        let mut state = state();
        say(&mut state, 7, "session/prompt", &json!({ "sessionId": "s1", "prompt": [] }));
        hear(&mut state, &update("s1", &json!({ "seq": 9 })));
        hear(&mut state, &update("s1", &json!({ "seq": 5 })));
        let lines = state.take_up();
        let first = &told(&lines)[0];
        assert_eq!((&first["method"], &first["params"]["protocolVersion"]), (&json!("initialize"), &json!(1)));
        assert_eq!(after(&state), [json!({ "sessionId": "s1", "after": 9 })]);
        for line in lines {
            let id = serde_json::from_str::<Value>(&line).unwrap()["id"].clone();
            assert_eq!(state.heard(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string()), None);
        }
    }

    #[test]
    fn steps_that_only_the_gateway_tells_count_and_half_told_ones_do_not() {
        let mut state = state();
        let ended =
            json!({ "jsonrpc": "2.0", "method": "_gembridge/turn_ended", "params": { "sessionId": "s1", "seq": 12 } });
        hear(&mut state, &ended);
        hear(&mut state, &update("s1", &json!({ "seq": 13, "part": 1, "parts": 2 })));
        assert_eq!(after(&state), [json!({ "sessionId": "s1", "after": 12 })]);
        hear(&mut state, &update("s1", &json!({ "seq": 13, "part": 2, "parts": 2 })));
        assert_eq!(after(&state), [json!({ "sessionId": "s1", "after": 13 })]);
    }

    #[test]
    fn a_session_that_was_left_or_never_entered_is_not_taken_up() {
        let mut state = state();
        say(&mut state, 1, "session/load", &json!({ "sessionId": "s2" }));
        hear(&mut state, &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32002, "message": "unknown" } }));
        say(&mut state, 2, "session/set_mode", &json!({ "sessionId": "s3", "modeId": "m" }));
        answer(&mut state, 2, &json!({}));
        say(&mut state, 3, "session/close", &json!({ "sessionId": "s1" }));
        answer(&mut state, 3, &json!({}));
        assert_eq!(after(&state), Vec::<Value>::new());
    }

    #[test]
    fn whoever_waits_is_told_once_that_the_answer_is_gone() {
        let mut state = state();
        say(&mut state, 7, "session/prompt", &json!({ "sessionId": "s1" }));
        let failed = &told(&state.lost("it was killed"))[0];
        assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(7), &json!(-32_603)));
        assert!(failed["error"]["message"].as_str().unwrap().contains("it was killed"));
        assert_eq!(state.lost("again"), Vec::<String>::new());
    }

    #[test]
    fn f15_an_id_that_no_value_can_hold_is_given_back_as_it_was_written() {
        let mut state = state();
        assert!(state.said(r#"{"jsonrpc":"2.0","id":1e400,"method":"session/prompt"}"#).is_some());
        assert!(state.heard(r#"{"jsonrpc":"2.0","id":-1e999,"method":"session/request_permission"}"#).is_some());
        let told = state.lost("it was killed");
        assert!(told[0].starts_with(r#"{"jsonrpc":"2.0","id":1e400,"error":{"#), "{told:?}");
        assert_eq!(told[1], r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":-1e999}}"#);
    }

    #[test]
    fn a_greeting_without_an_answer_is_said_again_as_it_was() {
        let mut state = ResumeState::default();
        say(&mut state, 0, "initialize", &json!({}));
        assert_eq!(state.lost("it was killed"), Vec::<String>::new());
        assert_eq!(
            told(&state.take_up()),
            [json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} })]
        );
        let result = json!({ "_meta": { "gembridge": { "session": "s1" } } });
        answer(&mut state, 0, &result);
        assert!(!state.has_entered_named());
        hear(&mut state, &update("s1", &json!({ "seq": 1 })));
        assert!(state.has_entered_named());
    }

    #[test]
    fn an_answer_to_a_question_of_a_lost_connection_reaches_no_other_question() {
        let mut state = state();
        let question =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": { "x": 1.50 } });
        let reply = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string();
        assert_eq!(hear(&mut state, &question), question);
        let withdrawn = told(&state.lost("it was killed"));
        assert_eq!(withdrawn[0]["method"], "$/cancel_request");
        assert_eq!(withdrawn[0]["params"], json!({ "requestId": 1 }));
        let again = hear(&mut state, &question);
        assert_ne!(again["id"], 1);
        assert_eq!(again["params"], question["params"]);
        assert_eq!(state.said(&reply(json!(1))), None);
        let sent = state.said(&reply(again["id"].clone())).unwrap().into_owned();
        assert_eq!(serde_json::from_str::<Value>(&sent).unwrap()["id"], 1);
        assert_eq!(state.said(&reply(again["id"].clone())), None, "once");
    }

    #[test]
    fn what_is_no_message_is_passed_on_and_a_client_that_never_began_has_nothing_to_take_up() {
        let mut state = ResumeState::default();
        assert_eq!(state.said("no json").as_deref(), Some("no json"));
        assert_eq!(state.heard("[]").as_deref(), Some("[]"));
        assert_eq!(state.take_up(), Vec::<String>::new());
    }

    #[test]
    fn a_result_of_any_kind_is_an_answer() {
        let mut state = state();
        for result in [json!(null), json!([1]), json!("done"), json!({ "seq": "x", "_meta": null })] {
            say(&mut state, 1, "_agent/own", &json!([]));
            answer(&mut state, 1, &result);
            assert_eq!(state.lost("it was killed"), Vec::<String>::new(), "{result}");
        }
    }
}
