//! A store that keeps nothing, so that what is left in memory is ours.

use gembridge_core::BoxFuture;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Principal, Seq, SessionId};
use gembridge_core::store::{LogWriter, Logs, Records, Reopened, SessionRecord, StoreError, TurnStart};

pub struct Forgetful;

fn forgotten<T: Send + 'static>(id: SessionId) -> BoxFuture<'static, Result<T, StoreError>> {
    Box::pin(std::future::ready(Err(StoreError::Unknown(id))))
}

impl Records for Forgetful {
    fn list(&self, _: Option<Principal>, _: usize) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn record(&self, id: SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        forgotten(id)
    }

    fn update(&self, _: SessionRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Logs for Forgetful {
    fn create(&self, _: SessionRecord) -> BoxFuture<'_, Result<Box<dyn LogWriter>, StoreError>> {
        Box::pin(std::future::ready(Ok(Box::new(Self) as Box<dyn LogWriter>)))
    }

    fn reopen(&self, id: SessionId, _: usize) -> BoxFuture<'_, Result<Reopened, StoreError>> {
        forgotten(id)
    }

    fn read(&self, id: SessionId, _: Seq, _: Seq, _: usize) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        forgotten(id)
    }

    fn turn_starts(&self, id: SessionId, _: usize) -> BoxFuture<'_, Result<Vec<TurnStart>, StoreError>> {
        forgotten(id)
    }

    fn delete(&self, id: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        forgotten(id)
    }
}

impl LogWriter for Forgetful {
    fn append(&mut self, _: &[LogEntry]) -> Result<(), StoreError> {
        Ok(())
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
