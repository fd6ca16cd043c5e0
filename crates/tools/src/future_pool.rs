//! A pool of boxed futures. Making an answer takes much memory for a moment, and a connection that waits for a result
//! would keep it for as long as it lives; so all connections share the few that are busy at once.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use http::Response;
use tokio_util::sync::ReusableBoxFuture;

use crate::auth::Body;

type PooledFuture = ReusableBoxFuture<'static, Response<Body>>;

/// How many unused allocations are kept.
const KEPT: usize = 8;

#[derive(Clone, Default)]
pub struct FuturePool(Arc<Mutex<Vec<PooledFuture>>>);

impl FuturePool {
    /// The same answer, made in a pooled allocation that is given back as soon as the answer begins to go out.
    pub fn make<F>(&self, answer: F) -> impl Future<Output = Response<Body>> + use<F>
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let pool = self.clone();
        let mut future = match pool.take() {
            Some(mut future) => {
                future.set(answer);
                future
            }
            None => PooledFuture::new(answer),
        };
        async move {
            let answer = poll_fn(|cx| future.poll(cx)).await;
            pool.give_back(future);
            answer
        }
    }

    fn take(&self) -> Option<PooledFuture> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, future: PooledFuture) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < KEPT {
            pool.push(future);
        }
    }
}
