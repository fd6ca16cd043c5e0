//! Conversations that go on by the id of their last message: which session has one, and which tools were offered there. Its
//! clients send nothing but what is new, and everything where they are told that nothing is kept.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use gembridge_core::exchange::Tools;
use gembridge_core::model::{Principal, SessionId};

use super::error::ThreadRefusal;

/// A conversation after one of its messages.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub owner: Principal,
    pub session: SessionId,
    pub tools: Tools,
}

/// So many messages are remembered; the oldest are forgotten first.
const MOST: usize = 4_096;

#[derive(Default)]
pub(super) struct Threads {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    threads: HashMap<String, Place>,
    /// From the oldest to the newest.
    order: VecDeque<String>,
}

enum Place {
    Open(Thread),
    /// Somebody said something after it.
    Continued,
}

/// What a request adds to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addition {
    /// Results of calls: whoever sends them once more gets the same answer again.
    Results,
    /// Anything else: it is said once.
    Words,
}

impl Threads {
    pub(super) fn keep(&self, message: String, thread: Thread) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.order.len() >= MOST
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.threads.remove(&oldest);
        }
        kept.order.push_back(message.clone());
        kept.threads.insert(message, Place::Open(thread));
    }

    /// The conversation after this message, to go on with.
    pub(super) fn go_on(&self, message: &str, owner: &Principal, addition: Addition) -> Result<Thread, ThreadRefusal> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.threads.get_mut(message).ok_or(ThreadRefusal::NotFound)?;
        let thread = match place {
            Place::Open(thread) if thread.owner == *owner => thread.clone(),
            // Whether somebody else has it is nobody's business.
            Place::Open(_) => return Err(ThreadRefusal::NotFound),
            Place::Continued => return Err(ThreadRefusal::AlreadyContinued),
        };
        if addition == Addition::Words {
            *place = Place::Continued;
        }
        Ok(thread)
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
        threads.keep("msg_1".into(), Thread { owner: ann.clone(), session, tools: Tools::none() });
        let go_on = |owner, addition| threads.go_on("msg_1", owner, addition).map(|thread| thread.session);
        assert_eq!(go_on(&bob, Addition::Words), Err(ThreadRefusal::NotFound));
        assert_eq!(go_on(&ann, Addition::Results), Ok(session));
        assert_eq!(go_on(&ann, Addition::Words), Ok(session));
        assert_eq!(go_on(&ann, Addition::Words), Err(ThreadRefusal::AlreadyContinued));
        assert_eq!(threads.go_on("msg_2", &ann, Addition::Words).err(), Some(ThreadRefusal::NotFound));
    }

    #[test]
    fn the_oldest_is_forgotten_for_one_more() {
        let threads = Threads::default();
        let owner = Principal::new("ann");
        for number in 0..=MOST {
            let thread = Thread { owner: owner.clone(), session: SessionId::new(), tools: Tools::none() };
            threads.keep(format!("msg_{number}"), thread);
        }
        assert!(threads.go_on("msg_0", &owner, Addition::Words).is_err());
        assert!(threads.go_on("msg_1", &owner, Addition::Words).is_ok());
    }
}
