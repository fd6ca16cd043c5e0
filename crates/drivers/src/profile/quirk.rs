//! What an agent does differently from the protocol's text. Code matches on these names; which agent has which is data.

use serde::Deserialize;

/// One way in which an agent departs from what a reader of ACP would expect, and what the driver does about it.
///
/// In `agents/*.toml` a quirk is written in kebab case: `quirks = ["permission-without-tool-call"]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quirk {
    /// A tool that asks for permission is never announced by `tool_call`: its record begins with whichever message names it first.
    PermissionWithoutToolCall,
    /// A refused tool never reports back: its record is closed as refused when the answer goes out.
    RefusedToolsStaySilent,
    /// A change of mode arrives as assistant text `[MODE_UPDATE] id`: it becomes a mode event and is not shown as text.
    ModeUpdateAsText,
    /// A stream that broke is silently asked again and its text comes twice: an exact repeat of all text since the last tool call is dropped.
    RetriesRepeatText,
    /// The agent has no local commands, so that a prompt which begins with `/name` or `$name` goes to it unchanged. For every
    /// other agent an invisible character is put before the sign, unless an operator wrote the prompt by hand.
    LeadingSlashIsText,
    /// A file that is to be created is read first, and an error to that read fails the tool: a missing file reads as empty.
    NewFilesNeedEmptyRead,
    /// Sessions that are opened at the same time wait for a lock of the agent with doubling pauses, until some fail: they are
    /// opened one after another.
    SessionsOpenOneByOne,
    /// There is no way to close a session: its memory returns when the process is recycled, so sessions count for life.
    SessionsCannotBeClosed,
    /// `session/load` within the wall-clock minute of the session's creation destroys it: the load waits for the next minute.
    LoadDestroysWithinMinute,
    /// The replay of `session/load` goes on after its response: it is collected until it has been quiet for a while and not shown.
    LoadReplayStraddlesResponse,
    /// A session is found again only from the folder it worked in: one that had a folder of its own begins anew.
    SessionsAreKeptByFolder,
    /// A failed call of the model's API comes as a JSON-RPC error whose code is the HTTP status (429, 500, …).
    HttpStatusAsErrorCode,
    /// A thought is written `**subject**` and a line break before its text, `****` when it has no subject: an empty one is cut off.
    ThoughtSubjectMarkup,
    /// The name of a tool is not sent, but stands before the first `__` of its call id.
    ToolNameInCallId,
    /// A turn that is cancelled or fails leaves the agent's memory, its prompt too: as a model the agent is replaced by one
    /// that is told what was said.
    CutTurnsAreForgotten,
    /// The tokens that it reports are those of its last model call, not of all calls of the turn: they are counted as such.
    UsageOfLastCall,
}

impl Quirk {
    /// Every quirk, in the order of the enum: for the tests that hold the documentation and the code against it.
    pub const ALL: &[Self] = &[
        Self::PermissionWithoutToolCall,
        Self::RefusedToolsStaySilent,
        Self::ModeUpdateAsText,
        Self::RetriesRepeatText,
        Self::LeadingSlashIsText,
        Self::NewFilesNeedEmptyRead,
        Self::SessionsOpenOneByOne,
        Self::SessionsCannotBeClosed,
        Self::LoadDestroysWithinMinute,
        Self::LoadReplayStraddlesResponse,
        Self::SessionsAreKeptByFolder,
        Self::HttpStatusAsErrorCode,
        Self::ThoughtSubjectMarkup,
        Self::ToolNameInCallId,
        Self::CutTurnsAreForgotten,
        Self::UsageOfLastCall,
    ];
}
