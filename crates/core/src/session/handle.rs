//! What the rest of the program holds of a session: an address to send commands to.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::overview::Watchers;
use super::published::PublishedState;
use crate::BoxFuture;
use crate::driver::{Change, Changed};
use crate::error::Error;
use crate::exchange::Owner;
use crate::log::{Attachment, Backpressure, From};
use crate::model::{
    Answer, Ask, AskId, CallId, ClientCall, ClientId, Prompt, Seq, SessionFacts, SessionId, ToolReturn, TurnId,
};
use crate::store::{SessionRecord, StoreError};
use crate::tool_host::Offer;
use crate::turn::Attendance;

/// Everything that can be asked of a session. The actor takes them one at a time, in order.
pub enum Command {
    /// A caller that is gone before it learns of its turn has abandoned it.
    Prompt {
        submission: Box<Submission>,
        reply: oneshot::Sender<Result<Accepted, Error>>,
    },
    /// Attaches and prompts in one step: the attachment begins with the prompt.
    Converse {
        submission: Box<Submission>,
        backpressure: Backpressure,
        reply: oneshot::Sender<Result<(Accepted, Attachment), Error>>,
    },
    /// Gives the results of calls that wait.
    SubmitResults {
        given: SubmitResults,
        reply: oneshot::Sender<Result<Resumed, Error>>,
    },
    /// Offers other tools while a turn waits for results. Answered when the agent has read their list.
    Offer {
        turn: TurnId,
        offer: Box<Offer>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Ends the running turn, or the one named, also while it still waits in the queue.
    Cancel {
        turn: Option<TurnId>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// The caller does not want this turn any more: it ends, unless somebody else follows the session.
    Abandon {
        turn: TurnId,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    Answer {
        ask: AskId,
        answer: Answer,
        by: ClientId,
        reply: oneshot::Sender<Result<Durable, Error>>,
    },
    Attach {
        from: From,
        backpressure: Backpressure,
        reply: oneshot::Sender<Result<Attachment, Error>>,
    },
    /// Attaches and describes in one step: what is described is what the attachment ends at.
    Join {
        from: From,
        backpressure: Backpressure,
        reply: oneshot::Sender<Result<Joined, Error>>,
    },
    Change {
        change: Box<Change>,
        reply: oneshot::Sender<Result<Changed, Error>>,
    },
    /// Makes sure that an agent is there, and says what it reports. One that is opened for it can be offered this.
    Wake {
        offer: Option<Box<Offer>>,
        reply: oneshot::Sender<Result<SessionFacts, Error>>,
    },
    Describe {
        reply: oneshot::Sender<Result<Description, Error>>,
    },
    /// The record alone, which costs next to nothing.
    Record {
        reply: oneshot::Sender<Result<SessionRecord, Error>>,
    },
    Rename {
        title: Arc<str>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Notes that the answer that begins after this entry was deleted.
    DeleteAnswer {
        after: Seq,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Moves a session in which nothing was said yet into a folder. Answered when its agent of before has let go of it.
    WorkIn {
        folder: PathBuf,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Closes the session at its agent if nothing runs or waits in it, whoever follows it. Answered when the agent has
    /// let go of it.
    ReleaseAgent {
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Ends the session's task if nothing runs or waits in it and nobody follows it. Decided by the owner: whoever
    /// looked a moment ago may have been overtaken by a prompt.
    Retire {
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Ends the running turn and the session's task. The log stays.
    Close {
        reply: oneshot::Sender<Result<(), Error>>,
    },
}

const _: () = assert!(size_of::<Command>() <= 64, "box what is larger: a mailbox has room for dozens");

/// A prompt, and what comes with it.
#[derive(Clone, Debug)]
pub struct Submission {
    pub prompt: Prompt,
    pub by: ClientId,
    pub precondition: Precondition,
    /// What the agent is offered from this turn on. `None` leaves what it is offered as it is.
    pub offer: Option<Offer>,
}

/// Results of calls that wait, all of one turn.
#[derive(Clone, Debug)]
pub struct SubmitResults {
    pub results: Vec<(CallId, ToolReturn)>,
    pub unanswered: Unanswered,
    pub by: ClientId,
}

/// What becomes of the calls that wait and have no result here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// They go on waiting.
    Wait,
    /// They fail: the client went on without them.
    Close,
}

/// A turn that goes on with the results it waited for.
#[derive(Clone, Debug)]
pub struct Resumed {
    pub turn: TurnId,
    /// Whoever gave the results attaches after this entry, and reads on to the next `Parked` or `Ended`.
    pub after: Seq,
    pub how: Resumption,
    /// The calls that still wait, oldest first. The entries of some may lie before `after`.
    pub waiting: Vec<ClientCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// The agent has the results now.
    Resolved,
    /// It has had these very results before. Its turn runs, or ended well.
    Rejoined,
}

/// What must be true of a session for a prompt to make sense in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Whether the agent knows the turns before or not: it is told of those that it does not know.
    Any,
    /// None: the prompt itself tells of the turns before.
    Anew,
    /// This was the last turn, and the agent that is asked remembers it. Refused as [`Error::MovedOn`] otherwise; a
    /// turn whose agent turns out to have lost its memory ends before it starts.
    RightAfter(TurnId),
}

/// Resolves when what it stands for survives a power cut.
pub type Durable = BoxFuture<'static, Result<(), StoreError>>;

/// A prompt that is in the log and will be answered.
pub struct Accepted {
    pub turn: TurnId,
    /// The number of the prompt's entry: everything of the turn comes after it.
    pub seq: Seq,
    /// How many turns run before it.
    pub ahead: usize,
    /// It goes to the agent without a wait; otherwise [`Event::Admitted`](crate::model::Event::Admitted) says when.
    pub is_admitted: bool,
    /// An API that acknowledges the prompt waits for this first.
    pub durable: Durable,
}

#[derive(Clone, Debug)]
pub struct Description {
    pub record: SessionRecord,
    pub facts: SessionFacts,
    pub last: Seq,
    pub turn: TurnState,
    pub queued: usize,
    pub followers: usize,
    pub open_asks: Vec<Ask>,
    /// The calls that wait for the client, oldest first.
    pub parked: Vec<ClientCall>,
}

/// A reader's view of a session, and how the session stands at the end of the snapshot.
pub struct Joined {
    pub attachment: Attachment,
    pub description: Description,
    /// Held by whoever can answer the agent's questions, for as long as it can.
    pub presence: Presence,
}

/// Somebody who can answer questions is there until it is dropped.
#[derive(Clone, Debug, Default)]
pub struct Presence(Arc<()>);

impl Presence {
    /// How many there are beside the one that the session keeps for itself, whenever it is asked.
    pub(super) fn watchers(&self) -> Watchers {
        Watchers(Arc::downgrade(&self.0))
    }

    /// Asked of the one that the session keeps for itself.
    pub(super) fn attendance(&self) -> Attendance {
        if Arc::strong_count(&self.0) > 1 { Attendance::Somebody } else { Attendance::Nobody }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    Idle,
    /// It waits for the agent: for a permit, for the process, or until the agent has read the list of tools.
    Opening(TurnId),
    Running(TurnId),
}

/// The address of a live session. Cheap to clone; the session lives on without it.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    id: SessionId,
    published: Arc<PublishedState>,
    mailbox: mpsc::Sender<Command>,
}

impl SessionHandle {
    pub(super) fn new(id: SessionId, published: Arc<PublishedState>, mailbox: mpsc::Sender<Command>) -> Self {
        Self { id, published, mailbox }
    }

    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Whose session it is and with what, as its record says now. Nobody is asked, so that it is there for a session
    /// that has closed, too.
    pub fn owner(&self) -> Owner {
        self.published.owner()
    }

    /// Whether a call may wait for its result. Nobody is asked: where it says so, [`SessionHandle::describe`] knows
    /// which; where it does not, none waits of those that the log has told of.
    pub fn awaits_results(&self) -> bool {
        self.published.awaits_results()
    }

    /// Whether an agent is open for it, or being opened. Nobody is asked, so that it may be a moment behind.
    pub fn has_agent(&self) -> bool {
        self.published.has_agent()
    }

    pub fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }

    pub async fn prompt(&self, prompt: Prompt, by: ClientId) -> Result<Accepted, Error> {
        self.submit(Submission { prompt, by, precondition: Precondition::Any, offer: None }).await
    }

    /// Prompts only if the conversation stands where the caller believes it to stand.
    pub async fn prompt_after(&self, turn: TurnId, prompt: Prompt, by: ClientId) -> Result<Accepted, Error> {
        self.submit(Submission { prompt, by, precondition: Precondition::RightAfter(turn), offer: None }).await
    }

    /// Prompts, and says what the agent shall be offered. Refused as [`Error::MovedOn`] where the agent that is there
    /// can be offered nothing, since it was opened without an endpoint for tools.
    pub async fn submit(&self, submission: Submission) -> Result<Accepted, Error> {
        self.ask(|reply| Command::Prompt { submission: Box::new(submission), reply }).await
    }

    /// The same, and follows the session from the prompt on.
    pub async fn converse(
        &self,
        submission: Submission,
        backpressure: Backpressure,
    ) -> Result<(Accepted, Attachment), Error> {
        self.ask(|reply| Command::Converse { submission: Box::new(submission), backpressure, reply }).await
    }

    /// Gives results to the calls that wait for them, and the turn goes on. All or nothing: an id that does not wait is
    /// refused as [`Error::NotParked`], unless this very result was given for it before.
    pub async fn submit_results(&self, given: SubmitResults) -> Result<Resumed, Error> {
        self.ask(|reply| Command::SubmitResults { given, reply }).await
    }

    /// Offers this from now on, in a turn that waits for results: with them the agent may get other tools. Resolves when
    /// it has read their list, which some agents never do; at once where nothing is new or the turn does not wait.
    pub async fn offer(&self, turn: TurnId, offer: Offer) -> Result<(), Error> {
        self.ask(|reply| Command::Offer { turn, offer: Box::new(offer), reply }).await
    }

    /// Ends this turn, unless somebody else follows the session. The caller has let go of its own attachment before.
    pub async fn abandon(&self, turn: TurnId) -> Result<(), Error> {
        self.ask(|reply| Command::Abandon { turn, reply }).await
    }

    /// Ends the running turn. No turn: nothing happens.
    pub async fn cancel(&self) -> Result<(), Error> {
        self.ask(|reply| Command::Cancel { turn: None, reply }).await
    }

    /// Ends this turn only, whether it runs or waits; one that is over already stays as it ended.
    pub async fn cancel_turn(&self, turn: TurnId) -> Result<(), Error> {
        self.ask(|reply| Command::Cancel { turn: Some(turn), reply }).await
    }

    /// Answers a question and resolves when the decision is safe. The first answer wins.
    pub async fn answer(&self, ask: AskId, answer: Answer, by: ClientId) -> Result<(), Error> {
        let durable = self.ask(|reply| Command::Answer { ask, answer, by, reply }).await?;
        Ok(durable.await?)
    }

    pub async fn attach(&self, from: From, backpressure: Backpressure) -> Result<Attachment, Error> {
        self.ask(|reply| Command::Attach { from, backpressure, reply }).await
    }

    pub async fn join(&self, from: From, backpressure: Backpressure) -> Result<Joined, Error> {
        self.ask(|reply| Command::Join { from, backpressure, reply }).await
    }

    pub async fn change(&self, change: Change) -> Result<Changed, Error> {
        self.ask(|reply| Command::Change { change: Box::new(change), reply }).await
    }

    pub async fn wake(&self) -> Result<SessionFacts, Error> {
        self.ask(|reply| Command::Wake { offer: None, reply }).await
    }

    /// The same before a prompt that comes with an offer: an agent that is opened without one can be offered nothing later.
    pub async fn wake_offering(&self, offer: Offer) -> Result<SessionFacts, Error> {
        self.ask(|reply| Command::Wake { offer: Some(Box::new(offer)), reply }).await
    }

    pub async fn describe(&self) -> Result<Description, Error> {
        self.ask(|reply| Command::Describe { reply }).await
    }

    /// The record as it is now; the store may be a moment behind.
    pub async fn record(&self) -> Result<SessionRecord, Error> {
        self.ask(|reply| Command::Record { reply }).await
    }

    pub async fn rename(&self, title: Arc<str>) -> Result<(), Error> {
        self.ask(|reply| Command::Rename { title, reply }).await
    }

    /// The answer that begins after this entry is not to be had by its name any more, also not after a restart.
    pub async fn delete_answer(&self, after: Seq) -> Result<(), Error> {
        self.ask(|reply| Command::DeleteAnswer { after, reply }).await
    }

    /// Lets the session work in this folder, with what holds for sessions there, before anything was said in it. Refused
    /// afterwards: its agent would remember another place. Whether the folder may be worked in is for the caller to know.
    pub async fn work_in(&self, folder: PathBuf) -> Result<(), Error> {
        self.ask(|reply| Command::WorkIn { folder, reply }).await
    }

    /// Closes the session at its agent while it is idle; refused as busy otherwise. Those who follow it notice nothing: its
    /// next prompt opens an agent again, which is told what was said.
    pub async fn release_agent(&self) -> Result<(), Error> {
        match self.ask(|reply| Command::ReleaseAgent { reply }).await {
            Err(Error::Closed) => Ok(()),
            other => other,
        }
    }

    /// Ends the session's task if it is not used at all; refused as busy otherwise. The log stays.
    pub async fn retire(&self) -> Result<(), Error> {
        match self.ask(|reply| Command::Retire { reply }).await {
            Err(Error::Closed) => Ok(()),
            other => other,
        }
    }

    pub async fn close(&self) -> Result<(), Error> {
        match self.ask(|reply| Command::Close { reply }).await {
            Err(Error::Closed) => Ok(()),
            other => other,
        }
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(command(reply)).await.map_err(|_| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }
}
