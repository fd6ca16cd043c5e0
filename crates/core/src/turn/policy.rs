//! What is decided about a permission before any person is asked.

use std::path::{Path, PathBuf};

use crate::model::{Answer, Ask, AskBody, Subject, ToolKind};

/// Rules of a session, set by the operator. Nothing a client sends can widen them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionPolicy {
    /// Kinds that are allowed once without asking. Kinds that can destroy are never taken from here.
    auto: Vec<ToolKind>,
    otherwise: Otherwise,
    /// What holds instead for a session that works in a folder of its own.
    in_folders: Option<Box<InFolders>>,
}

/// The rules of sessions that work in folders of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InFolders {
    named: Vec<(PathBuf, PermissionPolicy)>,
    others: PermissionPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    Ask,
    /// Ask if somebody is there who can answer, and refuse at once otherwise.
    AskIfAttended,
    Reject,
}

/// Whether somebody is there who can answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    Nobody,
    Somebody,
}

impl PermissionPolicy {
    /// Every question goes to whoever is there.
    pub fn ask() -> Self {
        Self::of(Otherwise::Ask)
    }

    /// Every question goes to whoever can answer it; with nobody there it is refused at once.
    pub fn ask_if_attended() -> Self {
        Self::of(Otherwise::AskIfAttended)
    }

    /// Every permission is refused.
    pub fn reject() -> Self {
        Self::of(Otherwise::Reject)
    }

    fn of(otherwise: Otherwise) -> Self {
        Self { auto: Vec::new(), otherwise, in_folders: None }
    }

    /// The same, with another for sessions that work in a folder of their own: that of the folder, or that of all others.
    #[must_use]
    pub fn but_in_folders(mut self, named: impl IntoIterator<Item = (PathBuf, Self)>, others: Self) -> Self {
        self.in_folders = Some(Box::new(InFolders { named: named.into_iter().collect(), others }));
        self
    }

    /// What holds for a session that works there.
    #[must_use]
    pub fn of_session(self, workspace: Option<&Path>) -> Self {
        match (workspace, self.in_folders) {
            (Some(workspace), Some(in_folders)) => {
                let InFolders { named, others } = *in_folders;
                named.into_iter().find(|(folder, _)| folder == workspace).map_or(others, |(_, policy)| policy)
            }
            (_, in_folders) => Self { in_folders, ..self },
        }
    }

    /// Allows these kinds once each time. Running, deleting and moving are left out, whatever the caller lists:
    /// what a command does cannot be told from its kind.
    #[must_use]
    pub fn with_auto(mut self, kinds: impl IntoIterator<Item = ToolKind>) -> Self {
        let harmless = |kind: &ToolKind| !matches!(kind, ToolKind::Execute | ToolKind::Delete | ToolKind::Move);
        self.auto = kinds.into_iter().filter(harmless).collect();
        self
    }

    /// The answer that needs no person, if there is one.
    pub(super) fn decide(&self, ask: &Ask, attendance: Attendance) -> Option<Answer> {
        let refuses = match self.otherwise {
            Otherwise::Ask => false,
            Otherwise::AskIfAttended => attendance == Attendance::Nobody,
            Otherwise::Reject => true,
        };
        let AskBody::Permission { tool, options, subject } = &ask.body else {
            return refuses.then_some(Answer::Cancelled);
        };
        if options.is_empty() {
            return Some(Answer::Cancelled);
        }
        let is_allowed = match subject {
            Subject::ClientTool => true,
            Subject::AgentTool => tool.kind.is_some_and(|kind| self.auto.contains(&kind)),
        };
        if is_allowed && let Some(answer) = ask.allow_once() {
            return Some(answer);
        }
        refuses.then(|| ask.reject())
    }
}
