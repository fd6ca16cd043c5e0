//! A gateway's server with played agents, and clients of it.

pub mod agents;
pub mod client;
pub mod server;

use bytes::Bytes;
use gembridge_core::driver::{Signal, Update};
use gembridge_core::model::{
    Ask, AskBody, AskId, AskOption, Dialect, Event, Frame, OptionKind, Text, ToolCall, ToolCallId,
};
pub use gembridge_core::test_support::{done, done_with};

/// A piece of text in the frame that an agent sent it in.
pub fn text(text: &str) -> Signal {
    let update =
        serde_json::json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    let frame = serde_json::json!({
        "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "theirs", "update": update },
    });
    framed(Event::Text(Text::plain(text)), &frame.to_string())
}

pub fn framed(event: Event, frame: &str) -> Signal {
    let bytes = Bytes::copy_from_slice(frame.as_bytes());
    Signal::Update(Update { event, frame: Some(Frame { dialect: Dialect::Acp, bytes }) })
}

/// A question for permission, in its frame.
pub fn asks(ask: u64) -> Signal {
    let option = |id: &str, kind| AskOption { id: id.into(), name: id.into(), kind };
    let options = vec![option("yes", OptionKind::AllowOnce), option("no", OptionKind::RejectOnce)];
    let tool = Box::new(ToolCall::update(ToolCallId::new("call-1")));
    let body = AskBody::Permission { tool, options, subject: gembridge_core::model::Subject::AgentTool };
    let frame = serde_json::json!({
        "jsonrpc": "2.0", "id": "agents-own", "method": "session/request_permission",
        "params": {
            "sessionId": "theirs", "toolCall": { "toolCallId": "call-1", "title": "run it", "extra": 7 },
            "options": [{ "optionId": "yes", "name": "yes", "kind": "allow_once" }, { "optionId": "no", "name": "no", "kind": "reject_once" }],
        },
    });
    framed(Event::Asked(Box::new(Ask { id: AskId(ask), body })), &frame.to_string())
}
