//! Wake-ups that a connection's task sends to itself: HTTP/1 hands a body to its reader within one task, and each rings
//! for the other. By way of the scheduler that would wake an idle thread, which then takes the connection along. Here it
//! is another round at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::coop::has_budget_remaining;

/// Whoever rings without end must let others have their turn. To hand over a body takes one round or two.
const MOST: usize = 4;

/// Polls on behalf of one task.
pub struct Rounds {
    bell: Arc<Bell>,
    waker: Waker,
}

struct Bell {
    task: Waker,
    state: AtomicU8,
}

/// Nobody polls: whoever rings wakes the task.
const AT_REST: u8 = 0;
const RUNNING: u8 = 1;
/// It rang while it ran.
const RUNG: u8 = 2;

impl Rounds {
    pub fn of(task: Waker) -> Self {
        let bell = Arc::new(Bell { task, state: AtomicU8::new(AT_REST) });
        Self { waker: Waker::from(Arc::clone(&bell)), bell }
    }

    /// Polls until it is ready, or nothing rings any more.
    pub fn poll<T>(&self, mut step: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..MOST {
            self.bell.state.store(RUNNING, Ordering::Release);
            let polled = step(&mut context);
            if polled.is_ready() {
                self.bell.state.store(AT_REST, Ordering::Release);
                return polled;
            }
            if self.bell.exchange(RUNNING, AT_REST).is_ok() {
                return Poll::Pending;
            }
            // It rang to be asked later: it had its share for now.
            if !has_budget_remaining() {
                break;
            }
        }
        self.bell.state.store(AT_REST, Ordering::Release);
        self.bell.task.wake_by_ref();
        Poll::Pending
    }
}

impl Bell {
    fn exchange(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.exchange(RUNNING, RUNG) == Err(AT_REST) {
            self.task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn rounds() -> (Rounds, Arc<Woken>) {
        let task = Arc::<Woken>::default();
        (Rounds::of(Waker::from(Arc::clone(&task))), task)
    }

    #[test]
    fn who_rings_for_itself_is_polled_again_at_once_and_nobody_is_woken() {
        let (rounds, task) = rounds();
        let mut polls = 0;
        let polled = rounds.poll(|context| {
            polls += 1;
            if polls < 3 {
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert_eq!((polled.is_pending(), polls, task.0.load(Ordering::Relaxed)), (true, 3, 0));
    }

    #[test]
    fn who_rings_while_nobody_polls_wakes_the_task() {
        let (rounds, task) = rounds();
        let mut kept = None;
        let polled = rounds.poll(|context| {
            kept = Some(context.waker().clone());
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        kept.unwrap().wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn who_rings_without_end_lets_others_have_their_turn() {
        let (rounds, task) = rounds();
        let polled = rounds.poll(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!((polled.is_pending(), task.0.load(Ordering::Relaxed)), (true, 1));
    }

    #[test]
    fn a_ring_from_elsewhere_in_the_middle_of_a_poll_is_not_lost() {
        let (rounds, task) = rounds();
        let mut polls = 0;
        let polled = rounds.poll(|context| {
            polls += 1;
            if polls == 1 {
                let waker = context.waker().clone();
                std::thread::scope(|scope| scope.spawn(|| waker.wake()).join().unwrap());
                return Poll::Pending;
            }
            Poll::Ready(polls)
        });
        assert_eq!((polled, task.0.load(Ordering::Relaxed)), (Poll::Ready(2), 0));
    }

    #[tokio::test]
    async fn who_has_had_its_share_is_asked_later() {
        let (rounds, task) = rounds();
        let mut polls = 0;
        let polled = rounds.poll(|context| {
            polls += 1;
            while pin!(tokio::task::coop::consume_budget()).poll(context).is_ready() {}
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!((polled.is_pending(), polls, task.0.load(Ordering::Relaxed)), (true, 1, 1));
    }
}
