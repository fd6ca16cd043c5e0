//! The agents' own sessions over HTTP: the same files, the same index and the same way to go on as `gembridge sessions`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gembridge_api::admin::agent_sessions::{
    AgentSession, AgentSessions, Found, FoundSession, GoneOn, Indexing, MessagePage, Reading, SessionName, SessionPage,
};
use gembridge_api::problem::{Kind, Problem};
use gembridge_core::model::{AgentName, Principal};
use gembridge_core::session::Sessions;
use gembridge_transcripts::{Agent, Index, Located, Piece, Query, ReadOptions, Scan, Wanted, read, summarise};
use gembridge_unified::Originals;
use gembridge_unified::tool_names::ToolNames;
use tokio::sync::{Semaphore, watch};

use super::agents::Served;
use crate::app::import::Import;
use crate::command::Context;
use crate::command::sessions::bounded::Bounded;
use crate::command::sessions::scan_machine;
use crate::config::folders::ensure_private;
use crate::config::trust::Trust;
use crate::config::{Environment, Folders};

/// Calls that read files at once; others wait for them.
const AT_ONCE: usize = 2;
/// How long a search waits for sessions that have changed to be indexed.
const INDEXED_WITHIN: Duration = Duration::from_secs(5);

pub struct AgentFiles {
    environment: Environment,
    folders: Folders,
    /// The agents that are served, the default one first: name, title, and the name of their profile.
    served: Vec<(AgentName, String, String)>,
    sessions: Arc<Sessions>,
    permits: Arc<Semaphore>,
    /// How far the indexing is that began last; `None` when it is over.
    indexing: Mutex<watch::Receiver<Option<Indexing>>>,
}

impl AgentFiles {
    pub fn new(context: &Context, served: &[Served], sessions: &Arc<Sessions>) -> Self {
        let agent = |served: &Served| {
            let profile = &served.agent.profile;
            (served.name.clone(), profile.title.clone(), profile.name.clone())
        };
        Self {
            environment: context.config.environment.clone(),
            folders: context.config.folders.clone(),
            served: served.iter().map(agent).collect(),
            sessions: Arc::clone(sessions),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            indexing: Mutex::new(watch::channel(None).1),
        }
    }

    fn scan(&self) -> Result<Scan, Problem> {
        scan_machine(&self.environment, &self.folders, None).map_err(|error| {
            tracing::error!(error = %error.error, "the sessions of this machine cannot be listed");
            Problem::new(Kind::Internal, "the sessions of this machine cannot be listed now; the log says why")
        })
    }

    /// Reads files on a thread for that, a few callers at a time.
    fn reading<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Reading<T> {
        Box::pin(async move {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let done = tokio::task::spawn_blocking(move || {
                let result = work(&self);
                drop(permit);
                result
            });
            done.await.unwrap_or_else(|error| {
                tracing::error!(%error, "reading sessions of agents failed");
                Err(Problem::new(Kind::Internal, "the sessions cannot be read now; the log says why"))
            })
        })
    }

    fn page(&self, from: usize, limit: usize) -> Result<SessionPage, Problem> {
        let scan = self.scan()?;
        let listed = listed(&scan);
        let total = listed.len();
        let sessions: Vec<_> = listed.into_iter().skip(from).take(limit).map(summary).collect();
        let end = from.saturating_add(sessions.len());
        Ok(SessionPage { next: (end < total && !sessions.is_empty()).then_some(end), sessions, total })
    }

    fn message_page(&self, name: &SessionName, from: usize, limit: usize) -> Result<MessagePage, Problem> {
        let scan = self.scan()?;
        let session = found(&scan, name)?;
        let mut shown = Bounded::new(from, limit);
        let mut damaged = 0;
        let facts = read(session, plain(), &mut |piece| match piece {
            Piece::Message(message) => shown.add(*message),
            Piece::Damage(_) => damaged += 1,
        });
        let (messages, next) = shown.finish();
        Ok(MessagePage {
            agent: name.agent.clone(),
            id: name.id.clone(),
            title: facts.title,
            project: facts.project.as_deref().map(shown_path),
            messages,
            next,
            damaged,
        })
    }

