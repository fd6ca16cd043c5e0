//! Requests that are sent again because their answer was lost on the way: they find the turn that they began, instead of
//! having an agent do its work twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::conversations::Owner;
use super::fingerprint::Mark;
use super::sink::AnswerPlace;
use crate::error::Error;
use crate::log::LogEntry;
use crate::model::{Event, Outcome, Seq, TurnId};
use crate::session::{SessionHandle, TurnState};
use crate::store::Logs;

/// A request, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// The same for the same bytes, and for nothing else.
    pub mark: Mark,
    /// The client says that it sends the request again.
    pub is_retry: bool,
}

/// Whether the answer has reached its client, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// It is on its way. Others may ask the same meanwhile, and mean an answer of their own.
    UnderWay,
    /// Its client left before the end.
    Lost,
    /// All of it was handed to the connection.
    Done,
}

/// Answers that are remembered. For one more the oldest is forgotten, and its request begins a turn of its own again.
const MOST: usize = 1_024;
/// Client libraries try again within seconds, for a minute or two at most.
const LONGEST: Duration = Duration::from_mins(5);

#[derive(Default)]
pub(super) struct Repeats {
    answers: Mutex<Answers>,
}

type Key = (Owner, Mark);

#[derive(Default)]
struct Answers {
    begun: HashMap<Arc<Key>, Begun>,
    /// In the order in which they came, also of some that have begun anew.
    order: VecDeque<Arc<Key>>,
}

struct Begun {
    place: AnswerPlace,
    delivery: Delivery,
    at: Instant,
}

impl Repeats {
    /// The answer to this request begins here.
    pub(super) fn note(&self, owner: &Owner, request: SentRequest, place: AnswerPlace) {
        let key = Arc::new((owner.clone(), request.mark));
        let begun = Begun { place, delivery: Delivery::UnderWay, at: Instant::now() };
        let mut answers = self.lock();
        if answers.begun.insert(Arc::clone(&key), begun).is_none() {
            answers.order.push_back(key);
        }
        while answers.order.len() > MOST {
            if let Some(oldest) = answers.order.pop_front() {
                answers.begun.remove(&oldest);
            }
        }
    }

    /// All of it was handed to the connection.
    pub(super) fn delivered(&self, owner: &Owner, request: SentRequest, place: AnswerPlace) {
        self.settle(owner, request, place, Delivery::Done);
    }

    /// Its client left before the end, unless it had all of it by then.
    pub(super) fn lost(&self, owner: &Owner, request: SentRequest, place: AnswerPlace) {
        self.settle(owner, request, place, Delivery::Lost);
    }

    /// What became of the answer that begins here; the same request may have begun another since.
    fn settle(&self, owner: &Owner, request: SentRequest, place: AnswerPlace, delivery: Delivery) {
        if let Some(begun) = self.lock().begun.get_mut(&(owner.clone(), request.mark))
            && begun.place == place
            && begun.delivery != Delivery::Done
        {
            begun.delivery = delivery;
        }
    }

    /// Where the answer to the same request begins, if its client cannot have all of it.
    pub(super) fn find(&self, owner: &Owner, request: SentRequest) -> Option<AnswerPlace> {
        let answers = self.lock();
        let begun = answers.begun.get(&(owner.clone(), request.mark))?;
        let is_wanted = request.is_retry || begun.delivery == Delivery::Lost;
        (is_wanted && begun.at.elapsed() < LONGEST).then_some(begun.place)
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the turn came to its end by itself, or runs on because others read it: one that was cancelled or that failed is begun
/// anew, and so is one that is cancelled now because its client has left.
pub(super) async fn can_be_told_again(
    handle: &SessionHandle,
    logs: &dyn Logs,
    place: AnswerPlace,
) -> Result<bool, Error> {
    let now = handle.describe().await?;
    if now.turn == TurnState::Running(place.turn) {
        return Ok(now.followers > 0 || !now.parked.is_empty());
    }
    let mut after = place.after;
    loop {
        let page = logs.read(place.session, after, Seq(u64::MAX), PAGE).await?;
        if let Some(outcome) = page.iter().find_map(|entry| end_of(entry, place.turn)) {
            return Ok(matches!(outcome, Outcome::Finished(_)));
        }
        match page.last() {
            Some(last) => after = last.seq,
            None => return Ok(false),
        }
    }
}

/// Entries read at once.
const PAGE: usize = 256;

fn end_of(entry: &LogEntry, turn: TurnId) -> Option<&Outcome> {
    match &entry.event {
        Event::Ended(outcome) if entry.turn == Some(turn) => Some(outcome),
        _ => None,
    }
}
