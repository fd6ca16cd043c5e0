//! The end of a task by its client's word.

use gembridge_core::model::Timestamp;

use super::Caller;
use crate::a2a::error::{Fault, Reason};
use crate::a2a::follow::{End, Until};
use crate::a2a::index::Entry;
use crate::a2a::model::{State, Task};

impl Caller {
    pub async fn cancel(&self, task: &str) -> Result<Task, Fault> {
        let found = self.find(task).await?;
        let (whole, mut seen) = self.look(&found).await?;
        if whole.status.state.is_terminal() {
            let message = format!("the task `{}` is over already; nothing is left to cancel", found.name.id);
            return Err(Fault::new(Reason::TaskNotCancelable, message));
        }
        let turns: Vec<_> = seen.fold().live_turns().collect();
        // The newest first, so that none begins when the one before it ends.
        for turn in turns.into_iter().rev() {
            found.handle.cancel_turn(turn).await?;
        }
        let mut follow = self.follow(&found, Until::Now, End::AfterItsTurns).await?;
        let mut task = follow.rest().await?;
        if !task.status.state.is_terminal() {
            // Nothing ran, or the turn ended by itself: the task is closed all the same.
            let at = Timestamp::now();
            follow.fold().close(at);
            task = follow.fold().task();
            self.app.index.put(Entry {
                name: found.name,
                principal: found.handle.owner().principal,
                start: found.start,
                state: State::Canceled,
                at,
                closed: Some(at),
            });
        }
        Ok(task)
    }
}
