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
use crate::frontend::Render;

/// Which frontend renders what the guard refuses.
#[derive(Clone)]
pub enum Renderer {
    Fixed(Render),
    ByPath(Arc<dyn Fn(&str) -> Render + Send + Sync>),
}

impl Renderer {
    fn of(&self, request: &Request) -> Render {
        match self {
            Self::Fixed(render) => *render,
            Self::ByPath(choose) => choose(request.uri().path()),
        }
    }
}

#[derive(Clone)]
pub struct GuardLayer {
    pub(super) guard: Arc<Guard>,
    pub(super) entry: Entry,
    pub(super) renderer: Renderer,
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { guard: Arc::clone(&self.guard), entry: self.entry, renderer: self.renderer.clone(), inner }
    }
}

#[derive(Clone)]
pub struct Guarded<S> {
    guard: Arc<Guard>,
    entry: Entry,
    renderer: Renderer,
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
        let (guard, entry, render) = (Arc::clone(&self.guard), self.entry, self.renderer.of(&request));
        // The clone takes the place of the one that is ready.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        Box::pin(async move { Ok(guard.pass(entry, render, inner, request).await) })
    }
}
