//! Model → outside.

use serde_json::{Value, json};

use crate::a2a::model::{Artifact, Author, Continuation, Message, Part, State, Status, Task, TaskName, Update, iso};

pub fn task(task: &Task) -> Value {
    let name = &task.name;
    json!({
        "id": name.id.to_string(),
        "contextId": name.context,
        "status": status(name, &task.status),
        "history": task.history.iter().map(|said| message(name, said)).collect::<Vec<_>>(),
        "artifacts": task.artifacts.iter().map(artifact).collect::<Vec<_>>(),
        "metadata": task.metadata,
    })
}

/// The same in the place where a message could stand as well.
pub fn answer(answer: &Task) -> Value {
    json!({ "task": task(answer) })
}

/// A message in that place. It is of no task.
pub fn message_answer(name: &TaskName, said: &Message) -> Value {
    let mut shown = message(name, said);
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("taskId");
    }
    json!({ "message": shown })
}

pub fn update(name: &TaskName, update: &Update) -> Value {
    match update {
        // That nothing more comes is told by the end of the stream.
        Update::Status { status: now, kind, metadata, is_last: _ } => {
            let mut all = json!({ "coderAgent": { "kind": kind.as_str() } });
            for (field, value) in metadata {
                all[*field] = value.clone();
            }
            json!({ "statusUpdate": {
                "taskId": name.id.to_string(),
                "contextId": name.context,
                "status": status(name, now),
                "metadata": all,
            } })
        }
        Update::Artifact { artifact: piece, continuation } => json!({ "artifactUpdate": {
            "taskId": name.id.to_string(),
            "contextId": name.context,
            "artifact": artifact(piece),
            "append": *continuation == Continuation::Appended,
            "lastChunk": false,
        } }),
    }
}

pub fn state_name(state: State) -> &'static str {
    match state {
        State::Submitted => "TASK_STATE_SUBMITTED",
        State::Working => "TASK_STATE_WORKING",
        State::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        State::Completed => "TASK_STATE_COMPLETED",
        State::Failed => "TASK_STATE_FAILED",
        State::Canceled => "TASK_STATE_CANCELED",
        State::Rejected => "TASK_STATE_REJECTED",
    }
}

fn status(name: &TaskName, status: &Status) -> Value {
    let mut shown = json!({ "state": state_name(status.state), "timestamp": iso(status.at) });
    if let Some(said) = &status.message {
        shown["message"] = message(name, said);
    }
    shown
}

fn message(name: &TaskName, said: &Message) -> Value {
    let role = match said.author {
        Author::User => "ROLE_USER",
        Author::Agent => "ROLE_AGENT",
    };
    json!({
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
        Part::Text(text) => json!({ "text": text }),
        Part::Data(data) => json!({ "data": data }),
        Part::Raw { name, mime, data } => file(name.as_deref(), mime.as_deref(), ("raw", data.to_str().as_ref())),
        Part::Url { name, mime, url } => file(name.as_deref(), mime.as_deref(), ("url", url)),
    }
}

fn file(name: Option<&str>, mime: Option<&str>, (field, content): (&str, &str)) -> Value {
    let mut file = json!({ field: content });
    if let Some(name) = name {
        file["filename"] = json!(name);
    }
    if let Some(mime) = mime {
        file["mediaType"] = json!(mime);
    }
    file
}
