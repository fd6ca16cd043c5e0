//! What the tests share: a turn on a bench, a store with fault switches, readers of a log.

pub mod follow;
pub mod ledger;
pub mod turn_harness;
pub mod store;
pub mod tools;
pub mod test_sessions;

use std::sync::Arc;

use gembridge_core::driver::Signal;
use gembridge_core::model::{
    Answer, Ask, AskBody, AskId, AskOption, Event, FailureKind, OptionKind, Outcome, Stop, Subject, ToolCall,
    ToolCallId, ToolKind, Usage,
};
pub use gembridge_core::test_support::{crashed as failure, done, done_cancelled, text, thought, update};

/// A turn that is answered.
pub async fn says(
    session: &gembridge_core::session::SessionHandle,
    agent: &mut gembridge_core::test_support::FakeAgent,
    reader: &mut follow::Reader,
    asked: &str,
    answer: &str,
) {
    let turn = test_sessions::prompt(session, asked).await;
    agent.expect_prompt(asked).await;
    agent.does([thought("hm"), text(answer), done()]).await;
    assert_eq!(reader.until_ended(turn).await, finished());
}

pub fn finished() -> Outcome {
    Outcome::Finished(Stop::EndTurn)
}

/// What kind of failure interrupted the turn, if one did.
pub fn interrupted_by(outcome: &Outcome) -> Option<FailureKind> {
    match outcome {
        Outcome::Interrupted(failure) => Some(failure.kind),
        Outcome::Finished(_) | Outcome::Cancelled => None,
    }
}

/// A permission to run a tool of `kind`. Each option is named after its kind: `AllowOnce`, `RejectAlways`, ….
pub fn permission(id: u64, kind: ToolKind, options: &[OptionKind]) -> Ask {
    let mut tool = ToolCall::update(ToolCallId::new(format!("tool-{id}")));
    tool.kind = Some(kind);
    let options = options.iter().map(|kind| {
        let name: Arc<str> = format!("{kind:?}").into();
        AskOption { id: Arc::clone(&name), name, kind: *kind }
    });
    Ask {
        id: AskId(id),
        body: AskBody::Permission { tool: Box::new(tool), options: options.collect(), subject: Subject::AgentTool },
    }
}

/// A permission to run a command, with the usual two options.
pub fn usual_ask(id: u64) -> Ask {
    permission(id, ToolKind::Execute, &[OptionKind::AllowOnce, OptionKind::RejectOnce])
}

pub fn asked(ask: Ask) -> Signal {
    update(Event::Asked(Box::new(ask)))
}

pub fn option(id: &str) -> Answer {
    Answer::Option(id.into())
}

pub fn usage(input: Option<u64>, output: Option<u64>) -> Usage {
    Usage { input, output, ..Usage::default() }
}