    /// Begins to index what has changed, unless that is under way.
    fn index(self: &Arc<Self>) -> watch::Receiver<Option<Indexing>> {
        let mut indexing = self.indexing.lock().unwrap_or_else(PoisonError::into_inner);
        // An indexing that ended, or whose thread is gone, is over.
        if indexing.borrow().is_some() && indexing.has_changed().is_ok() {
            return indexing.clone();
        }
        let (progress, receiver) = watch::channel(Some(Indexing { done: 0, total: 0 }));
        *indexing = receiver.clone();
        let files = Arc::clone(self);
        // Not waited for at the end: each session is one transaction, and what is missing is indexed the next time.
        drop(tokio::task::spawn_blocking(move || {
            if let Err(problem) = files.update_index(&progress) {
                tracing::warn!(%problem, "the index of sessions is not up to date");
            }
            progress.send_replace(None);
        }));
        receiver
    }

    fn update_index(&self, progress: &watch::Sender<Option<Indexing>>) -> Result<(), Problem> {
        let scan = self.scan()?;
        let mut index = self.open_index()?;
        let damages = index.update(&scan.sessions, &mut |done, total| {
            progress.send_replace(Some(Indexing { done, total }));
        });
        for damage in damages.map_err(|error| unusable(&error))? {
            tracing::debug!("{damage}");
        }
        Ok(())
    }

    fn open_index(&self) -> Result<Index, Problem> {
        ensure_private(&self.folders.cache)
            .map_err(|error| unusable(&error))
            .and_then(|()| Index::open(self.folders.cache.join("sessions.db")).map_err(|error| unusable(&error)))
    }

    fn hits(&self, query: &Query, limit: usize) -> Result<Vec<FoundSession>, Problem> {
        let hits = self.open_index()?.search(query, &Wanted::default(), limit).map_err(|error| unusable(&error))?;
        let hit = |hit: gembridge_transcripts::Hit| FoundSession {
            agent: hit.agent.to_owned(),
            id: hit.parent.unwrap_or(hit.id),
            title: hit.title,
            project: hit.project.as_deref().map(shown_path),
            updated: hit.updated,
            snippet: hit.snippet,
        };
        Ok(hits.into_iter().map(hit).collect())
    }

    fn import(&self, name: &SessionName) -> Result<Importing, Problem> {
        let scan = self.scan()?;
        let session = found(&scan, name)?;
        if session.parent.is_some() {
            let message = "it is the session of a subagent; go on with the one that started it";
            return Err(Problem::new(Kind::Invalid, message));
        }
        if let Some(own) = scan.sessions.iter().find(|own| own.written_as.as_deref() == Some(&*session.id)) {
            return Ok(Importing::Known { id: own.id.clone(), workspace: own.project.clone() });
        }
        let workspace = session.project.as_deref().and_then(|folder| self.trusted(folder));
        let writer = self.served.iter().find(|(_, _, profile)| profile == session.agent.name());
        let (agent, title, _) = writer.or_else(|| self.served.first()).ok_or_else(|| {
            Problem::new(Kind::Invalid, "no agent is served that could go on; `gembridge doctor` says why")
        })?;
        let loads = if writer.is_some() && workspace.is_some() { Some(session.id.as_str().into()) } else { None };
        let mut notes = Vec::new();
        if writer.is_none() {
            notes.push(format!("{title} is told what was said, since `{}` is not served here.", session.agent.name()));
        }
        if workspace.is_none() {
            notes.push(match &session.project {
                Some(folder) => format!(
                    "It talks without tools, since `{0}` is not trusted; `gembridge trust add {0}` lets it work there.",
                    folder.display()
                ),
                None => "It talks without tools, since the session names no folder.".to_owned(),
            });
        }
        Ok(Importing::New {
            import: Box::new(Import::of(session, loads, workspace).0),
            agent: agent.clone(),
            note: (!notes.is_empty()).then(|| notes.join(" ")),
        })
    }

    fn trusted(&self, folder: &Path) -> Option<PathBuf> {
        let real = folder.canonicalize().ok().filter(|real| real.is_dir())?;
        let trust = Trust::load(&self.folders.config).ok()?;
        trust.covers(&real).then_some(real)
    }
}

/// How a session is gone on with.
enum Importing {
    /// It is a session of the gateway already.
    Known {
        id: String,
        workspace: Option<PathBuf>,
    },
    New {
        import: Box<Import>,
        agent: AgentName,
        note: Option<String>,
    },
}

