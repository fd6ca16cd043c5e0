//! What tests read out of ACP messages, by whichever way they came.

use serde_json::Value;

pub fn is_answer(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}

/// What the last of these messages answers.
pub fn outcome(messages: &[Value]) -> Result<Value, Value> {
    let answer = messages.last().unwrap();
    match answer.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(answer["result"].clone()),
    }
}

/// What the agent said in these.
pub fn said(messages: &[Value]) -> String {
    let updates = messages.iter().map(|message| &message["params"]["update"]);
    let pieces = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    pieces.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// The numbers of the log entries that were sent, in the order in which they were.
pub fn steps(messages: &[Value]) -> Vec<u64> {
    let seq = |message: &Value| {
        let params = &message["params"];
        params["_meta"]["gembridge"]["seq"].as_u64().or_else(|| params["seq"].as_u64())
    };
    messages.iter().filter_map(seq).collect()
}

pub fn last_seq(messages: &[Value]) -> u64 {
    steps(messages).into_iter().max().unwrap_or(0)
}
