//! Room for answers that are being made. Making one takes much room for a moment, and a connection that waits for a
//! result would keep it for as long as it lives; so all connections share what few are busy at once.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use http::Response;
use tokio_util::sync::ReusableBoxFuture;

use crate::door::Body;

type Room = ReusableBoxFuture<'static, Response<Body>>;

/// Rooms that are kept while nobody needs them.
const KEPT: usize = 8;

#[derive(Clone, Default)]
pub struct Rooms(Arc<Mutex<Vec<Room>>>);

impl Rooms {
    /// The same answer, made in a room that is left as soon as it begins to go out.
    pub fn make<F>(&self, answer: F) -> impl Future<Output = Response<Body>> + use<F>
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let rooms = self.clone();
        let mut room = match rooms.enter() {
            Some(mut room) => {
                room.set(answer);
                room
            }
            None => Room::new(answer),
        };
        async move {
            let answer = poll_fn(|cx| room.poll(cx)).await;
            rooms.leave(room);
            answer
        }
    }

    fn enter(&self) -> Option<Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn leave(&self, room: Room) {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rooms.len() < KEPT {
            rooms.push(room);
        }
    }
}
