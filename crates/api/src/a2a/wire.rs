//! The two versions of the protocol on the wire. Both decode into [`Call`] and encode the same model.

pub mod v03;
pub mod v10;

use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{Fault, Reason};
use super::follow::End;
use super::model::{Answer, Part, State, Task, TaskName, Update};

/// A version of the protocol, as a request chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V03,
    V10,
}

/// What a client asks for.
#[derive(Debug)]
pub enum Call {
    Send(Box<Send>),
    Stream(Box<Send>),
    Get {
        task: String,
        history: Option<usize>,
    },
    List(Box<List>),
    Cancel {
        task: String,
    },
    Subscribe {
        task: String,
    },
    /// Results of the client's tools, by a method of their own.
    Inject(Box<Send>),
    ExtendedCard,
    PushConfig,
}

/// A message for the agent.
#[derive(Debug)]
pub struct Send {
    pub message: Incoming,
    pub reply: Reply,
    pub history: Option<usize>,
}

/// When a call that does not stream is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// When the task needs its client again.
    AtRest,
    AtOnce,
}

#[derive(Debug)]
pub struct Incoming {
    pub id: String,
    pub task: Option<String>,
    pub context: Option<String>,
    pub parts: Vec<Part>,
    /// That of the message, and that of the request where the message says nothing.
    pub metadata: Value,
}

/// Which tasks a client wants to see.
#[derive(Debug, Default)]
pub struct List {
    pub context: Option<String>,
    pub state: Option<State>,
    pub page_size: Option<usize>,
    pub page_token: Option<String>,
    pub history: Option<usize>,
    pub artifacts: bool,
    /// Tasks that changed at this time or later, in milliseconds since 1970.
    pub changed_since: Option<u64>,
}

/// A page of tasks.
pub struct Page {
    pub tasks: Vec<Task>,
    pub next: String,
    pub size: usize,
    pub total: usize,
}

impl Version {
    /// The version that a header or a query names. None is the older one.
    pub fn named(text: Option<&str>) -> Result<Option<Self>, Fault> {
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
        let mut numbers = text.split('.');
        match (numbers.next(), numbers.next()) {
            (Some("0"), Some("3")) => Ok(Some(Self::V03)),
            (Some("1"), _) => Ok(Some(Self::V10)),
            _ => {
                let shown: String = text.chars().take(32).flat_map(char::escape_default).collect();
                let message = format!("version `{shown}` of A2A is not served; use 0.3 or 1.0");
                Err(Fault::new(Reason::VersionNotSupported, message))
            }
        }
    }

    pub fn decode(self, method: &str, params: Option<&RawValue>) -> Result<Call, Fault> {
        match self {
            Self::V03 => v03::decode::call(method, params),
            Self::V10 => v10::decode::call(method, params),
        }
    }

    /// Whether this version has a method of this name.
    pub fn has(self, method: &str) -> bool {
        match self {
            Self::V03 => v03::decode::METHODS.contains(&method),
            Self::V10 => v10::decode::METHODS.contains(&method),
        }
    }

    /// How far a subscription goes: the newer version has it last as long as the task.
    pub fn end_of_subscription(self) -> End {
        match self {
            Self::V03 => End::AtRest,
            Self::V10 => End::Terminal,
        }
    }

    pub fn task(self, task: &Task) -> Value {
        match self {
            Self::V03 => v03::encode::task(task),
            Self::V10 => v10::encode::task(task),
        }
    }

    /// What a message led to: the task, or the agent's own message where it says that there is no task.
    pub fn answer(self, task: &Task) -> Value {
        match (self, task.status.message.as_ref().filter(|_| task.reply == Answer::Message)) {
            (Self::V03, Some(message)) => v03::encode::message(&task.name, message),
            (Self::V10, Some(message)) => v10::encode::message_answer(&task.name, message),
            (_, None) => self.begin(task),
        }
    }

    /// A task as the first event of a stream.
    pub fn begin(self, task: &Task) -> Value {
        match self {
            Self::V03 => v03::encode::task(task),
            Self::V10 => v10::encode::answer(task),
        }
    }

    pub fn update(self, name: &TaskName, update: &Update) -> Value {
        match self {
            Self::V03 => v03::encode::update(name, update),
            Self::V10 => v10::encode::update(name, update),
        }
    }

    pub fn page(self, page: &Page, with_artifacts: bool) -> Value {
        match self {
            Self::V03 => shown(page, with_artifacts, v03::encode::task),
            Self::V10 => shown(page, with_artifacts, v10::encode::task),
        }
    }

    pub fn error(self, fault: &Fault) -> Value {
        match self {
            Self::V03 => v03::error::error(fault),
            Self::V10 => v10::error::error(fault),
        }
    }
}

/// A page, with each task as its version writes it.
fn shown(page: &Page, with_artifacts: bool, task: fn(&Task) -> Value) -> Value {
    let shown = |listed: &Task| {
        let mut shown = task(listed);
        if let Some(fields) = shown.as_object_mut().filter(|_| !with_artifacts) {
            fields.remove("artifacts");
        }
        shown
    };
    serde_json::json!({
        "tasks": page.tasks.iter().map(shown).collect::<Vec<_>>(),
        "nextPageToken": page.next,
        "pageSize": page.size,
        "totalSize": page.total,
    })
}

