//! Follows each turn of a task to its end, with or without a connected client.

use std::sync::Arc;

use gembridge_core::model::ClientId;

use super::A2a;
use super::follow::{Follow, Step};

/// Follows the task until its turns are over. Until then somebody is there who can answer the agent's questions: the
/// client may come back at any time.
pub fn run(app: &Arc<A2a>, mut follow: Follow) {
    let own = Arc::clone(app);
    app.tasks.spawn(async move {
        loop {
            match follow.next().await {
                Ok(Step::Over) => return,
                Ok(Step::Task(_) | Step::Updates(_)) => {}
                Err(error) => {
                    tracing::warn!(task = %follow.fold().name().id, %error, "a task cannot be followed any more");
                    return;
                }
            }
            approve(&mut follow).await;
            let fold = follow.fold();
            own.index.note(fold.name().id, fold.state(), fold.at());
        }
    });
}

/// Answers the questions about tools that the operator lets run.
async fn approve(follow: &mut Follow) {
    let asks: Vec<_> = follow.fold().pending().approved().cloned().collect();
    for ask in asks {
        let Some(answer) = ask.allow_once() else { continue };
        if let Err(error) = follow.handle().answer(ask.id, answer, ClientId::fresh()).await {
            tracing::debug!(%error, "a question was answered by somebody else");
        }
    }
}
