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
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "inject_result",
    "InjectResult",
];

pub fn call(method: &str, raw: Option<&RawValue>) -> Result<Call, Fault> {
    Ok(match method {
        "SendMessage" => Call::Send(Box::new(send(params(raw)?)?)),
        "SendStreamingMessage" => Call::Stream(Box::new(send(params(raw)?)?)),
        "GetTask" => {
            let wanted: TaskParams = params(raw)?;
            Call::Get { history: history(wanted.history_length)?, task: wanted.id }
        }
        "ListTasks" => Call::List(Box::new(list(params(raw)?)?)),
        "CancelTask" => Call::Cancel { task: params::<TaskParams>(raw)?.id },
        "SubscribeToTask" => Call::Subscribe { task: params::<TaskParams>(raw)?.id },
        "inject_result" | "InjectResult" => Call::Inject(Box::new(params::<InjectParams>(raw)?.read()?)),
        "GetExtendedAgentCard" => Call::ExtendedCard,
        known if METHODS.contains(&known) => Call::PushConfig,
        unknown => {
            let shown: String = unknown.chars().take(64).flat_map(char::escape_default).collect();
            return Err(Fault::new(Reason::MethodNotFound, format!("A2A 1.0 has no method `{shown}` here")));
        }
    })
}

fn send(request: SendParams) -> Result<Send, Fault> {
    let configuration = request.configuration;
    let configured = configuration.as_ref();
    if configured.is_some_and(|configuration| configuration.task_push_notification_config.is_some()) {
        return Err(Fault::new(Reason::PushNotSupported, "push notifications are not sent; follow the task instead"));
    }
    let is_at_once = configured.is_some_and(|configuration| configuration.return_immediately);
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
        message: check(message, &role, "ROLE_USER")?,
        reply: if is_at_once { Reply::AtOnce } else { Reply::AtRest },
        history: history(length)?,
    })
}

fn part(part: WirePart) -> Result<Part, Fault> {
    let (name, mime) = (part.filename.map(Into::into), part.media_type.map(Into::into));
    match (part.text, part.raw, part.url, part.data) {
        (Some(text), None, None, None) => Ok(Part::Text(text.into())),
        (None, Some(data), None, None) => Ok(Part::Raw { name, mime, data: data.into() }),
        (None, None, Some(url), None) => Ok(Part::Url { name, mime, url: url.into() }),
        (None, None, None, Some(data)) => Ok(Part::Data(data)),
        _ => Err(Fault::params("a part has exactly one of `text`, `raw`, `url` and `data`")),
    }
}

fn list(wanted: ListParams) -> Result<List, Fault> {
    let state = wanted.status.as_deref().filter(|text| !text.is_empty() && *text != "TASK_STATE_UNSPECIFIED");
    let state = state.map(|text| {
        state_named(text, state_name)
            .ok_or_else(|| Fault::params("`status` is no state of a task; use one such as `TASK_STATE_WORKING`"))
    });
    let since = wanted.status_timestamp_after.as_deref().map(|text| {
        let unread = || Fault::params("`statusTimestampAfter` is no time such as `2026-01-31T12:00:00Z`");
        let at: jiff::Timestamp = text.parse().map_err(|_| unread())?;
        u64::try_from(at.as_millisecond()).map_err(|_| unread())
    });
    Ok(List {
        context: named(wanted.context_id),
        state: state.transpose()?,
        page_size: page_size(wanted.page_size)?,
        page_token: named(wanted.page_token),
        history: history(wanted.history_length)?,
        artifacts: wanted.include_artifacts.unwrap_or(false),
        changed_since: since.transpose()?,
    })
}