/// The state that a version gives this name.
pub(super) fn state_named(text: &str, name: fn(State) -> &'static str) -> Option<State> {
    const STATES: [State; 7] = [
        State::Submitted,
        State::Working,
        State::InputRequired,
        State::Completed,
        State::Failed,
        State::Canceled,
        State::Rejected,
    ];
    STATES.into_iter().find(|state| name(*state) == text)
}

/// Metadata and data are read into trees, in which a value of two bytes takes hundreds.
const MOST_VALUES: usize = 50_000;

/// About how many values a JSON text has, or more.
fn values(json: &str) -> usize {
    let (mut values, mut in_string, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

/// The parameters of a method, read by name.
pub(super) fn params<'a, T: serde::Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Fault> {
    let text = params.map_or("{}", |params| params.get());
    if !text.starts_with('{') {
        return Err(Fault::params("`params` must be an object: parameters have names here"));
    }
    if values(text) > MOST_VALUES {
        return Err(Fault::params(format!(
            "`params` has more than {MOST_VALUES} values; send large data as a text or a file"
        )));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = error.path().to_string();
        Fault::params(format!("`params.{place}` cannot be read: {}", error.into_inner()))
    })
}

/// How many messages of its history a task is shown with.
pub(super) fn history(length: Option<i64>) -> Result<Option<usize>, Fault> {
    match length {
        None => Ok(None),
        Some(length) => usize::try_from(length)
            .map(Some)
            .map_err(|_| Fault::params(format!("`historyLength` is {length}; it must be 0 or more"))),
    }
}

/// What a message must have in any version.
pub(super) fn check(message: Incoming, role: &str, user: &str) -> Result<Incoming, Fault> {
    if role != user {
        let shown: String = role.chars().take(32).flat_map(char::escape_default).collect();
        return Err(Fault::params(format!("`message.role` is `{shown}`; a client speaks as `{user}`")));
    }
    if message.id.is_empty() || message.id.len() > LONGEST_ID {
        return Err(Fault::params(format!("`message.messageId` must have 1 to {LONGEST_ID} characters")));
    }
    if message.parts.is_empty() {
        return Err(Fault::params("`message.parts` is empty; say something in it"));
    }
    if message.context.as_ref().is_some_and(|context| context.len() > LONGEST_ID) {
        return Err(Fault::params(format!("`message.contextId` has more than {LONGEST_ID} characters")));
    }
    Ok(message)
}

/// As long as an id of a client may be: it is kept with every message.
const LONGEST_ID: usize = 256;

/// The metadata of a request under that of its message.
pub(super) fn merged(request: Option<Value>, message: Option<Value>) -> Value {
    let mut all = match request {
        Some(Value::Object(all)) => all,
        _ => serde_json::Map::new(),
    };
    if let Some(Value::Object(of_message)) = message {
        all.extend(of_message);
    }
    Value::Object(all)
}

/// The id of a client that is not there and one that is empty are the same.
pub(super) fn named(id: Option<String>) -> Option<String> {
    id.filter(|id| !id.is_empty())
}

/// Results of tools, by the method of their own: each as the data part that it stands for.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InjectParams {
    task_id: String,
    call_id: Option<String>,
    function_response: Option<Value>,
    #[serde(default)]
    results: Vec<Value>,
}

impl InjectParams {
    pub(super) fn read(self) -> Result<Send, Fault> {
        let mut results = self.results;
        if let (Some(id), Some(response)) = (self.call_id, self.function_response) {
            results.push(serde_json::json!({ "callId": id, "functionResponse": response }));
        }
        let parts = results.into_iter().map(|mut result| {
            let Value::Object(fields) = &mut result else {
                return Err(Fault::params("each of `results` is an object with `callId` and `functionResponse`"));
            };
            fields.insert("outcome".to_owned(), "inject_result".into());
            Ok(Part::Data(result))
        });
        let message = Incoming {
            id: uuid::Uuid::now_v7().to_string(),
            task: Some(self.task_id),
            context: None,
            parts: parts.collect::<Result<_, _>>()?,
            metadata: Value::Null,
        };
        if message.parts.is_empty() {
            return Err(Fault::params("`callId` and `functionResponse` are missing, and `results` is empty"));
        }
        Ok(Send { message, reply: Reply::AtRest, history: None })
    }
}

/// The most parts of one message.
pub(super) const MOST_PARTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s26_many_small_values_are_refused_and_long_texts_are_not() {
        let read = |json: String| {
            let raw = RawValue::from_string(json).expect("JSON");
            params::<serde::de::IgnoredAny>(Some(&raw)).map(drop).map_err(|fault| fault.to_string())
        };
        let small = format!(r#"{{"metadata":[{}]}}"#, vec![r#"{"a":0}"#; MOST_VALUES / 2 + 1].join(","));
        assert!(read(small).unwrap_err().contains("more than 50000 values"));
        let long = format!(r#"{{"text":"{}"}}"#, r#"\"a\",[{"#.repeat(MOST_VALUES));
        assert_eq!(read(long), Ok(()));
    }
}
