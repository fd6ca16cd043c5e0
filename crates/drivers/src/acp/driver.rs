//! The driver: one configured agent, its warm spare, and the processes that serve somebody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{Driver, Opened, SessionSpec};
use gembridge_core::model::{AgentFacts, Failure, FailureKind, SessionFacts};
use gembridge_process::{Pool, PoolConfig, PoolError, PoolStatus};
use tokio::task::JoinSet;

use super::launch::Maker;
use super::open;
use super::process::{AgentProcess, Lease};
use super::single_flight::SingleFlight;
use crate::setup::{DriverSetup, ManagedDriver, ProcessStatus, Spares};

/// How often a process is looked at: is it too large, or of no use any more?
const INSPECTION: Duration = Duration::from_secs(15);
/// A process that serves nobody is kept this long for its principal's next session.
const UNUSED: Duration = Duration::from_mins(10);
/// A session that was just opened has its prompt on the way: the next one is made ahead when that is through.
const AFTER_YOU: Duration = Duration::from_millis(50);

pub struct AcpDriver {
    inner: Arc<Inner>,
    /// One task per process that serves somebody: it sees the process end, and why.
    keepers: Mutex<JoinSet<()>>,
}

struct Inner {
    setup: Arc<DriverSetup>,
    pool: Pool<Maker>,
    processes: Mutex<Vec<Arc<AgentProcess>>>,
    facts: Mutex<Option<AgentFacts>>,
    /// What the newest session reported.
    offers: Mutex<Option<Arc<SessionFacts>>>,
    single_flight: SingleFlight,
}

impl AcpDriver {
    /// Starts to warm the spares at once.
    pub fn new(setup: DriverSetup, spares: Spares) -> Self {
        let setup = Arc::new(setup);
        let start = Duration::from_secs(setup.profile.limits.start_seconds);
        let config = PoolConfig {
            spares: match spares {
                Spares::OfTheProfile => setup.profile.limits.spare as usize,
                Spares::None => 0,
            },
            deadline: start + Duration::from_secs(1),
            restart: setup.restart,
            max_waiting: setup.waiting,
            ..PoolConfig::default()
        };
        let pool = Pool::new(Maker::new(Arc::clone(&setup)), config);
        let inner = Inner {
            setup,
            pool,
            processes: Mutex::default(),
            facts: Mutex::default(),
            offers: Mutex::default(),
            single_flight: SingleFlight::default(),
        };
        Self { inner: Arc::new(inner), keepers: Mutex::default() }
    }

    async fn open_session(&self, spec: SessionSpec) -> Result<Opened, Failure> {
        let lease = match self.place_in_use(&spec) {
            Some(place) => place,
            // There is nothing to share: each may as well start at the same time as the others.
            None if self.inner.setup.profile.limits.sessions_per_process == 1 => self.place_in_spare(&spec).await?,
            None => {
                let in_use = || self.place_in_use(&spec);
                self.inner.single_flight.run(&spec.principal, in_use, self.place_in_spare(&spec)).await?
            }
        };
        let process = Arc::clone(lease.process());
        let opened = open::session(&self.inner.setup, lease, spec).await?;
        *lock(&self.inner.offers) = Some(Arc::new(opened.facts.clone()));
        self.premake(&process);
        Ok(opened)
    }

    /// A place in a process that serves this principal already.
    fn place_in_use(&self, spec: &SessionSpec) -> Option<Lease> {
        lock(&self.inner.processes).iter().find_map(|process| process.lease_for(&spec.principal))
    }

    async fn place_in_spare(&self, spec: &SessionSpec) -> Result<Lease, Failure> {
        let asked = Instant::now();
        let process = self.inner.pool.take().await.map_err(|error| self.inner.unavailable(error, asked))?;
        *lock(&self.inner.facts) = Some(process.facts().clone());
        process.bind(&spec.principal);
        let Some(lease) = process.lease_for(&spec.principal) else {
            let agent = &self.inner.setup.profile.name;
            return Err(Failure::new(FailureKind::Crashed, format!("agent `{agent}` ended as it was handed out")));
        };
        lock(&self.inner.processes).push(Arc::clone(&process));
        let inner = Arc::clone(&self.inner);
        let mut keepers = lock(&self.keepers);
        while keepers.try_join_next().is_some() {}
        keepers.spawn(async move { inner.keep(process).await });
        Ok(lease)
    }

    /// Opens the next session ahead of time, where the profile says so.
    fn premake(&self, process: &Arc<AgentProcess>) {
        let setup = &self.inner.setup;
        let Some(making) = process.begin_premade(setup.profile.limits.premade_sessions) else { return };
        let setup = Arc::clone(setup);
        lock(&self.keepers).spawn(async move {
            tokio::time::sleep(AFTER_YOU).await;
            let Some(process) = making.process() else { return };
            if let Err(failure) = open::ahead(&setup, process).await {
                tracing::debug!(%failure, "no session could be opened ahead of time");
            }
        });
    }
}

