//! One session of an adapter: where it works, what its agent was told to be, and its end.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use gembridge_core::driver::{Change, SlashCommands};
use gembridge_core::error::Error as CoreError;
use gembridge_core::exchange::NamedSession;
use gembridge_core::model::{SessionFacts, SessionId, Timestamp};
use gembridge_core::session::{NewSession, SessionHandle, Viewer};
use gembridge_core::store::SessionRecord;
use gembridge_core::tool_host::Offer;
use gembridge_drivers::workspace::InnerDir;
use tokio::time::Instant;

use crate::builder::AdapterTerms;
use crate::engine::{Engine, owner};
use crate::error::{ErrorKind, EvaluateError};
use crate::session::SessionState;

/// A session. Dropping it closes it, and removes its folder where it has one of its own.
pub(crate) struct Conversation {
    pub(crate) engine: Arc<Engine>,
    pub(crate) id: SessionId,
    workspace: PathBuf,
    endpoint: Mutex<Endpoint>,
    /// By what the workspace is known, as it was when the session began.
    fingerprint: Option<String>,
    /// What the agent is to go on with, until it has tried.
    earlier: Mutex<Option<Earlier>>,
    folder: Option<InnerDir>,
}

/// A session of before.
enum Earlier {
    /// The agent's own name of it, which it is asked to load.
    Loadable(String),
    /// The folder in which it worked is another one now, so that the agent is not asked.
    InAnotherFolder(String),
}

/// Whether the agent that is there can be offered tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Open,
    Missing,
}

/// What an agent cannot be given later, it must be started with.
const RESTARTED: &str = "the session began without tools or types, so the agent was begun anew for them and told what was \
                         said; ask for them from the first prompt on";

impl Engine {
    /// A new session, or one of before. Its agent comes with the first prompt.
    pub(crate) async fn converse(
        self: &Arc<Self>,
        earlier: Option<&SessionState>,
    ) -> Result<Arc<Conversation>, EvaluateError> {
        if let Some(gone) = earlier.map(|state| &state.workspace).filter(|workspace| !workspace.is_dir()) {
            let message = format!("the folder `{}`, in which the session worked, is gone", gone.display());
            return Err(EvaluateError::request(ErrorKind::Invalid, message));
        }
        let (workspace, folder) = match (earlier.map(|state| &state.workspace), &self.config.workspace) {
            (Some(workspace), _) | (None, Some(workspace)) => (workspace.clone(), None),
            (None, None) => {
                let folder = InnerDir::create(self.folder.path(), "workspace").map_err(|error| {
                    EvaluateError::request(ErrorKind::Internal, format!("cannot make a folder to work in: {error}"))
                })?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let fingerprint = fingerprint(&workspace);
        let known =
            |state: &SessionState| state.workspace_fingerprint.is_none() || state.workspace_fingerprint == fingerprint;
        let earlier = earlier.map(|state| {
            let session = state.session_id.clone();
            let earlier = if known(state) { Earlier::Loadable(session) } else { Earlier::InAnotherFolder(session) };
            (earlier, state)
        });
        let id = match &earlier {
            Some((Earlier::Loadable(_), state)) => self.bring_back(state).await?,
            Some((Earlier::InAnotherFolder(_), _)) | None => {
                self.sessions.create(self.new_session(workspace.clone())).await?.id()
            }
        };
        let endpoint = Mutex::new(Endpoint::Missing);
        let earlier = Mutex::new(earlier.map(|(earlier, _)| earlier));
        Ok(Arc::new(Conversation { engine: Arc::clone(self), id, workspace, endpoint, fingerprint, earlier, folder }))
    }

    fn new_session(&self, workspace: PathBuf) -> NewSession {
        NewSession {
            principal: owner(),
            agent: self.agent.clone(),
            workspace: Some(workspace),
            // Both are set once the agent has said what it has.
            model: None,
            mode: None,
            tool_servers: self.config.terms.tool_servers.clone(),
            // Prompts of a program are put together from what others wrote.
            slash: SlashCommands::AsText,
        }
    }

    /// Puts a session of before into the store, from where it is brought back as after every restart.
    async fn bring_back(&self, state: &SessionState) -> Result<SessionId, EvaluateError> {
        let now = Timestamp::now();
        let record = SessionRecord {
            id: SessionId::new(),
            principal: owner(),
            agent: self.agent.clone(),
            agent_session: Some(state.session_id.as_str().into()),
            workspace: Some(state.workspace.clone()),
            model: None,
            mode: None,
            title: None,
            created: now,
            updated: Timestamp(state.last_used_ms),
        };
        let id = record.id;
        drop(self.store.create(record).await.map_err(CoreError::from)?);
        Ok(id)
    }
}

impl Conversation {
    pub(crate) fn terms(&self) -> &AdapterTerms {
        &self.engine.config.terms
    }

    pub(crate) async fn named(&self) -> Result<NamedSession, EvaluateError> {
        Ok(self.engine.exchanges.named_session(self.id, &Viewer::Principal(owner())).await?)
    }

    pub(crate) async fn handle(&self) -> Result<SessionHandle, EvaluateError> {
        Ok(self.named().await?.handle)
    }

    /// Makes sure that the agent is there, can be offered this, and is what it shall be. Gives what went not as asked.
    pub(crate) async fn prepare(&self, offer: &Offer, deadline: Option<Instant>) -> Result<Vec<String>, EvaluateError> {
        let handle = self.handle().await?;
        let is_missing = *self.endpoint() == Endpoint::Missing;
        let mut warnings = Vec::new();
        if handle.has_agent() {
            if offer.is_empty() || !is_missing {
                return Ok(warnings);
            }
            // It was opened without an endpoint for tools.
            handle.release_agent().await?;
            warnings.push(RESTARTED.to_owned());
        }
        let opening = self.engine.openings.acquire();
        let opening = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, opening).await.map_err(|_| expired())?,
            None => opening.await,
        };
        let facts = self.start(&handle, offer, deadline).await?;
        drop(opening);
        *self.endpoint() = if offer.is_empty() { Endpoint::Missing } else { Endpoint::Open };
        warnings.extend(self.memory_lost(&handle).await?);
        self.set_model(&handle, &facts, &mut warnings).await?;
        self.set_mode(&handle, &facts, &mut warnings).await;
        Ok(warnings)
    }

