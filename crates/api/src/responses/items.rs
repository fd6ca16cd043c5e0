//! What was said as a list of items, for clients that ask for it again.

use gembridge_core::model::{Content, Message, Part, Role};
use serde::Serialize;
use serde_json::{Value, json};

use super::decode::Conversation;
use crate::problem::Problem;

/// Which of the items a client wants.
#[derive(Clone, Debug, Default, serde::Deserialize)]
pub(super) struct Page {
    after: Option<String>,
    limit: Option<usize>,
    order: Option<String>,
}

#[derive(Serialize)]
pub(super) struct ItemList {
    object: &'static str,
    data: Vec<Value>,
    first_id: Option<Value>,
    last_id: Option<Value>,
    has_more: bool,
}

const DEFAULT_LIMIT: usize = 20;
const MOST: usize = 100;

/// The order of items where a client does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

/// The first `messages` of a conversation as items. `of` is what they are items of.
pub(super) fn list(
    said: &Conversation,
    messages: usize,
    of: &str,
    page: &Page,
    default: Order,
) -> Result<ItemList, Problem> {
    let mut items: Vec<Value> = Vec::new();
    let (mut calls, mut results) = (said.calls.iter().peekable(), said.results.iter().peekable());
    for (at, message) in said.messages.iter().take(messages).enumerate() {
        if message.role == Role::Tool {
            let id = results.next_if(|result| result.message == at).map(|result| result.id.as_str());
            items.push(json!({ "type": "function_call_output", "call_id": id, "output": parts(message) }));
            continue;
        }
        if message.content().next().is_some() {
            items.push(json!({ "type": "message", "role": role(message.role), "content": parts(message) }));
        }
        for part in &message.parts {
            if let Part::Call { call, arguments } = part {
                let id = calls.next_if(|call| call.message == at).map(|call| call.id.as_str());
                let arguments = arguments.to_str();
                items.push(
                    json!({ "type": "function_call", "call_id": id, "name": &*call.tool, "arguments": arguments }),
                );
            }
        }
    }
    let of = of.split_once('_').map_or(of, |(_, rest)| rest);
    for (at, item) in items.iter_mut().enumerate() {
        item["id"] = json!(format!("item_{of}_{at}"));
        item["status"] = json!("completed");
    }
    page.of(items, default)
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn parts(message: &Message) -> Vec<Value> {
    let text = if message.role == Role::Assistant { "output_text" } else { "input_text" };
    let part = |content: &Content| match content {
        Content::Text(said) if text == "output_text" => {
            json!({ "type": text, "text": said.to_str(), "annotations": [] })
        }
        Content::Text(said) => json!({ "type": text, "text": said.to_str() }),
        Content::Image { mime, data, .. } => {
            let url = format!("data:{mime};base64,{}", data.to_str());
            json!({ "type": "input_image", "image_url": url, "detail": "auto" })
        }
        Content::Blob { uri, .. } | Content::Document { uri, .. } => {
            json!({ "type": "input_file", "filename": &**uri })
        }
        Content::Audio { .. } | Content::Link { .. } | Content::Other { .. } => json!({ "type": text, "text": "" }),
    };
    message.content().map(part).collect()
}

impl Page {
    fn of(&self, mut items: Vec<Value>, default: Order) -> Result<ItemList, Problem> {
        let order = match self.order.as_deref() {
            None => default,
            Some("asc") => Order::OldestFirst,
            Some("desc") => Order::NewestFirst,
            Some(_) => return Err(Problem::invalid("order", "`order` must be `asc` or `desc`")),
        };
        if order == Order::NewestFirst {
            items.reverse();
        }
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MOST).contains(&limit) {
            return Err(Problem::invalid("limit", format!("`limit` is {limit}; ask for 1 to {MOST}")));
        }
        if let Some(after) = &self.after {
            let at = items.iter().position(|item| item["id"] == after.as_str());
            let at = at.ok_or_else(|| Problem::invalid("after", "`after` is none of these items"))?;
            items.drain(..=at);
        }
        let has_more = items.len() > limit;
        items.truncate(limit);
        let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
        Ok(ItemList { object: "list", first_id: id(items.first()), last_id: id(items.last()), data: items, has_more })
    }
}