impl Driver for AcpDriver {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(self.open_session(spec))
    }

    fn facts(&self) -> Option<AgentFacts> {
        lock(&self.inner.facts).clone()
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        lock(&self.inner.offers).clone()
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.inner.pool.shut_down().await;
            let processes = std::mem::take(&mut *lock(&self.inner.processes));
            let mut stopping = JoinSet::new();
            for process in processes {
                process.condemn();
                stopping.spawn(async move { process.connection().stop().await });
            }
            while stopping.join_next().await.is_some() {}
            let mut keepers = std::mem::take(&mut *lock(&self.keepers));
            while keepers.join_next().await.is_some() {}
        })
    }
}

impl ManagedDriver for AcpDriver {
    fn processes(&self) -> Vec<ProcessStatus> {
        let status = |process: &Arc<AgentProcess>| ProcessStatus {
            pid: process.connection().pid(),
            sessions: process.live(),
            condemned: process.is_condemned(),
        };
        lock(&self.inner.processes).iter().map(status).collect()
    }

    fn pools(&self) -> Vec<PoolStatus> {
        vec![self.inner.pool.status()]
    }
}

impl Inner {
    /// Watches one process until it ends: by itself, or because it has served long enough.
    async fn keep(&self, process: Arc<AgentProcess>) {
        let mut unused = Duration::ZERO;
        loop {
            tokio::select! {
                () = process.connection().gone() => break,
                () = process.vacated() => {
                    if is_of_no_use(&process, Duration::ZERO) {
                        process.connection().stop().await;
                        break;
                    }
                }
                () = tokio::time::sleep(INSPECTION) => {
                    unused = if process.live() == 0 { unused + INSPECTION } else { Duration::ZERO };
                    let fate = self.inspect(&process, unused).await;
                    if fate == Fate::End {
                        process.condemn();
                        process.connection().stop().await;
                        break;
                    }
                }
            }
        }
        lock(&self.processes).retain(|kept| !Arc::ptr_eq(kept, &process));
        if !process.is_condemned() {
            let how = process.connection().last_word();
            tracing::info!(agent = %self.setup.profile.name, %how, "the agent ended by itself");
            self.pool.report_crash(how).await;
        }
    }

    async fn inspect(&self, process: &AgentProcess, unused: Duration) -> Fate {
        let limit = process.limits().recycle_above_mb << 20;
        let size = process.connection().memory().await.map_or(0, |memory| memory.pss);
        if size > limit {
            process.condemn();
        }
        // Far too large: its idle sessions go with it, a running turn never does.
        let too_large = size > 2 * limit && process.connection().table().running_turns() == 0;
        if is_of_no_use(process, unused) || too_large { Fate::End } else { Fate::Stay }
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.setup.profile.limits.start_seconds)
    }

    /// `asked` is when somebody began to wait.
    fn unavailable(&self, error: PoolError<Failure>, asked: Instant) -> Failure {
        use gembridge_process::pool::Failure as Why;

        let agent = &self.setup.profile.name;
        let unavailable = |retry_after, text: String| Failure::new(FailureKind::Unavailable { retry_after }, text);
        match error {
            // The start that others had waited for took too long; whoever came at its end did not wait.
            PoolError::Failed(Why::Make(failure))
                if failure.kind == FailureKind::TimedOut && asked.elapsed() < self.patience() / 2 =>
            {
                let text = format!("{failure}; it is started again, try again in a few seconds");
                unavailable(Duration::from_secs(5), text)
            }
            PoolError::Failed(Why::Make(failure)) => (*failure).clone(),
            // Waiting does not log anybody in.
            PoolError::CircuitOpen { last: Why::Make(failure), .. } if failure.kind == FailureKind::NeedsLogin => {
                (*failure).clone()
            }
            PoolError::CircuitOpen { retry_after, last } => {
                let seconds = retry_after.as_secs_f32().ceil();
                let text = format!("agent `{agent}` keeps failing and is tried again in {seconds} s; last: {last}");
                unavailable(retry_after, text)
            }
            PoolError::Failed(why) => Failure::new(FailureKind::Crashed, format!("agent `{agent}`: {why}")),
            PoolError::Full { waiting } => {
                let text = format!("{waiting} sessions wait for agent `{agent}` already; try again in a moment");
                unavailable(Duration::from_secs(2), text)
            }
            PoolError::Deadline(after) => {
                let seconds = after.as_secs();
                Failure::new(FailureKind::TimedOut, format!("agent `{agent}` was not ready within {seconds} s"))
            }
            PoolError::ShutDown => Failure::new(FailureKind::ShuttingDown, "the gateway is going down"),
        }
    }
}

/// It serves nobody, and will not again or has not for long.
fn is_of_no_use(process: &AgentProcess, unused: Duration) -> bool {
    process.live() == 0 && (process.is_condemned() || unused >= UNUSED)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stay,
    End,
}

/// Never held across an await; a panic while it was held left nothing half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
