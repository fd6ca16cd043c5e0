//! What agents may write, mutated: nothing panics, and whatever is answered is one line of JSON.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::Answer;
use gembridge_testkit::fuzz::{Fuzz, beginning, signature};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::client_methods::ClientMethods;
use super::encode;
use super::own_tools::OwnTools;
use super::router::{Routed, Router};
use super::routing_table::{Opening, Pending, Phase, RoutingTable, Tools};
use crate::profile::{Profile, Quirk};
use crate::setup::ClientAccess;

const WORDS: &[&str] = &[
    "\n",
    "\"jsonrpc\":\"2.0\",",
    "\"id\":",
    "\"method\":\"session/update\",",
    "\"method\":\"session/request_permission\",",
    "\"method\":\"elicitation/create\",",
    "\"method\":\"fs/read_text_file\",",
    "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":",
    "\"params\":{\"sessionId\":\"one\",",
    "\"update\":{\"sessionUpdate\":",
    "\"agent_message_chunk\"",
    "\"tool_call_update\"",
    "\"content\":{\"type\":\"text\",\"text\":\"\"}",
    "[MODE_UPDATE] plan",
    "****\\n",
    "\"stopReason\":\"end_turn\"",
    "\"error\":{\"code\":-32000,\"message\":\"\"}",
    "\"options\":[{\"optionId\":\"a\",\"name\":\"b\",\"kind\":\"allow_once\"}]",
    "null",
    "\\ud83d",
    "\\u0000",
];

#[test]
fn s31_fuzz_jsonrpc_out() {
    let known = Profile::builtin().unwrap();
    let profile = known.iter().find(|profile| profile.name == "gemini").unwrap();
    let quirks = vec![
        Quirk::ModeUpdateAsText,
        Quirk::ThoughtSubjectMarkup,
        Quirk::PermissionWithoutToolCall,
        Quirk::ToolNameInCallId,
    ];
    let lines = Router { agent: "gemini".into(), quirks, own_tools: OwnTools::of(profile) };
    Fuzz::named("jsonrpc-out").words(WORDS).check(move |input| {
        let (mut table, mut routed) = (RoutingTable::default(), Routed::default());
        let (sink, _signals) = mpsc::channel(64);
        let methods = Arc::new(ClientMethods { work: None, access: ClientAccess::NONE, missing_reads_empty: false });
        let name: Arc<str> = "one".into();
        table.add(&name, Opening { sink, methods, repeat: None, tools: Tools::Given }, Phase::Live);
        let (reply, _result) = oneshot::channel();
        table.expect(Pending::Prompt { session: name }).expect("the agent lives");
        table.expect(Pending::Call(reply)).expect("the agent lives");
        let now = Instant::now();
        for line in input.split(|byte| *byte == b'\n') {
            let frame = Bytes::copy_from_slice(line);
            lines.route(&mut table, &frame.clone(), frame, now, &mut routed);
        }
        let slot = table.find("one").and_then(|at| table.at(at)).expect("the session stays");
        for ask in slot.asks.values() {
            routed.replies.push(encode::answer(&ask.id, &ask.body, &Answer::Cancelled));
            routed.replies.push(encode::answer(&ask.id, &ask.body, &Answer::Option("a".into())));
        }
        for reply in &routed.replies {
            assert!(!reply.contains(&b'\n'), "{}", reply.escape_ascii());
            serde_json::from_slice::<&RawValue>(reply).expect("JSON");
        }
        let signals: Vec<_> = slot.batch.iter().map(beginning).collect();
        signature(&(routed.noise, routed.replies.len(), routed.jobs.len(), slot.asks.len(), signals))
    });
}
