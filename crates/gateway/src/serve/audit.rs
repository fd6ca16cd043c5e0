//! The audit of what agents ask and are allowed. Never what was said; requests are noted by the guard.

use std::time::{Duration, Instant};

use gembridge_api::admin::metrics::names;
use gembridge_core::BoxFuture;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{AgentName, Answer, AnsweredBy, Ask, AskBody, AskId, Event, Principal, Seq, SessionId};
use gembridge_core::store::{LogWriter, Reopened, SessionRecord, Store, StoreError, TurnStart};
use gembridge_store::DiskStore;
use metrics::Histogram;

/// The sessions on disk, with an eye on what agents ask, who answers, and how long turns take: all of it passes here.
pub struct AuditedStore(pub DiskStore);

impl Store for AuditedStore {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<Box<dyn LogWriter>, StoreError>> {
        Box::pin(async move {
            let inner = self.0.create(record.clone()).await?;
            Ok(AuditedWriter::over(inner, &record))
        })
    }

    fn reopen(&self, id: SessionId, tail: usize) -> BoxFuture<'_, Result<Reopened, StoreError>> {
        Box::pin(async move {
            let mut reopened = self.0.reopen(id, tail).await?;
            reopened.writer = AuditedWriter::over(reopened.writer, &reopened.record);
            Ok(reopened)
        })
    }

    fn read(
        &self,
        id: SessionId,
        after: Seq,
        until: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        self.0.read(id, after, until, limit)
    }

    fn turn_starts(&self, id: SessionId, turns: usize) -> BoxFuture<'_, Result<Vec<TurnStart>, StoreError>> {
        self.0.turn_starts(id, turns)
    }

    fn list(
        &self,
        principal: Option<Principal>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        self.0.list(principal, limit)
    }

    fn record(&self, id: SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        self.0.record(id)
    }

    fn update(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.update(record)
    }

    fn delete(&self, id: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.delete(id)
    }
}

struct AuditedWriter {
    inner: Box<dyn LogWriter>,
    session: SessionId,
    principal: Principal,
    agent: AgentName,
    /// When the turn that runs began.
    began: Option<Instant>,
    /// Where the length of turns is noted, found by the first that ends.
    turn_seconds: Option<Histogram>,
    /// Questions without an answer; as few as the session allows.
    open: Vec<Ask>,
}

impl AuditedWriter {
    fn over(inner: Box<dyn LogWriter>, record: &SessionRecord) -> Box<dyn LogWriter> {
        let (principal, agent) = (record.principal.clone(), record.agent.clone());
        let (session, open) = (record.id, Vec::new());
        Box::new(Self { inner, session, principal, agent, began: None, turn_seconds: None, open })
    }

    fn note_length(&mut self, turn: Duration) {
        let seconds = self.turn_seconds.get_or_insert_with(|| {
            let agent = self.agent.as_str().to_owned();
            metrics::histogram!(names::AGENT_TURN_SECONDS, "agent" => agent)
        });
        seconds.record(turn.as_secs_f64());
    }

    fn note(&self, ask: AskId, asked: Option<&Ask>, answer: &Answer, by: AnsweredBy) {
        tracing::info!(
            target: "gembridge::audit",
            principal = self.principal.name(),
            session = %self.session,
            agent = %self.agent,
            ask = ?ask,
            what = asked.map(what),
            decision = decision(asked, answer),
            by = ?by,
            "permission"
        );
    }
}

impl LogWriter for AuditedWriter {
    fn append(&mut self, entries: &[LogEntry]) -> Result<(), StoreError> {
        self.inner.append(entries)?;
        for entry in entries {
            match &entry.event {
                Event::Asked(ask) => self.open.push(Ask::clone(ask)),
                Event::Answered { ask, answer, by } => {
                    let asked = self.open.iter().position(|open| open.id == *ask).map(|at| self.open.swap_remove(at));
                    self.note(*ask, asked.as_ref(), answer, *by);
                }
                Event::Started => self.began = Some(Instant::now()),
                Event::Ended(_) => {
                    self.open.clear();
                    if let Some(began) = self.began.take() {
                        self.note_length(began.elapsed());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), StoreError>> {
        self.inner.sync()
    }
}

/// The kind alone: a title may hold what somebody said.
fn what(ask: &Ask) -> String {
    match &ask.body {
        AskBody::Permission { tool, .. } => {
            tool.kind.map_or_else(|| "tool".to_owned(), |kind| format!("tool {kind:?}").to_lowercase())
        }
        AskBody::Form { .. } => "form".to_owned(),
        AskBody::Extension { method } => format!("extension {method}"),
    }
}

fn decision(asked: Option<&Ask>, answer: &Answer) -> String {
    let Answer::Option(chosen) = answer else {
        return if matches!(answer, Answer::Cancelled) { "cancelled" } else { "answered" }.to_owned();
    };
    let options = match asked.map(|ask| &ask.body) {
        Some(AskBody::Permission { options, .. }) => options.as_slice(),
        _ => &[],
    };
    let kind = options.iter().find(|option| option.id == *chosen).map(|option| format!("{:?}", option.kind));
    kind.unwrap_or_else(|| "an option".to_owned())
}
