//! `session/update` by kind.

use bytes::Bytes;
use gembridge_core::model::{Command, Content, Event, Opaque, PlanEntry, PlanPriority, PlanStatus, Text, ToolContent};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::tool;
use crate::acp::wire;

/// The event of an update. A kind that we do not know, or know otherwise, is passed on whole by its name.
pub(in crate::acp) fn update(raw: &RawValue) -> Event {
    let Ok(head) = serde_json::from_str::<wire::UpdateHead>(raw.get()) else {
        return Event::Other { kind: "".into() };
    };
    known(&head.kind, raw).unwrap_or_else(|| Event::Other { kind: head.kind.into() })
}

fn known(kind: &str, raw: &RawValue) -> Option<Event> {
    Some(match kind {
        "agent_message_chunk" => match chunk(raw)? {
            Content::Text(text) => Event::Text(text),
            other => Event::Content(other),
        },
        "agent_thought_chunk" => match chunk(raw)? {
            Content::Text(text) => Event::Thought(text),
            other => Event::Content(other),
        },
        "tool_call" | "tool_call_update" => Event::ToolCall(Box::new(tool::tool_call(&read(raw)?))),
        "plan" => Event::Plan(read::<wire::Plan>(raw)?.entries.into_iter().map(plan_entry).collect()),
        "available_commands_update" => {
            let commands: wire::AvailableCommands = read(raw)?;
            Event::Commands(commands.available_commands.into_iter().map(command).collect())
        }
        "current_mode_update" => Event::Mode(read::<wire::CurrentMode>(raw)?.current_mode_id.into()),
        "config_option_update" => Event::Options(opaque(read::<wire::ConfigOptions<'_>>(raw)?.config_options)),
        "session_info_update" => Event::Title(read::<wire::SessionInfo>(raw)?.title?.into()),
        "usage_update" => {
            let usage: wire::UsageUpdate = read(raw)?;
            Event::Context { used: usage.used, size: usage.size }
        }
        _ => return None,
    })
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// The content of a piece. The protocol has one block there; some agents send bare text or several blocks.
fn chunk(raw: &RawValue) -> Option<Content> {
    let sent = read::<wire::ContentChunk<'_>>(raw)?.content;
    match sent.get().as_bytes().first()? {
        b'"' => json_string(sent).map(Content::Text),
        b'[' => joined(sent),
        b'n' => None,
        _ => Some(content(sent)),
    }
}

/// The text of several blocks as one, and what has no text as it is.
fn joined(list: &RawValue) -> Option<Content> {
    let blocks: Vec<&RawValue> = read(list).unwrap_or_default();
    let text = |block: &&RawValue| match content(block) {
        Content::Text(text) => Some(text),
        _ => json_string(block),
    };
    let texts: Vec<Text> = blocks.iter().filter_map(text).collect();
    Some(match (&blocks[..], texts.is_empty()) {
        (_, false) => {
            let escaped: Vec<u8> = texts.iter().flat_map(|text| text.to_escaped().into_owned()).collect();
            Content::Text(Text::escaped(escaped.into()))
        }
        ([], true) => return None,
        ([only], true) => content(only),
        (_, true) => Content::Other { kind: "".into(), body: opaque(list) },
    })
}

pub(super) fn opaque(raw: &RawValue) -> Opaque {
    Opaque(Bytes::copy_from_slice(raw.get().as_bytes()))
}

pub(super) fn content(raw: &RawValue) -> Content {
    let other = |kind: &str| Content::Other { kind: kind.into(), body: opaque(raw) };
    let Some(block) = read::<wire::Content>(raw) else { return other("") };
    known_content(&block).unwrap_or_else(|| other(&block.kind))
}

fn known_content(block: &wire::Content) -> Option<Content> {
    let mime = || block.mime_type.as_deref().map(Into::into);
    Some(match block.kind.as_str() {
        "text" => Content::Text(json_string(block.text.as_deref()?)?),
        "image" => Content::Image {
            mime: mime()?,
            data: Text::plain(block.data.clone()?),
            uri: block.uri.as_deref().map(Into::into),
        },
        "audio" => Content::Audio { mime: mime()?, data: Text::plain(block.data.clone()?) },
        "resource_link" => Content::Link {
            uri: block.uri.as_deref()?.into(),
            name: block.name.as_deref().unwrap_or_default().into(),
            mime: mime(),
        },
        "resource" => resource(block.resource.as_ref()?)?,
        _ => return None,
    })
}

fn resource(resource: &wire::Resource) -> Option<Content> {
    let (uri, mime) = (resource.uri.as_str().into(), resource.mime_type.as_deref().map(Into::into));
    match (&resource.text, &resource.blob) {
        (Some(text), _) => Some(Content::Document { uri, mime, text: Text::plain(text.clone()) }),
        (None, Some(blob)) => Some(Content::Blob { uri, mime, data: Text::plain(blob.clone()) }),
        (None, None) => None,
    }
}

fn json_string(raw: &RawValue) -> Option<Text> {
    let body = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    Some(Text::escaped(Bytes::copy_from_slice(body.as_bytes())))
}

pub(super) fn tool_content(raw: &RawValue) -> ToolContent {
    let other = |kind: &str| ToolContent::Other { kind: kind.into(), body: opaque(raw) };
    let Some(item) = read::<wire::ToolContent<'_>>(raw) else { return other("") };
    match (item.kind.as_str(), &item) {
        ("content", wire::ToolContent { content: Some(inner), .. }) => ToolContent::Content(content(inner)),
        ("diff", wire::ToolContent { path: Some(path), new_text: Some(new), .. }) => ToolContent::Diff {
            path: path.as_str().into(),
            old: item.old_text.clone().map(Text::plain),
            new: Text::plain(new.clone()),
        },
        ("terminal", wire::ToolContent { terminal_id: Some(id), .. }) => ToolContent::Terminal(id.as_str().into()),
        (kind, _) => other(kind),
    }
}

fn plan_entry(entry: wire::PlanEntry) -> PlanEntry {
    PlanEntry {
        content: entry.content.into(),
        priority: match entry.priority.as_str() {
            "high" => PlanPriority::High,
            "low" => PlanPriority::Low,
            _ => PlanPriority::Medium,
        },
        status: match entry.status.as_str() {
            "in_progress" => PlanStatus::InProgress,
            "completed" => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        },
    }
}

fn command(command: wire::AvailableCommand) -> Command {
    Command {
        name: command.name.into(),
        description: command.description.into(),
        hint: command.input.and_then(|input| input.hint).map(Into::into),
    }
}
