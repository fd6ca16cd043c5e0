//! A task as it stands, and a task with what follows.

use super::{Caller, Found};
use crate::a2a::error::{Fault, Reason};
use crate::a2a::follow::{End, Follow, Step, Until};
use crate::a2a::model::Task;

impl Caller {
    pub async fn get(&self, task: &str, history: Option<usize>) -> Result<Task, Fault> {
        let found = self.find(task).await?;
        let (task, _) = self.look(&found).await?;
        Ok(shortened(task, history))
    }

    /// The task, and what happens from there on. One that is over has nothing more to tell.
    pub async fn subscribe(&self, task: &str, end: End) -> Result<Follow, Fault> {
        let found = self.find(task).await?;
        let (whole, _) = self.look(&found).await?;
        if whole.status.state.is_terminal() {
            let message = format!("the task `{}` is over; read it with a request for the task", found.name.id);
            return Err(Fault::new(Reason::UnsupportedOperation, message));
        }
        self.follow(&found, Until::Now, end).await
    }

    /// The task now, and its reader, which stands where the task was told.
    pub async fn look(&self, found: &Found) -> Result<(Task, Follow), Fault> {
        let mut follow = self.follow(found, Until::Now, End::AtRest).await?;
        loop {
            match follow.next().await? {
                Step::Task(task) if follow.fold().is_known() => return Ok((*task, follow)),
                Step::Task(_) | Step::Over => return Err(Fault::task(&found.name.id.to_string())),
                Step::Updates(_) => {}
            }
        }
    }
}

/// The task with as much of its history as the client wants.
pub fn shortened(mut task: Task, history: Option<usize>) -> Task {
    if let Some(most) = history {
        let drop = task.history.len().saturating_sub(most);
        task.history.drain(..drop);
    }
    task
}