impl AgentSessions for AgentFiles {
    fn list(self: Arc<Self>, from: usize, limit: usize) -> Reading<SessionPage> {
        self.reading(move |files| files.page(from, limit))
    }

    fn messages(self: Arc<Self>, session: SessionName, from: usize, limit: usize) -> Reading<MessagePage> {
        self.reading(move |files| files.message_page(&session, from, limit))
    }

    fn search(self: Arc<Self>, words: String, limit: usize) -> Reading<Found> {
        Box::pin(async move {
            let query = Query::parse(&words).map_err(|error| Problem::invalid("q", error.to_string()))?;
            let mut progress = self.index();
            // Late or not, what is indexed is searched.
            let is_late = tokio::time::timeout(INDEXED_WITHIN, progress.wait_for(Option::is_none)).await.is_err();
            let indexing = if is_late { *progress.borrow() } else { None };
            let sessions = self.reading(move |files| files.hits(&query, limit)).await?;
            Ok(Found { sessions, indexing })
        })
    }

    fn go_on(self: Arc<Self>, session: SessionName, principal: Principal) -> Reading<GoneOn> {
        Box::pin(async move {
            let name = session.clone();
            let importing = Arc::clone(&self).reading(move |files| files.import(&name)).await?;
            let (import, agent, note) = match importing {
                Importing::New { import, agent, note } => (import, agent, note),
                Importing::Known { id, workspace } => {
                    let workspace = workspace.as_deref().map(shown_path);
                    return Ok(GoneOn { session_id: id, agent: session.agent, workspace, note: None });
                }
            };
            let logs = self.sessions.logs();
            let record = import.store(agent.as_str(), principal, &*logs).await.map_err(|error| {
                tracing::error!(%error, "a session of an agent cannot be stored");
                Problem::new(Kind::Internal, "the session cannot be stored now; the log says why")
            })?;
            tracing::info!(
                target: "gembridge::audit", session = %record.id, from = session.agent, agent = agent.as_str(),
                "a session of an agent became one of the gateway"
            );
            let workspace = record.workspace.as_deref().map(shown_path);
            Ok(GoneOn { session_id: record.id.to_string(), agent: agent.as_str().to_owned(), workspace, note })
        })
    }
}

/// The sessions of agents. One that the gateway had its agent write is in the gateway's own list.
fn listed(scan: &Scan) -> Vec<&Located> {
    let own: std::collections::HashSet<_> =
        scan.sessions.iter().filter_map(|session| session.written_as.as_deref()).collect();
    let is_listed = |session: &&Located| {
        session.agent != Agent::Gembridge && session.parent.is_none() && !own.contains(session.id.as_str())
    };
    scan.sessions.iter().filter(is_listed).collect()
}

/// By the whole name only: an id is looked for among those that were found, and is never a path.
fn found<'a>(scan: &'a Scan, name: &SessionName) -> Result<&'a Located, Problem> {
    let is_meant = |session: &&Located| {
        session.agent != Agent::Gembridge && session.agent.name() == name.agent && session.id == name.id
    };
    scan.sessions.iter().find(is_meant).ok_or_else(|| {
        Problem::new(Kind::NotFound, "there is no such session; `GET /admin/agent-sessions` lists those that there are")
    })
}

fn summary(session: &Located) -> AgentSession {
    let summary = summarise(session);
    AgentSession {
        agent: session.agent.name().to_owned(),
        id: session.id.clone(),
        title: summary.title,
        model: summary.facts.model,
        project: summary.facts.project.as_deref().map(shown_path),
        updated: summary.facts.updated.unwrap_or(session.modified),
        turns: summary.turns,
        tokens: summary.facts.usage.total(),
    }
}

fn plain() -> ReadOptions {
    ReadOptions { originals: Originals::Leave, tool_names: ToolNames::Extended }
}

fn shown_path(path: &Path) -> String {
    path.display().to_string()
}

fn unusable(error: &dyn std::fmt::Display) -> Problem {
    tracing::error!(%error, "the index of sessions cannot be used");
    Problem::new(Kind::Internal, "the index of sessions cannot be used now; the log says why")
}
