//! Conversations that go on by the id of their last message: which session has one, and which tools were offered there. Its
//! clients send nothing but what is new, and everything where they are told that nothing is kept.

use gembridge_core::exchange::Tools;
use gembridge_core::model::{Principal, SessionId};

use super::error::ThreadRefusal;
use crate::dialect::{Recent, RecentLimits};

/// A conversation after one of its messages.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub owner: Principal,
    pub session: SessionId,
    pub tools: Tools,
}

/// So many messages are remembered; the oldest are forgotten first.
const LIMITS: RecentLimits = RecentLimits { bytes: usize::MAX, entries: 4_096 };

pub(super) struct Threads(Recent<Place>);

#[derive(Clone)]
enum Place {
    Open(Thread),
    /// This owner said something after it.
    Continued(Principal),
}

/// What a request adds to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addition {
    /// Results of calls: whoever sends them once more gets the same answer again.
    Results,
    /// Anything else: it is said once.
    Words,
}

impl Default for Threads {
    fn default() -> Self {
        Self(Recent::new(LIMITS))
    }
}

impl Threads {
    pub(super) fn keep(&self, message: &str, thread: Thread) {
        let owner = thread.owner.clone();
        self.0.put(message, &owner, Place::Open(thread), 0);
    }

    /// The conversation after this message, to go on with.
    pub(super) fn go_on(&self, message: &str, owner: &Principal, addition: Addition) -> Result<Thread, ThreadRefusal> {
        let gone_on = self.0.change(message, |place| {
            let thread = match place {
                Place::Open(thread) if thread.owner == *owner => thread.clone(),
                Place::Continued(by) if by == owner => return Err(ThreadRefusal::AlreadyContinued),
                // What others have is not told from what nobody has.
                Place::Open(_) | Place::Continued(_) => return Err(ThreadRefusal::NotFound),
            };
            if addition == Addition::Words {
                *place = Place::Continued(owner.clone());
            }
            Ok(thread)
        });
        gone_on.unwrap_or(Err(ThreadRefusal::NotFound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_its_owners_and_words_are_said_to_it_once() {
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let threads = Threads::default();
        let session = SessionId::new();
        threads.keep("msg_1", Thread { owner: ann.clone(), session, tools: Tools::none() });
        let go_on = |owner, addition| threads.go_on("msg_1", owner, addition).map(|thread| thread.session);
        assert_eq!(go_on(&bob, Addition::Words), Err(ThreadRefusal::NotFound));
        assert_eq!(go_on(&ann, Addition::Results), Ok(session));
        assert_eq!(go_on(&ann, Addition::Words), Ok(session));
        assert_eq!(go_on(&ann, Addition::Words), Err(ThreadRefusal::AlreadyContinued));
        assert_eq!(go_on(&bob, Addition::Words), Err(ThreadRefusal::NotFound), "nor is it told that it went on");
        assert_eq!(threads.go_on("msg_2", &ann, Addition::Words).err(), Some(ThreadRefusal::NotFound));
    }
}
