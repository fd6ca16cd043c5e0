//! Where a session's agent finds the client's tools, what is offered there, and whether the agent has read it.

use tokio::sync::mpsc;

use crate::BoxFuture;
use crate::driver::ToolServer;
use crate::model::Failure;
use crate::tool_host::{HostedTools, Offer, ToolHost, ToolList, ToolNews};

/// Belongs to one agent and goes with it.
pub(super) struct SessionTools {
    list: Box<dyn ToolList>,
    news: mpsc::Receiver<ToolNews>,
    offered: Offer,
    reading: Reading,
    reader: Reader,
}

enum Reading {
    Done,
    Awaited(BoxFuture<'static, ()>),
}

/// When the agent reads the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Before it gets a prompt, as far as is known: prompts wait for it.
    Early,
    /// It did not come in time once: no prompt waits for it any more.
    Late,
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
        let HostedTools { server, mut list, news } = host.open()?;
        let reading = Reading::Awaited(list.offer(offered.clone()));
        Ok((server, Self { list, news, offered, reading, reader: Reader::Early }))
    }

    /// Offers this from now on. What is offered already stays as read as it is.
    pub(super) fn offer(&mut self, offer: &Offer) {
        if self.offered != *offer {
            self.offered = offer.clone();
            self.reading = Reading::Awaited(self.list.offer(offer.clone()));
        }
    }

    /// Whether prompts wait until the agent has read what is offered.
    pub(super) fn holds_prompts(&self) -> bool {
        matches!(self.reading, Reading::Awaited(_)) && self.reader == Reader::Early
    }

    /// The agent did not read the list in time: some look at it only when they are prompted, or when their model wants a tool.
    pub(super) fn note_late(&mut self) {
        self.reader = Reader::Late;
    }

    /// Whether the agent may be prompted with this very offer at once.
    pub(super) fn is_ready_for(&self, offer: &Offer) -> bool {
        !self.holds_prompts() && self.offered == *offer
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