    /// The start of a process, the handshake and the opening of the session, in the time that all of it may take.
    async fn start(
        &self,
        handle: &SessionHandle,
        offer: &Offer,
        deadline: Option<Instant>,
    ) -> Result<SessionFacts, EvaluateError> {
        let startup = self.engine.config.startup;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = left.map_or(startup, |left| left.min(startup));
        if let Ok(woken) = tokio::time::timeout(time, handle.wake_offering(offer.clone())).await {
            return woken.map_err(|error| started_badly(error.into()));
        }
        let (kind, way_out) = if time < startup {
            (ErrorKind::Deadline, "give the prompt a later deadline")
        } else {
            (ErrorKind::Start, "see whether it starts by hand, or set `startup_timeout`")
        };
        let (agent, seconds) = (&self.engine.agent, time.as_secs_f32());
        let message = format!("agent `{agent}` did not finish its handshake within {seconds} s; {way_out}");
        Err(EvaluateError::request(kind, message))
    }

    /// Whether the agent could not load the session that it was asked to go on with. Said once.
    async fn memory_lost(&self, handle: &SessionHandle) -> Result<Option<String>, EvaluateError> {
        let earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner).take();
        let why = match earlier {
            None => return Ok(None),
            Some(Earlier::InAnotherFolder(session)) => {
                let folder = self.workspace.display();
                format!("`{folder}` is not the folder any more in which the session `{session}` worked")
            }
            Some(Earlier::Loadable(session)) => {
                if handle.record().await?.agent_session.as_deref() == Some(session.as_str()) {
                    return Ok(None);
                }
                format!("the agent could not load its session `{session}`")
            }
        };
        Ok(Some(format!("{why}; it begins anew and remembers nothing")))
    }

    async fn set_model(
        &self,
        handle: &SessionHandle,
        facts: &SessionFacts,
        warnings: &mut Vec<String>,
    ) -> Result<(), EvaluateError> {
        let Some(model) = &self.terms().model else { return Ok(()) };
        let listed = facts.models.iter().map(|model| &*model.id);
        let known = self.engine.config.profile.model.known.iter().map(String::as_str);
        let is_known = facts.models.is_empty() || listed.clone().chain(known).any(|known| known == model);
        if !is_known {
            let agent = &self.engine.agent;
            let models = listed.collect::<Vec<_>>().join("`, `");
            let message = format!("agent `{agent}` does not have the model `{model}`; it has `{models}`");
            return Err(EvaluateError::request(ErrorKind::UnknownModel, message));
        }
        if facts.model.as_deref() != Some(model)
            && let Err(error) = handle.change(Change::Model(model.as_str().into())).await
        {
            warnings.push(format!("the model could not be set to `{model}`: {error}; the agent goes on with its own"));
        }
        Ok(())
    }

    async fn set_mode(&self, handle: &SessionHandle, facts: &SessionFacts, warnings: &mut Vec<String>) {
        let Some(mode) = &self.terms().mode else { return };
        if facts.mode.as_deref() != Some(mode)
            && let Err(error) = handle.change(Change::Mode(mode.as_str().into())).await
        {
            warnings.push(format!("the mode could not be set to `{mode}`: {error}; the agent goes on with its own"));
        }
    }

    /// By what the session can be found again. `None` before the agent has one.
    pub(crate) async fn state(&self) -> Result<Option<SessionState>, EvaluateError> {
        let record = self.handle().await?.record().await?;
        Ok(record.agent_session.map(|session| SessionState {
            session_id: session.to_string(),
            workspace: self.workspace.clone(),
            workspace_fingerprint: self.fingerprint.clone(),
            last_used_ms: record.updated.0,
        }))
    }

    /// Never held across an await.
    fn endpoint(&self) -> std::sync::MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which folder of this name it is: one that is removed and made again is another.
fn fingerprint(workspace: &Path) -> Option<String> {
    let folder = workspace.metadata().ok()?;
    let born = folder.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Some(format!("{:x}-{:x}-{:x}", folder.dev(), folder.ino(), born.as_nanos()))
}

fn expired() -> EvaluateError {
    let message = "the deadline passed while others were being started; give the prompt a later deadline";
    EvaluateError::request(ErrorKind::Deadline, message)
}

/// Whatever kept an agent from starting is a matter of its start, unless it says more.
fn started_badly(error: EvaluateError) -> EvaluateError {
    match error.kind {
        ErrorKind::Crashed | ErrorKind::Deadline => EvaluateError { kind: ErrorKind::Start, ..error },
        _ => error,
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let (engine, id, folder) = (Arc::clone(&self.engine), self.id, self.folder.take());
        let runtime = engine.runtime.clone();
        let tasks = engine.tasks.clone();
        let closing = async move {
            if let Ok(handle) = engine.sessions.get(id, &Viewer::Principal(owner())).await
                && let Err(error) = handle.close().await
            {
                tracing::debug!(session = %id, %error, "a session did not close");
            }
            if let Err(error) = engine.store.delete(id).await {
                tracing::debug!(session = %id, %error, "a session was gone before");
            }
            drop(folder);
        };
        tasks.spawn_on(closing, &runtime);
    }
}
