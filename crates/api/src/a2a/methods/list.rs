//! The tasks of a key, page by page.

use gembridge_core::model::Timestamp;

use super::Caller;
use super::get::shortened;
use crate::a2a::error::Fault;
use crate::a2a::index::{Cursor, Entry};
use crate::a2a::model::TaskId;
use crate::a2a::wire::{List, Page};

const USUAL_PAGE: usize = 50;
const LARGEST_PAGE: usize = 100;
/// What the texts of a page may have together: a page is full before, where its tasks are long.
const PAGE_BYTES: usize = 8 << 20;

impl Caller {
    pub async fn list(&self, list: &List) -> Result<Page, Fault> {
        let size = list.page_size.unwrap_or(USUAL_PAGE);
        self.recall().await?;
        let after = list.page_token.as_deref().map(cursor).transpose()?;
        let wanted = |entry: &Entry| {
            list.context.as_ref().is_none_or(|context| **context == *entry.name.context)
                && list.state.is_none_or(|state| state == entry.state)
                && list.changed_since.is_none_or(|since| entry.at.0 >= since)
        };
        let (entries, total) = self.app.index.list(&self.viewer, wanted, after.as_ref(), size + 1);
        let (mut tasks, mut bytes, mut next) = (Vec::new(), 0, String::new());
        for (at, entry) in entries.iter().take(size).enumerate() {
            match self.get(&entry.name.id.to_string(), Some(list.history.unwrap_or(0))).await {
                Ok(task) => {
                    let task = shortened(task, list.history);
                    bytes += task.weight();
                    tasks.push(task);
                }
                // Its session was deleted meanwhile.
                Err(fault) => tracing::debug!(task = %entry.name.id, %fault, "a listed task cannot be read"),
            }
            let is_last = at + 1 == size || bytes >= PAGE_BYTES;
            if is_last && entries.len() > at + 1 {
                next = token(entry);
                break;
            }
        }
        Ok(Page { size: tasks.len(), tasks, next, total })
    }
}

/// The page size that a client asks for.
pub fn page_size(size: Option<i64>) -> Result<Option<usize>, Fault> {
    let Some(size) = size else { return Ok(None) };
    match usize::try_from(size) {
        Ok(size) if (1..=LARGEST_PAGE).contains(&size) => Ok(Some(size)),
        _ => Err(Fault::params(format!("`pageSize` is {size}; it must be from 1 to {LARGEST_PAGE}"))),
    }
}

fn token(entry: &Entry) -> String {
    format!("{}.{}", entry.at.0, entry.name.id)
}

fn cursor(token: &str) -> Result<Cursor, Fault> {
    let foreign = || Fault::params("`pageToken` is none that was given here");
    let (at, id) = token.split_once('.').ok_or_else(foreign)?;
    let id: TaskId = id.parse().map_err(|_| foreign())?;
    Ok((Timestamp(at.parse().map_err(|_| foreign())?), id))
}
