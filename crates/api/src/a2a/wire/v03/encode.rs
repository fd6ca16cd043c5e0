//! Model → outside.

use serde_json::{Value, json};

use crate::a2a::model::{Artifact, Author, Continuation, Message, Part, State, Status, Task, TaskName, Update, iso};

pub fn task(task: &Task) -> Value {
    let name = &task.name;
    json!({
        "kind": "task",
        "id": name.id.to_string(),
        "contextId": name.context,
        "status": status(name, &task.status),
        "history": task.history.iter().map(|said| message(name, said)).collect::<Vec<_>>(),
        "artifacts": task.artifacts.iter().map(artifact).collect::<Vec<_>>(),
        "metadata": task.metadata,
    })
}

pub fn update(name: &TaskName, update: &Update) -> Value {
    match update {
        Update::Status { status: now, kind, metadata, is_last } => {
            let mut all = json!({ "coderAgent": { "kind": kind.as_str() } });
            for (field, value) in metadata {
                all[*field] = value.clone();
            }
            json!({
                "kind": "status-update",
                "taskId": name.id.to_string(),
                "contextId": name.context,
                "status": status(name, now),
                "final": is_last,
                "metadata": all,
            })
        }
        Update::Artifact { artifact: piece, continuation } => json!({
            "kind": "artifact-update",
            "taskId": name.id.to_string(),
            "contextId": name.context,
            "artifact": artifact(piece),
            "append": *continuation == Continuation::Appended,
            "lastChunk": false,
        }),
    }
}

pub fn state_name(state: State) -> &'static str {
    match state {
        State::Submitted => "submitted",
        State::Working => "working",
        State::InputRequired => "input-required",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Canceled => "canceled",
        State::Rejected => "rejected",
    }
}

fn status(name: &TaskName, status: &Status) -> Value {
    let mut shown = json!({ "state": state_name(status.state), "timestamp": iso(status.at) });
    if let Some(said) = &status.message {
        shown["message"] = message(name, said);
    }
    shown
}

pub fn message(name: &TaskName, said: &Message) -> Value {
    let role = match said.author {
        Author::User => "user",
        Author::Agent => "agent",
    };
    json!({
        "kind": "message",
        "messageId": said.id,
        "role": role,
        "parts": said.parts.iter().map(part).collect::<Vec<_>>(),
        "taskId": name.id.to_string(),
        "contextId": name.context,
    })
}

fn artifact(artifact: &Artifact) -> Value {
    let parts: Vec<Value> = artifact.parts.iter().map(part).collect();
    let mut shown = json!({ "artifactId": artifact.id, "parts": parts });
    if let Some(name) = &artifact.name {
        shown["name"] = json!(name);
    }
    shown
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "kind": "text", "text": text }),
        Part::Data(data) => json!({ "kind": "data", "data": data }),
        Part::Raw { name, mime, data } => {
            json!({ "kind": "file", "file": file(name.as_deref(), mime.as_deref(), ("bytes", data.to_str().as_ref())) })
        }
        Part::Url { name, mime, url } => {
            json!({ "kind": "file", "file": file(name.as_deref(), mime.as_deref(), ("uri", url)) })
        }
    }
}

fn file(name: Option<&str>, mime: Option<&str>, (field, content): (&str, &str)) -> Value {
    let mut file = json!({ field: content });
    if let Some(name) = name {
        file["name"] = json!(name);
    }
    if let Some(mime) = mime {
        file["mimeType"] = json!(mime);
    }
    file
}
