//! The audit of what agents ask and are allowed. Never what was said; requests are noted by the guard.

use std::time::{Duration, Instant};

use gembridge_api::admin::metrics::names;
use gembridge_core::log::{LogEntry, LogObserver, SessionObserver};
use gembridge_core::model::{AgentName, Answer, AnsweredBy, Ask, AskBody, AskId, Event, Principal, SessionId};
use gembridge_core::store::SessionRecord;
use metrics::Histogram;

/// Notes what agents ask, who answers, and how long turns take.
pub struct Audit;

impl LogObserver for Audit {
    fn observe(&self, session: &SessionRecord) -> Box<dyn SessionObserver> {
        Box::new(SessionAudit {
            session: session.id,
            principal: session.principal.clone(),
            agent: session.agent.clone(),
            began: None,
            turn_seconds: None,
            open: Vec::new(),
        })
    }
}

struct SessionAudit {
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

impl SessionAudit {
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

impl SessionObserver for SessionAudit {
    fn appended(&mut self, entries: &[LogEntry]) {
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
