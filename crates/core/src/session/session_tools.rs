//! Where a session's agent finds the client's tools, what is offered there, and whether the agent has read it.

use tokio::sync::mpsc;

use crate::BoxFuture;
use crate::driver::ToolServer;
use crate::model::Failure;
use crate::tool_host::{HostedTools, Offer, ToolHost, ToolList, ToolNews};

/// Belongs to one agent and goes with it.
pub(super) struct SessionTools {
    board: Box<dyn ToolList>,
    news: mpsc::Receiver<ToolNews>,
    offered: Offer,
    reading: Reading,
}

enum Reading {
    Done,
    Awaited(BoxFuture<'static, ()>),
}

pub(super) enum ToolsUpdate {
    /// The agent did something there.
    Tool(ToolNews),
    /// It has read what is offered.
    Read,
    /// The host has closed it.
    Gone,
}

impl SessionTools {
    /// Opens an endpoint with this offer. The server is what the agent must be told.
    pub(super) fn open(host: &dyn ToolHost, offered: Offer) -> Result<(ToolServer, Self), Failure> {
        let HostedTools { server, mut board, news } = host.open()?;
        let reading = Reading::Awaited(board.offer(offered.clone()));
        Ok((server, Self { board, news, offered, reading }))
    }

    /// Offers this from now on. What is offered already stays as read as it is.
    pub(super) fn offer(&mut self, offer: &Offer) {
        if self.offered != *offer {
            self.offered = offer.clone();
            self.reading = Reading::Awaited(self.board.offer(offer.clone()));
        }
    }

    pub(super) fn is_read(&self) -> bool {
        matches!(self.reading, Reading::Done)
    }

    /// Whether the agent has read this very offer.
    pub(super) fn has_read(&self, offer: &Offer) -> bool {
        self.is_read() && self.offered == *offer
    }

    /// Waits for what comes next. May be dropped and called again.
    pub(super) async fn news(&mut self) -> ToolsUpdate {
        let read = async {
            match &mut self.reading {
                Reading::Done => std::future::pending().await,
                Reading::Awaited(reading) => reading.await,
            }
        };
        tokio::select! {
            biased;
            news = self.news.recv() => news.map_or(ToolsUpdate::Gone, ToolsUpdate::Tool),
            () = read => {
                self.reading = Reading::Done;
                ToolsUpdate::Read
            }
        }
    }

    /// What the agent has done there up to now, one by one.
    pub(super) fn news_so_far(&mut self) -> Option<ToolNews> {
        self.news.try_recv().ok()
    }
}
