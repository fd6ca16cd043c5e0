//! Outside → model.

use serde_json::value::RawValue;

use super::encode::state_name;
use super::wire::{ListParams, Message, Part as WirePart, SendParams, TaskParams};
use crate::a2a::error::{Fault, Reason};
use crate::a2a::methods::list::page_size;
use crate::a2a::model::Part;
use crate::a2a::wire::{
    Call, Incoming, InjectParams, List, Reply, Send, check, history, merged, named, params, state_named,
};

pub const METHODS: [&str; 13] = [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/list",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
    "inject_result",
    "tasks/injectResult",
];

pub fn call(method: &str, raw: Option<&RawValue>) -> Result<Call, Fault> {
    Ok(match method {
        "message/send" => Call::Send(Box::new(send(params(raw)?)?)),
        "message/stream" => Call::Stream(Box::new(send(params(raw)?)?)),
        "tasks/get" => {
            let wanted: TaskParams = params(raw)?;
            Call::Get { history: history(wanted.history_length)?, task: wanted.id }
        }
        "tasks/list" => Call::List(Box::new(list(params(raw)?)?)),
        "tasks/cancel" => Call::Cancel { task: params::<TaskParams>(raw)?.id },
        "tasks/resubscribe" => Call::Subscribe { task: params::<TaskParams>(raw)?.id },
        "inject_result" | "tasks/injectResult" => Call::Inject(Box::new(params::<InjectParams>(raw)?.read()?)),
        "agent/getAuthenticatedExtendedCard" => Call::ExtendedCard,
        known if METHODS.contains(&known) => Call::PushConfig,
        unknown => {
            let shown: String = unknown.chars().take(64).flat_map(char::escape_default).collect();
            return Err(Fault::new(Reason::MethodNotFound, format!("A2A 0.3 has no method `{shown}` here")));
        }
    })
}

fn send(request: SendParams) -> Result<Send, Fault> {
    let configuration = request.configuration;
    let configured = configuration.as_ref();
    if configured.is_some_and(|configuration| configuration.push_notification_config.is_some()) {
        return Err(Fault::new(Reason::PushNotSupported, "push notifications are not sent; follow the task instead"));
    }
    let is_at_once = configured.is_some_and(|configuration| configuration.blocking == Some(false));
    let length = configured.and_then(|configuration| configuration.history_length);
    let Message { id, role, parts, task_id, context_id, metadata } = request.message;
    let message = Incoming {
        id,
        task: named(task_id),
        context: named(context_id),
        parts: parts.0.into_iter().map(part).collect::<Result<_, _>>()?,
        metadata: merged(request.metadata, metadata),
    };
    Ok(Send {
        message: check(message, &role, "user")?,
        reply: if is_at_once { Reply::AtOnce } else { Reply::AtRest },
        history: history(length)?,
    })
}

fn part(part: WirePart) -> Result<Part, Fault> {
    let missing = |field: &str| Fault::params(format!("a part of kind `{}` needs `{field}`", part.kind));
    match part.kind.as_str() {
        "text" => part.text.map(|text| Part::Text(text.into())).ok_or_else(|| missing("text")),
        "data" => part.data.map(Part::Data).ok_or_else(|| missing("data")),
        "file" => {
            let file = part.file.ok_or_else(|| missing("file"))?;
            let (name, mime) = (file.name.map(Into::into), file.mime_type.map(Into::into));
            match (file.bytes, file.uri) {
                (Some(data), None) => Ok(Part::Raw { name, mime, data: data.into() }),
                (None, Some(url)) => Ok(Part::Url { name, mime, url: url.into() }),
                _ => Err(Fault::params("a part of kind `file` needs one of `file.bytes` and `file.uri`")),
            }
        }
        kind => {
            let shown: String = kind.chars().take(32).flat_map(char::escape_default).collect();
            Err(Fault::params(format!("`{shown}` is no kind of part; use `text`, `file` or `data`")))
        }
    }
}

fn list(wanted: ListParams) -> Result<List, Fault> {
    let state = wanted.status.as_deref().map(|text| {
        state_named(text, state_name)
            .ok_or_else(|| Fault::params("`status` is no state of a task; use one such as `working`"))
    });
    Ok(List {
        context: named(wanted.context_id),
        state: state.transpose()?,
        page_size: page_size(wanted.page_size)?,
        page_token: named(wanted.page_token),
        history: history(wanted.history_length)?,
        artifacts: wanted.include_artifacts,
        changed_since: None,
    })
}
