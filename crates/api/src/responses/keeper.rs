//! Keeps a response when it is over.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::Principal;

use super::Responses;
use super::decode::{Conversation, RequestOptions};
use super::kept::{Kept, KeptResponses, Stage};

pub(super) struct Keeper {
    kept: Arc<KeptResponses>,
    principal: Principal,
    /// Whether others than the connection that it came over may have it.
    is_kept: bool,
    input: Bytes,
    said: Conversation,
}

impl Keeper {
    /// `kept` is where those go that are not stored: of a connection, or nowhere.
    pub(super) fn new(
        app: &Arc<Responses>,
        kept: &Arc<KeptResponses>,
        principal: Principal,
        options: &RequestOptions,
        input: Bytes,
        said: Conversation,
    ) -> Self {
        let kept = if options.echo.store { &app.kept } else { kept };
        let is_kept = options.echo.store || !Arc::ptr_eq(kept, &app.kept);
        Self { kept: Arc::clone(kept), principal, is_kept, input, said }
    }

    /// What was said goes on with this answer.
    pub(super) fn keep(self, id: &str, body: Vec<u8>, answered: Conversation) {
        if !self.is_kept {
            return;
        }
        let said = Arc::new(answered.after(self.said));
        let kept = Kept { principal: self.principal, stage: Stage::Over(body.into()), input: self.input, said };
        self.kept.put(id, kept);
    }
}
