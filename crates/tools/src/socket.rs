//! An agent's connection as HTTP reads and writes it. While a call waits nobody reads from it, so that no buffer has to
//! be kept for that; whether the agent is still there is looked at without one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

pub struct Socket {
    stream: TcpStream,
    unread: Unread,
}

/// What is known of bytes that have come and that nobody has asked for yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    Unknown,
    Some,
}

impl Socket {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, unread: Unread::Unknown }
    }

    /// Fails when the agent has closed its end. Otherwise the task is woken when it does.
    fn watch(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let mut next = [0];
        match self.unread {
            // They come before the end, so that nothing is known of it until they are read.
            Unread::Some => Ok(()),
            Unread::Unknown => match self.stream.poll_peek(cx, &mut ReadBuf::new(&mut next)) {
                Poll::Pending => Ok(()),
                Poll::Ready(Ok(0)) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the agent has left")),
                Poll::Ready(Ok(_)) => {
                    self.unread = Unread::Some;
                    Ok(())
                }
                Poll::Ready(Err(error)) => Err(error),
            },
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.unread = Unread::Unknown;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    /// Called whenever the connection has nothing left to do but wait.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (agent, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (agent.unwrap(), Socket::new(accepted.unwrap().0))
    }

    /// Polls as a connection does that has nothing to say, until it has to end.
    async fn left(socket: &mut Socket) -> io::Error {
        poll_fn(|cx| match Pin::new(&mut *socket).poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        })
        .await
    }

    #[tokio::test]
    async fn an_agent_that_leaves_while_nobody_reads_is_noticed() {
        let (mut agent, mut socket) = pair().await;
        socket.write_all(b"still waiting").await.unwrap();
        socket.flush().await.unwrap();
        let mut heard = [0; 13];
        agent.read_exact(&mut heard).await.unwrap();
        let (error, ()) = tokio::join!(left(&mut socket), async { drop(agent) });
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted, "{error}");
    }

    #[tokio::test]
    async fn what_an_agent_said_before_it_left_is_still_read() {
        let (mut agent, mut socket) = pair().await;
        agent.write_all(b"next").await.unwrap();
        drop(agent);
        socket.stream.readable().await.unwrap();
        socket.flush().await.unwrap();
        socket.flush().await.unwrap();
        let mut said = [0; 4];
        socket.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"next");
        left(&mut socket).await;
    }
}
