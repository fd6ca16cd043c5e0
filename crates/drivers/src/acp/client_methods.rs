//! What we do for an agent that asks: files inside its workspace, and terminals. Nothing else.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::{
    Answer, AskBody, AskOption, Event, Location, OptionKind, Subject, Text, ToolCall, ToolCallId, ToolContent,
    ToolKind, ToolStatus,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{encode, wire};
use crate::setup::ClientAccess;
use crate::workspace::{Jail, JailError, TerminalCommand, TerminalExit, TerminalId, Terminals};

/// The methods that one session may call on us.
pub(super) struct ClientMethods {
    /// The workspace; `None` in chat, where there is nothing to touch.
    pub work: Option<Work>,
    pub access: ClientAccess,
    /// A file that is not there reads as empty, for agents that cannot create one otherwise.
    pub missing_reads_empty: bool,
}

pub(super) struct Work {
    pub jail: Arc<Jail>,
    pub terminals: Arc<Terminals>,
}

/// Work for an agent that must not hold up the reader.
pub(super) enum Job {
    Read {
        methods: Arc<ClientMethods>,
        id: Box<RawValue>,
        request: wire::ReadTextFile,
    },
    Write {
        methods: Arc<ClientMethods>,
        id: Box<RawValue>,
        path: String,
        content: String,
    },
    /// A write that somebody must agree to first: never performed, always asked.
    Consent {
        id: Box<RawValue>,
        path: String,
        content: String,
    },
    CreateTerminal {
        methods: Arc<ClientMethods>,
        id: Box<RawValue>,
        request: wire::CreateTerminal,
    },
    Terminal {
        methods: Arc<ClientMethods>,
        id: Box<RawValue>,
        call: TerminalCall,
        terminal: TerminalId,
    },
}

/// How long a job may take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// As long as a disk or a start takes.
    Short,
    /// As long as somebody's command runs.
    UntilExit,
}

#[derive(Clone, Copy)]
pub(super) enum TerminalCall {
    Output,
    WaitForExit,
    Kill,
    Release,
}

impl ClientMethods {
    /// The session is over: what it started ends, whoever still waits for it.
    pub(super) fn drop_everything(&self) {
        if let Some(work) = &self.work {
            work.terminals.end_all();
        }
    }

    /// The job that a request asks for, or the answer that refuses it.
    pub(super) fn job(self: &Arc<Self>, id: &RawValue, method: &str, params: Option<&RawValue>) -> Result<Job, Bytes> {
        let unknown = || encode::error(id, encode::METHOD_NOT_FOUND, &format!("no method `{method}` here"));
        let Some(work) = &self.work else { return Err(unknown()) };
        let is_served = match method {
            "fs/read_text_file" => self.access.reads,
            "fs/write_text_file" => self.access.writes,
            _ => self.access.terminals,
        };
        if !is_served {
            return Err(unknown());
        }
        let methods = Arc::clone(self);
        let (call, owned) = (|call| Self::terminal(self, id, call, params), || id.to_owned());
        match method {
            "fs/read_text_file" => Ok(Job::Read { methods, id: owned(), request: read(id, params)? }),
            "fs/write_text_file" => {
                let wire::WriteTextFile { path, content } = read(id, params)?;
                if work.jail.needs_consent(&path) {
                    return Ok(Job::Consent { id: owned(), path, content });
                }
                Ok(Job::Write { methods, id: owned(), path, content })
            }
            "terminal/create" => Ok(Job::CreateTerminal { methods, id: owned(), request: read(id, params)? }),
            "terminal/output" => call(TerminalCall::Output),
            "terminal/wait_for_exit" => call(TerminalCall::WaitForExit),
            "terminal/kill" => call(TerminalCall::Kill),
            "terminal/release" => call(TerminalCall::Release),
            _ => Err(unknown()),
        }
    }

    fn terminal(self: &Arc<Self>, id: &RawValue, call: TerminalCall, params: Option<&RawValue>) -> Result<Job, Bytes> {
        let wire::TerminalCall { terminal_id } = read(id, params)?;
        Ok(Job::Terminal { methods: Arc::clone(self), id: id.to_owned(), call, terminal: TerminalId(terminal_id) })
    }
}

impl Job {
    pub(super) fn patience(&self) -> Patience {
        match self {
            Self::Terminal { call: TerminalCall::WaitForExit, .. } => Patience::UntilExit,
            _ => Patience::Short,
        }
    }

    /// The answer to a job that is not done.
    pub(super) fn refuse(&self, why: &str) -> Bytes {
        let (Self::Read { id, .. }
        | Self::Write { id, .. }
        | Self::Consent { id, .. }
        | Self::CreateTerminal { id, .. }
        | Self::Terminal { id, .. }) = self;
        encode::error(id, encode::INTERNAL_ERROR, why)
    }

    /// Does it, and gives the line that answers the agent.
    pub(super) async fn perform(self) -> Bytes {
        match self {
            Self::Read { methods, id, request } => read_file(&methods, &id, request).await,
            Self::Write { methods, id, path, content } => write_file(&methods, &id, path, content).await.0,
            Self::Consent { ref path, .. } => {
                self.refuse(&format!("writing `{path}` needs consent, and nobody was there to be asked"))
            }
            Self::CreateTerminal { methods, id, request } => create_terminal(&methods, &id, request).await,
            Self::Terminal { methods, id, call, terminal } => use_terminal(&methods, &id, call, &terminal).await,
        }
    }
}

/// A write that was asked about, and agreed to.
pub(super) struct AgreedWrite {
    pub methods: Arc<ClientMethods>,
    pub id: Box<RawValue>,
    pub path: String,
    pub content: String,
}

