//! Responses and conversations that can be had again. Memory only, and bounded: what was said is in the session's log, which
//! the id of a response names, so that nothing is lost but the words of the request when one leaves.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::Principal;

use super::Responses;
use super::background::Run;
use super::decode::{Conversation, RequestOptions};
use crate::dialect::{Recent, RecentLimits};

#[derive(Clone)]
pub(super) struct Kept {
    pub principal: Principal,
    pub stage: Stage,
    /// What was said up to its end, without the instructions of its request. With bytes of its own: a slice of a request
    /// would keep the whole request in memory, and charged to its key.
    pub said: Arc<Conversation>,
    /// How many of those messages came before the answer.
    pub input: usize,
}

#[derive(Clone)]
pub(super) enum Stage {
    /// The response as JSON.
    Over(Bytes),
    /// It goes on without its client, or did.
    Background(Arc<Run>),
    /// No response but a conversation, as JSON.
    Conversation(Bytes),
}

/// About what an entry takes beside its texts.
const ENTRY: usize = 1_024;

pub(super) struct KeptResponses(Recent<Kept>);

impl KeptResponses {
    pub(super) fn new(limits: RecentLimits) -> Arc<Self> {
        Arc::new(Self(Recent::new(limits)))
    }

    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Kept> {
        self.0.get(id).filter(|kept| kept.principal == *principal)
    }

    pub(super) fn put(&self, id: &str, kept: Kept) {
        let body = match &kept.stage {
            Stage::Over(body) | Stage::Conversation(body) => body.len(),
            Stage::Background(run) => run.weight(),
        };
        let bytes = ENTRY + body + kept.said.weight();
        let owner = kept.principal.clone();
        self.0.put(id, &owner, kept, bytes);
    }

    pub(super) fn remove(&self, id: &str) {
        self.0.remove(id);
    }
}

/// Keeps a response when it is over, and lets its conversation go on from there.
pub(super) struct Keeper {
    app: Arc<Responses>,
    /// Where it is kept, if it is.
    kept: Option<Arc<KeptResponses>>,
    principal: Principal,
    conversation: Option<String>,
    /// What was said before the answer.
    said: Conversation,
}

impl Keeper {
    /// `local` is where responses go that are not stored: those of a connection, as long as it lasts.
    pub(super) fn new(
        app: &Arc<Responses>,
        local: Option<&Arc<KeptResponses>>,
        principal: Principal,
        options: &RequestOptions,
        said: Conversation,
    ) -> Self {
        let kept = if options.echo.store { Some(&app.kept) } else { local };
        let conversation = options.conversation.clone();
        Self { app: Arc::clone(app), kept: kept.cloned(), principal, conversation, said }
    }

    /// It goes on by itself, and can be had from now on.
    pub(super) fn keep_running(&self, id: &str, run: Arc<Run>) {
        if let Some(kept) = &self.kept {
            let (principal, stage) = (self.principal.clone(), Stage::Background(run));
            kept.put(id, Kept { principal, stage, said: Arc::default(), input: 0 });
        }
    }

    /// It is over: what was said goes on with its answer.
    pub(super) fn keep(self, id: &str, answered: Conversation, body: Vec<u8>) {
        let Self { app, kept, principal, conversation, said } = self;
        let input = said.messages.len();
        let said = Arc::new(answered.after(said).detached());
        if let Some(conversation) = &conversation
            && let Some(before) = app.kept.get(conversation, &principal)
        {
            app.kept.put(conversation, Kept { said: Arc::clone(&said), ..before });
        }
        if let Some(kept) = kept {
            // One that went on by itself can still be followed from its first event.
            let stage = match kept.get(id, &principal) {
                Some(Kept { stage: running @ Stage::Background(_), .. }) => running,
                _ => Stage::Over(body.into()),
            };
            kept.put(id, Kept { principal, stage, said, input });
        }
    }
}
