//! The part of server-sent events that MCP uses: the data of each event is one message.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use serde_json::Value;
use sse_stream::SseStream;

use super::http::{Failure, LARGEST_ANSWER};

/// Reads events until the one that answers the request; notifications on the way are passed over.
pub(super) async fn find_answer<B>(body: B, id: u64) -> Result<Value, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let answers = |message: &Value| message["id"] == id && message.get("method").is_none();
    let found = first(body, answers).await?;
    found.ok_or_else(|| Failure::Told("its event stream ended without the answer".to_owned()))
}

/// Reads messages until one is `wanted`, or the stream ends without it.
pub(super) async fn first<B>(body: B, mut wanted: impl FnMut(&Value) -> bool) -> Result<Option<Value>, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // Bytes since the last event: `sse-stream` itself has no bound.
    let unread = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&unread);
    let bounded = body.into_data_stream().map_err(io::Error::other).and_then(move |data| {
        let before = counted.fetch_add(data.len(), Ordering::Relaxed);
        std::future::ready(if before > LARGEST_ANSWER {
            Err(io::Error::other(format!("its event is larger than {LARGEST_ANSWER} bytes")))
        } else {
            Ok(data)
        })
    });
    let mut events = std::pin::pin!(SseStream::from_bytes_stream(bounded));
    while let Some(event) = events.next().await {
        let event = event?;
        unread.store(0, Ordering::Relaxed);
        let Ok(message) = serde_json::from_str::<Value>(&event.data.unwrap_or_default()) else { continue };
        if wanted(&message) {
            return Ok(Some(message));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_event_is_found_across_the_cuts_between_reads() {
        let pieces = [": hi\r\nid: 1\r\nda", "ta: {\"a\":\r", "\ndata: 1}\r\n", "\r\n\ndata:\"x\"\n\nrest"];
        let body =
            StreamBody::new(stream::iter(pieces.map(|piece| Ok::<_, io::Error>(Frame::data(Bytes::from(piece))))));
        let mut found = Vec::new();
        let last = first(body, |message| {
            found.push(message.clone());
            false
        });
        assert!(last.await.is_ok_and(|wanted| wanted.is_none()));
        assert_eq!(found, [json!({"a": 1}), json!("x")]);
    }
}
