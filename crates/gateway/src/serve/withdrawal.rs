//! What an owner of sessions may do ends with its key: the live sessions of whoever lost the key, or the operator's rank,
//! are closed. Their logs stay, and whoever may still see one opens it anew, as what its owner is by then.

use std::sync::Arc;

use gembridge_api::identity::Rank;
use gembridge_api::keys::KeyRing as _;
use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentSession, Change, Changed, CloseMode, Opened};
use gembridge_core::model::{Answer, AskId, Failure, FailureKind, Principal, Prompt};
use gembridge_core::session::Sessions;
use tokio::task::JoinSet;

use crate::keys::{FileKeys, Ranks};

pub struct Withdrawal {
    sessions: Arc<Sessions>,
    keys: Arc<FileKeys>,
}

impl Withdrawal {
    pub fn new(sessions: &Arc<Sessions>, keys: &Arc<FileKeys>) -> Self {
        Self { sessions: Arc::clone(sessions), keys: Arc::clone(keys) }
    }

    /// Never resolves.
    pub async fn keep(&self) {
        let mut changes = self.keys.changes();
        let mut before = self.keys.ranks();
        while changes.changed().await.is_ok() {
            let now = self.keys.ranks();
            self.close(|owner| has_lost(owner, &before, &now)).await;
            before = now;
        }
        std::future::pending::<()>().await;
    }

    async fn close(&self, is_lost: impl Fn(&Principal) -> bool) {
        let live = self.sessions.live().into_iter().filter(|session| is_lost(&session.owner().principal));
        let mut closing: JoinSet<_> =
            live.map(|session| async move { (session.id(), session.close().await) }).collect();
        while let Some(closed) = closing.join_next().await {
            match closed {
                Ok((session, Ok(()))) => tracing::info!(%session, "closed: its owner lost the key or the rank"),
                Ok((session, Err(error))) => tracing::debug!(%session, %error, "closed already"),
                Err(error) => tracing::error!(%error, "a session could not be closed"),
            }
        }
    }
}

fn has_lost(owner: &Principal, before: &Ranks, now: &Ranks) -> bool {
    match (before.get(owner), now.get(owner)) {
        (Some(_), None) | (Some(Rank::Admin), Some(Rank::User)) => true,
        (Some(_), Some(_)) | (None, _) => false,
    }
}

/// A conversation in a process with the operator's home and folders, for as long as its owner is the operator. Between
/// the loss of the rank and the end of the session nothing more is asked of the agent.
pub struct OperatorSession {
    agent: Box<dyn AgentSession>,
    owner: Principal,
    keys: Arc<FileKeys>,
}

impl OperatorSession {
    pub fn over(opened: Opened, owner: Principal, keys: &Arc<FileKeys>) -> Opened {
        let agent = Box::new(Self { agent: opened.agent, owner, keys: Arc::clone(keys) });
        Opened { agent, ..opened }
    }

    fn check(&self) -> Result<(), Failure> {
        if self.keys.is_operator(&self.owner) {
            return Ok(());
        }
        let why = "the owner of this session is not an operator any more; begin another session";
        Err(Failure::new(FailureKind::Forbidden, why))
    }
}

impl AgentSession for OperatorSession {
    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        self.check()?;
        self.agent.prompt(prompt)
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.agent.cancel()
    }

    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure> {
        let answer = if self.check().is_ok() { answer } else { Answer::Cancelled };
        self.agent.answer(ask, answer)
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        match self.check() {
            Ok(()) => self.agent.change(change),
            Err(failure) => Box::pin(std::future::ready(Err(failure))),
        }
    }

    fn process(&self) -> Option<u32> {
        self.agent.process()
    }

    fn close(self: Box<Self>, parting: CloseMode) -> BoxFuture<'static, ()> {
        self.agent.close(parting)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn f11_who_loses_the_key_or_the_operators_rank_loses_its_live_sessions() {
        let ranks = |rank: Option<Rank>| -> Ranks {
            Arc::new(rank.into_iter().map(|rank| (Principal::new("ann"), rank)).collect::<HashMap<_, _>>())
        };
        let (admin, user) = (Some(Rank::Admin), Some(Rank::User));
        for (before, now, lost) in [
            (admin, user, true),
            (admin, None, true),
            (user, None, true),
            (admin, admin, false),
            (user, user, false),
            (user, admin, false),
            (None, None, false),
            (None, user, false),
        ] {
            let judged = has_lost(&Principal::new("ann"), &ranks(before), &ranks(now));
            assert_eq!(judged, lost, "{before:?} {now:?}");
        }
    }
}
