//! A proxy that shows a token for clients that cannot. All else passes as it is.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Gives its address; runs for as long as the tasks do.
pub async fn start(target: SocketAddr, token: &str, tasks: &mut JoinSet<()>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let token = HeaderValue::try_from(token).unwrap();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(relay(stream, target, token.clone()));
        }
    });
    address
}

async fn relay(stream: TcpStream, target: SocketAddr, token: HeaderValue) {
    let (mut sender, upstream) =
        client::handshake(TokioIo::new(TcpStream::connect(target).await.unwrap())).await.unwrap();
    let (requests, mut asked) = tokio::sync::mpsc::channel::<(Request<Incoming>, tokio::sync::oneshot::Sender<_>)>(1);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.headers_mut().insert(AUTHORIZATION, token.clone());
        let requests = requests.clone();
        async move {
            let (reply, answer) = tokio::sync::oneshot::channel::<Response<Incoming>>();
            requests.send((request, reply)).await.unwrap();
            Ok::<_, Infallible>(answer.await.unwrap())
        }
    });
    let forward = async {
        while let Some((request, reply)) = asked.recv().await {
            let Ok(response) = sender.send_request(request).await else { break };
            if reply.send(response).is_err() {
                break;
            }
        }
    };
    let downstream = server::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = downstream => {}
        () = async { tokio::join!(forward, upstream).1.unwrap_or_default() } => {}
    }
}
