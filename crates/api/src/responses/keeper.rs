//! Keeps a response when it is over, and lets its conversation go on from there.

use std::sync::Arc;

use gembridge_core::model::Principal;

use super::Responses;
use super::decode::{Conversation, RequestOptions};
use super::kept::{Kept, KeptResponses, Stage};

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

    /// Keeps a response that has begun and goes on by itself.
    pub(super) fn keep_running(&self, id: &str, stage: Stage) {
        if let Some(kept) = &self.kept {
            kept.put(id, Kept { principal: self.principal.clone(), stage, said: Arc::default(), input: 0 });
        }
    }
}

/// A response that is over.
pub(super) struct Over {
    pub keeper: Keeper,
    pub id: String,
    pub answered: Conversation,
}

impl Over {
    /// What was said goes on with its answer.
    pub(super) fn keep(self, stage: Stage) {
        let Keeper { app, kept, principal, conversation, said } = self.keeper;
        let input = said.messages.len();
        let said = Arc::new(self.answered.after(said));
        if let Some(conversation) = &conversation
            && let Some(before) = app.kept.get(conversation, &principal)
        {
            app.kept.put(conversation, Kept { said: Arc::clone(&said), ..before });
        }
        if let Some(kept) = kept {
            kept.put(&self.id, Kept { principal, stage, said, input });
        }
    }
}