impl AgreedWrite {
    /// Does it, and gives the line that answers the agent and the end of the record that the question began.
    pub(super) async fn perform(self) -> (Bytes, Event) {
        let mut record = ToolCall::update(consent_id(&self.path));
        let (line, status) = write_file(&self.methods, &self.id, self.path, self.content).await;
        record.status = Some(status);
        (line, Event::ToolCall(Box::new(record)))
    }
}

async fn read_file(methods: &ClientMethods, id: &RawValue, request: wire::ReadTextFile) -> Bytes {
    let Some(work) = &methods.work else { return nothing_to_touch(id) };
    let jail = Arc::clone(&work.jail);
    let read = on_disk(move || jail.read_text(&request.path, request.line, request.limit)).await;
    match read {
        Ok(content) => encode::result(id, &json!({ "content": content })),
        Err(JailError::Missing(_)) if methods.missing_reads_empty => encode::result(id, &json!({ "content": "" })),
        Err(error) => refused(id, &error),
    }
}

/// The answer to the agent, and what became of the file.
async fn write_file(methods: &ClientMethods, id: &RawValue, path: String, content: String) -> (Bytes, ToolStatus) {
    let Some(work) = &methods.work else { return (nothing_to_touch(id), ToolStatus::Failed) };
    let jail = Arc::clone(&work.jail);
    match on_disk(move || jail.write_text(&path, &content)).await {
        Ok(()) => (encode::result(id, &json!({})), ToolStatus::Completed),
        Err(error) => (refused(id, &error), ToolStatus::Failed),
    }
}

async fn create_terminal(methods: &ClientMethods, id: &RawValue, request: wire::CreateTerminal) -> Bytes {
    let Some(work) = &methods.work else { return nothing_to_touch(id) };
    let command = TerminalCommand {
        command: request.command,
        args: request.args,
        env: request.env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
        cwd: request.cwd,
        output_byte_limit: request.output_byte_limit,
    };
    match work.terminals.create(command).await {
        Ok(TerminalId(terminal)) => encode::result(id, &json!({ "terminalId": terminal })),
        Err(error) => encode::error(id, encode::INTERNAL_ERROR, &error.to_string()),
    }
}

async fn use_terminal(methods: &ClientMethods, id: &RawValue, call: TerminalCall, terminal: &TerminalId) -> Bytes {
    let Some(work) = &methods.work else { return nothing_to_touch(id) };
    let done = match call {
        TerminalCall::Output => work.terminals.output(terminal).map(|output| {
            json!({ "output": output.output, "truncated": output.truncated, "exitStatus": output.exit.as_ref().map(exit) })
        }),
        TerminalCall::WaitForExit => work.terminals.wait_for_exit(terminal).await.map(|ended| exit(&ended)),
        TerminalCall::Kill => work.terminals.kill(terminal).map(|()| json!({})),
        TerminalCall::Release => work.terminals.release(terminal).map(|()| json!({})),
    };
    match done {
        Ok(result) => encode::result(id, &result),
        Err(error) => encode::error(id, encode::INVALID_PARAMS, &error.to_string()),
    }
}

fn exit(exit: &TerminalExit) -> serde_json::Value {
    json!({ "exitCode": exit.code, "signal": exit.signal })
}

/// File work blocks: it has threads of its own.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, JailError> + Send + 'static,
) -> Result<T, JailError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => Err(JailError::Io { path: "file work".into(), source: std::io::Error::other(panic) }),
    }
}

fn refused(id: &RawValue, error: &JailError) -> Bytes {
    let code = match error {
        JailError::Missing(_) => RESOURCE_NOT_FOUND,
        JailError::Io { .. } => encode::INTERNAL_ERROR,
        _ => encode::INVALID_REQUEST,
    };
    encode::error(id, code, &error.to_string())
}

const RESOURCE_NOT_FOUND: i64 = -32002;

fn nothing_to_touch(id: &RawValue) -> Bytes {
    encode::error(id, encode::METHOD_NOT_FOUND, "this session has no workspace")
}

fn read<'a, T: Deserialize<'a>>(id: &RawValue, params: Option<&'a RawValue>) -> Result<T, Bytes> {
    let params = params.map_or("null", RawValue::get);
    serde_json::from_str(params).map_err(|unread| encode::error(id, encode::INVALID_PARAMS, &unread.to_string()))
}

const ALLOW: &str = "allow";

/// The record of a question of ours, which no tool of the agent shares.
pub(super) fn consent_id(path: &str) -> ToolCallId {
    ToolCallId::new(format!("write {path}"))
}

/// The question that stands before a write to a file which other programs obey.
pub(super) fn consent(path: &str, content: &str) -> AskBody {
    let mut tool = ToolCall::update(consent_id(path));
    tool.title = Some(format!("write `{path}`, which other programs obey").into());
    // Who may edit unasked may not therefore change what other programs run.
    tool.kind = Some(ToolKind::Execute);
    tool.status = Some(ToolStatus::Pending);
    tool.content = Some(vec![ToolContent::Diff { path: path.into(), old: None, new: Text::plain(content) }]);
    tool.locations = Some(vec![Location { path: path.into(), line: None }]);
    let option = |id: &str, name: &str, kind| AskOption { id: id.into(), name: name.into(), kind };
    AskBody::Permission {
        tool: Box::new(tool),
        options: vec![
            option(ALLOW, "Allow", OptionKind::AllowOnce),
            option("reject", "Reject", OptionKind::RejectOnce),
        ],
        subject: Subject::AgentTool,
    }
}

pub(super) fn consented(answer: &Answer) -> bool {
    matches!(answer, Answer::Option(id) if **id == *ALLOW)
}
