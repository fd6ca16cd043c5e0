//! A gateway that serves: it looks after what changes, and ends in order.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use gembridge_api::admin::health::Readiness;
use gembridge_api::admin::metrics::{self, names};
use gembridge_api::guard::Guard;
use gembridge_api::openai::OpenAi;
use gembridge_api::server::{Drained, Server, Stop};
use gembridge_core::session::Sessions;
use gembridge_process::Spawner;
use metrics_exporter_prometheus::PrometheusHandle;

use super::agents::Served;
use super::housekeeping::Housekeeping;
use super::notify::Notifier;
use super::reach::Reachable;
use super::signals::{Signals, Told};
use crate::command::Context;
use crate::config::Config;
use crate::exit::{CommandResult, ExitCode};
use crate::keys::FileKeys;

/// How long clients have to hear that their turn was cut.
pub const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often files and agents are looked at. A revoked key's streams end within a few of these.
const LOOK: Duration = Duration::from_secs(1);

pub struct Gateway {
    pub server: Server,
    pub app: Router,
    pub care: Care,
    pub housekeeping: Housekeeping,
    pub sessions: Arc<Sessions>,
    pub spawner: Spawner,
    pub metrics: PrometheusHandle,
}

impl Gateway {
    pub async fn run(self, context: &Context) -> CommandResult {
        let Self { server, app, mut care, housekeeping, sessions, spawner, metrics } = self;
        let mut signals = Signals::new().context("cannot listen to signals")?;
        let notifier = Notifier::new(&context.config.environment);
        let stop = Stop::default();
        let mut serving = pin!(server.serve(app, stop.clone()));
        let mut beating = pin!(notifier.beat());
        let mut upkeep = pin!(metrics::upkeep(metrics));
        let mut cleaning = pin!(housekeeping.keep());
        let mut look = tokio::time::interval(LOOK);
        notifier.ready();
        loop {
            tokio::select! {
                // It ends only when it is told to.
                _ = &mut serving => break,
                () = &mut beating => {}
                () = &mut upkeep => {}
                () = &mut cleaning => {}
                _ = look.tick() => care.look(),
                told = signals.next() => match told {
                    Told::Reload => care.reload(context),
                    Told::Stop => break,
                },
            }
        }
        tracing::info!(seconds = context.config.settings.server.drain.0.as_secs(), "draining");
        care.readiness.drain();
        notifier.stopping();
        stop.drain.cancel();
        let drain = tokio::time::sleep(context.config.settings.server.drain.0);
        let ended = tokio::select! {
            drained = &mut serving => Some(drained),
            () = drain => None,
            () = &mut beating => None,
            () = signals.stop() => return Ok(ExitCode::Cancelled),
        };
        let orderly = async {
            // Turns that are left end here, and their clients are told so.
            sessions.shutdown().await;
            let drained = match ended {
                Some(drained) => drained,
                None => serving.await,
            };
            if let Drained::Cut { connections } = drained {
                tracing::warn!(connections, "connections were cut, since their turns took longer than the drain");
            }
            care.openai.settle().await;
            spawner.shut_down().await;
        };
        tokio::select! {
            () = orderly => Ok(ExitCode::Success),
            () = signals.stop() => Ok(ExitCode::Cancelled),
        }
    }
}

/// What is looked after while the gateway runs.
pub struct Care {
    guard: Arc<Guard>,
    keys: Arc<FileKeys>,
    reachable: Reachable,
    readiness: Readiness,
    openai: Arc<OpenAi>,
    served: Vec<Served>,
    /// Processes that served somebody when they were last looked at, by agent: all of them, those on their way out
    /// aside.
    seen: BTreeMap<String, Vec<u32>>,
}

impl Care {
    pub fn new(
        guard: Arc<Guard>,
        keys: Arc<FileKeys>,
        reachable: Reachable,
        readiness: Readiness,
        openai: Arc<OpenAi>,
        served: Vec<Served>,
    ) -> Self {
        Self { guard, keys, reachable, readiness, openai, served, seen: BTreeMap::new() }
    }

    fn look(&mut self) {
        self.keys.refresh();
        self.reachable.refresh(&self.guard);
        for (agent, line) in self.openai.queues() {
            let waiting = f64::from(u32::try_from(line.waiting).unwrap_or(u32::MAX));
            ::metrics::gauge!(names::QUEUE_DEPTH, "agent" => agent.as_str().to_owned()).set(waiting);
        }
        let mut can_run = false;
        for served in &self.served {
            can_run |= served.driver.pool().retry_after.is_none();
            count_restarts(served, &mut self.seen);
        }
        self.readiness.set_runnable(can_run);
    }

    /// Reads the settings again. What is broken changes nothing.
    fn reload(&mut self, context: &Context) {
        let config = match Config::load(context.sources.clone()) {
            Ok(config) => config,
            Err(error) => {
                tracing::error!(%error, "the settings stay as they were");
                return;
            }
        };
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        self.keys.reload(config.settings.auth.bearer_token.clone());
        self.reachable.reload(&config.settings.server, &self.guard);
        tracing::info!("keys, hosts and origins were read again; everything else takes effect at the next start");
    }
}

/// A process that is gone without having been sent away has ended by itself.
fn count_restarts(served: &Served, seen: &mut BTreeMap<String, Vec<u32>>) {
    let name = served.name.as_str();
    let processes = served.driver.processes();
    let living: Vec<u32> = processes.iter().filter_map(|process| process.pid).collect();
    let before = seen.get(name).map(Vec::as_slice).unwrap_or_default();
    let lost = before.iter().filter(|pid| !living.contains(pid)).count();
    let restarts = ::metrics::counter!(names::AGENT_RESTARTS, "agent" => name.to_owned());
    restarts.increment(lost as u64);
    let staying = processes.iter().filter(|process| !process.condemned).filter_map(|process| process.pid).collect();
    seen.insert(name.to_owned(), staying);
}
