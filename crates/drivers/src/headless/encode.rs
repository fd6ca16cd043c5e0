//! What the program is told: the prompt on its standard input, everything else as arguments of its own making. Nothing that
//! a client said ever becomes an argument.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::{Content, Failure, FailureKind};

use crate::profile::{ApprovalMode, Headless, Profile};

/// Whether the session is begun or gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuity {
    Begins,
    GoesOn,
}

/// The arguments of one turn, beside those of the launch.
pub(super) fn args(headless: &Headless, mode: ApprovalMode, session: &str, continuity: Continuity) -> Vec<String> {
    let flag = match continuity {
        Continuity::Begins => &headless.begin_flag,
        Continuity::GoesOn => &headless.resume_flag,
    };
    let of_mode = headless.modes.get(&mode).into_iter().flatten().cloned();
    of_mode.chain([format!("{flag}={session}")]).collect()
}

/// The ids that programs give their sessions, and we: an id becomes an argument, so its shape is checked.
pub(super) fn checked_session(session: &Arc<str>) -> Result<(), Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !session.is_empty() && session.len() <= 64 && !session.starts_with('-') && session.chars().all(fits) {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Unsupported, "the id of the agent's session has characters that no id has"))
}

/// The prompt as text, which is all that standard input takes.
pub(super) fn prompt(agent: &str, blocks: &[Content]) -> Result<Bytes, Failure> {
    let mut text = String::new();
    for block in blocks {
        let said = match block {
            Content::Text(said) => said.to_str().into_owned(),
            Content::Link { uri, name, .. } => format!("[{name}]({uri})"),
            Content::Document { uri, text, .. } => format!("<document uri=\"{uri}\">\n{}\n</document>", text.to_str()),
            Content::Image { .. } | Content::Audio { .. } | Content::Blob { .. } | Content::Other { .. } => {
                let why = format!("agent `{agent}` takes text only with the driver `headless`; use the driver `acp`");
                return Err(Failure::new(FailureKind::Unsupported, why));
            }
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&said);
    }
    Ok(Bytes::from(text))
}

/// The approval mode of a word: ours, the agent's own, or that of Claude Code, which others know too.
pub(super) fn mode(profile: &Profile, word: &str) -> Result<ApprovalMode, Failure> {
    let own = profile.modes.iter().find(|(_, mode)| mode.id == word).map(|(mode, _)| *mode);
    let common = || match word {
        "acceptEdits" => Some(ApprovalMode::AutoEdit),
        "bypassPermissions" => Some(ApprovalMode::Yolo),
        other => other.parse().ok(),
    };
    own.or_else(common).ok_or_else(|| {
        let known = "`default`, `acceptEdits`, `bypassPermissions`, `plan`";
        let why = format!("agent `{}` has no mode `{}`; there are {known}", profile.name, word.escape_debug());
        Failure::new(FailureKind::Unsupported, why)
    })
}
