//! The accept loop: a bound on connections, a deadline for each, and an end.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::auth::ToolAuth;
use crate::future_pool::FuturePool;
use crate::socket::Socket;

/// How long a connection may stay without a whole request. Longer than clients keep an idle connection, so that none
/// is closed under a request on its way.
const IDLE: Duration = Duration::from_mins(2);
/// How long answers may take that were begun when the listener stops.
const DRAIN: Duration = Duration::from_secs(3);
/// How long nobody is let in after the system had no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Lets agents in until it is told to stop; returns when the last of them has left.
pub async fn listen(listener: TcpListener, auth: Arc<ToolAuth>, limit: usize, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    let pool = FuturePool::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < limit => match accepted {
                Ok((stream, _)) => { connections.spawn(converse(stream, auth.clone(), pool.clone(), stop.clone())); }
                Err(error) => {
                    tracing::warn!(%error, "an agent could not connect to its tools");
                    sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let left = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN, left).await.is_err() {
        connections.shutdown().await;
    }
}

async fn converse(stream: TcpStream, auth: Arc<ToolAuth>, pool: FuturePool, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection of an agent cannot be made prompt");
    }
    let service = service_fn(move |request| {
        let auth = auth.clone();
        let answer = pool.make(async move { auth.answer(request).await });
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    // A call that waits keeps no buffer to read into: the socket itself tells when the agent has left.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .half_close(true)
        .writev(false)
        .serve_connection(TokioIo::new(Socket::new(stream)), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of an agent broke off");
    }
}
