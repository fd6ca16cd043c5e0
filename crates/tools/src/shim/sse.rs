//! Messages out of a stream of server-sent events.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use sse_stream::{ByteStreamBody, SseStream};

type Bytewise = Pin<Box<dyn Stream<Item = Result<Bytes, io::Error>> + Send>>;

/// The data of each event of a body that has some.
pub struct Events {
    events: SseStream<ByteStreamBody<Bytewise, Bytes>>,
    /// Bytes that have come since the last event. `sse-stream` itself has no bound.
    unread: Arc<AtomicUsize>,
}

impl Events {
    /// `largest` is the most that one event may take.
    pub fn new<B>(body: B, largest: usize) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let unread = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&unread);
        let bounded = body.into_data_stream().map_err(io::Error::other).and_then(move |data| {
            let before = counted.fetch_add(data.len(), Ordering::Relaxed);
            std::future::ready(if before > largest {
                Err(io::Error::other(format!("a message is longer than {largest} bytes")))
            } else {
                Ok(data)
            })
        });
        Self { events: SseStream::from_bytes_stream(Box::pin(bounded)), unread }
    }

    pub async fn next(&mut self) -> Option<Result<String, sse_stream::Error>> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            self.unread.store(0, Ordering::Relaxed);
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                return Some(Ok(data));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    fn body(stream: &'static [u8], size: usize) -> impl Body<Data = Bytes, Error = io::Error> + Send + 'static {
        let pieces = stream.chunks(size).map(|piece| Ok(Frame::data(Bytes::from_static(piece))));
        StreamBody::new(stream::iter(pieces))
    }

    #[tokio::test]
    async fn events_come_out_whole_however_they_are_cut() {
        let stream = b": ping\n\ndata: {\"a\":1}\n\nid: 7\r\nevent: message\r\ndata: {\"b\":\r\ndata: 2}\r\n\r\ndata:\n\ndata: half";
        for size in 1..stream.len() {
            let mut events = Events::new(body(stream, size), 1000);
            let mut all = Vec::new();
            while let Some(event) = events.next().await {
                all.push(event.unwrap());
            }
            assert_eq!(all, ["{\"a\":1}", "{\"b\":\n2}"], "in pieces of {size}");
        }
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_refused_and_many_short_ones_are_not() {
        let mut events = Events::new(body(b"data: 0123456789\n\ndata: 0123456789\n\ndata: 0123456789\n\n", 6), 20);
        for _ in 0..3 {
            assert_eq!(events.next().await.unwrap().unwrap(), "0123456789");
        }
        assert!(events.next().await.is_none());
        let mut events = Events::new(body(b"data: 0123456789012345678901234567890123456789", 6), 20);
        let refused = events.next().await.unwrap().unwrap_err().to_string();
        assert!(refused.contains("a message is longer than 20 bytes"), "{refused}");
    }
}
