//! The guard as a layer of a router.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use tower_layer::Layer;
use tower_service::Service;

use super::{Entry, Guard};

#[derive(Clone)]
pub struct GuardLayer {
    pub(super) guard: Arc<Guard>,
    pub(super) entry: Entry,
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { guard: Arc::clone(&self.guard), entry: self.entry, inner }
    }
}

#[derive(Clone)]
pub struct Guarded<S> {
    guard: Arc<Guard>,
    entry: Entry,
    inner: S,
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (guard, entry) = (Arc::clone(&self.guard), self.entry);
        // The clone takes the place of the one that is ready.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        Box::pin(async move { Ok(guard.pass(entry, inner, request).await) })
    }
}
