//! The sessions of one agent with its tool server. Lists and calls are answered here, as streams without a task or a
//! queue of their own: a call can wait for minutes, and there can be thousands. Everything else is the library's.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcNotification, JsonRpcRequest, ListToolsResult,
    RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::call::{self, Begun, Waiting};
use crate::calls::{Edition, PendingCalls};
use crate::content::as_message;

pub struct Sessions {
    pending: Arc<PendingCalls>,
    library: LocalSessionManager,
    /// The sessions, oldest first.
    age: Mutex<VecDeque<SessionId>>,
    /// Answers of ours that are still being read.
    answers: TaskTracker,
}

impl Sessions {
    pub fn new(pending: Arc<PendingCalls>) -> Self {
        let mut library = LocalSessionManager::default();
        // A call may wait longer than any session may be idle: sessions end with their endpoint. And the empty event that
        // announces when to come back is one that agents fall over.
        library.session_config.keep_alive = None;
        library.session_config.sse_retry = None;
        Self { pending, library, age: Mutex::default(), answers: TaskTracker::new() }
    }

    pub async fn count(&self) -> usize {
        self.library.sessions.read().await.len()
    }

    /// Ends the oldest session in which nothing waits if there are this many: agents come back without having said
    /// goodbye. `false` if something waits in all of them.
    pub async fn make_room(&self, most: usize) -> bool {
        if self.count().await < most {
            return true;
        }
        let oldest = self.age().iter().find(|session| !self.pending.waits_in(session)).cloned();
        match oldest {
            Some(oldest) => self.close_session(&oldest).await.is_ok(),
            None => false,
        }
    }

    fn age(&self) -> MutexGuard<'_, VecDeque<SessionId>> {
        self.age.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when everything that was begun has been read.
    pub async fn answered(&self) {
        self.answers.close();
        self.answers.wait().await;
    }

    pub async fn close_all(&self) {
        let sessions: Vec<_> = self.library.sessions.read().await.keys().cloned().collect();
        for session in sessions {
            if let Err(error) = self.close_session(&session).await {
                tracing::debug!(%error, "a session of an agent with its tools did not close");
            }
        }
    }

    fn list(&self, request: RequestId) -> Answer {
        let (edition, list) = self.pending.list();
        let mut listed = ListToolsResult::with_all_items(list.tools());
        // Only versions that we do not speak know this field.
        listed.result_type = None;
        let message = ServerJsonRpcMessage::response(ServerResult::ListToolsResult(listed), request);
        Answer::List { message: Some(ServerSseMessage::from_message(message)), edition, pending: self.pending.clone() }
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.library.create_session().await?;
        self.age().push_back(id.clone());
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.library.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.library.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.age().retain(|session| session != id);
        self.pending.cancel_session(id);
        self.library.close_session(id).await
    }

    async fn create_stream(
        &self,
        session: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let answer = match message {
            ClientJsonRpcMessage::Request(JsonRpcRequest {
                id, request: ClientRequest::ListToolsRequest(_), ..
            }) => self.list(id),
            ClientJsonRpcMessage::Request(JsonRpcRequest {
                id, request: ClientRequest::CallToolRequest(call), ..
            }) => match call::begin(&self.pending, session, id.clone(), call) {
                Begun::Answered(result) => Answer::Whole(Some(as_message(result, id))),
                Begun::Waiting(waiting) => Answer::Call(waiting),
            },
            other => Answer::Library(Box::pin(self.library.create_stream(session, other).await?)),
        };
        Ok(Answering { answer, _reader: self.answers.token() })
    }

    async fn accept_message(&self, session: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        if let ClientJsonRpcMessage::Notification(JsonRpcNotification {
            notification: ClientNotification::CancelledNotification(cancelled),
            ..
        }) = &message
            && let Some(request) = &cancelled.params.request_id
        {
            self.pending.cancel_call(session, request);
        }
        self.library.accept_message(session, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.library.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.library.resume(id, last_event_id).await
    }
}

/// An answer on its way.
struct Answering {
    answer: Answer,
    _reader: TaskTrackerToken,
}

enum Answer {
    /// A list; it counts as read when all of it was taken.
    List {
        message: Option<ServerSseMessage>,
        edition: Edition,
        pending: Arc<PendingCalls>,
    },
    Whole(Option<ServerSseMessage>),
    Call(Box<Waiting>),
    Library(Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>),
}

impl Stream for Answering {
    type Item = ServerSseMessage;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        match &mut self.get_mut().answer {
            Answer::List { message, edition, pending } => {
                let message = message.take();
                if message.is_none() {
                    pending.was_read(*edition);
                }
                Poll::Ready(message)
            }
            Answer::Whole(message) => Poll::Ready(message.take()),
            Answer::Call(waiting) => waiting.poll_next(cx),
            Answer::Library(stream) => stream.as_mut().poll_next(cx),
        }
    }
}
