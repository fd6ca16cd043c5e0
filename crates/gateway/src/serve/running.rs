//! A gateway that serves: it looks after what changes, and ends in order.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use gembridge_api::a2a::A2a;
use gembridge_api::acp::Acp;
use gembridge_api::admin::health::Readiness;
use gembridge_api::admin::metrics::{self, names};
use gembridge_api::guard::Guard;
use gembridge_api::guard::rate::{Counted, Rate};
use gembridge_api::responses::Responses;
use gembridge_api::server::{Drained, Server, Stop};
use gembridge_core::exchange::Exchanges;
use gembridge_core::session::Sessions;
use gembridge_process::Spawner;
use gembridge_tools::ToolBridge;
use metrics_exporter_prometheus::PrometheusHandle;

use super::agents::Served;
use super::allowed_origins::AllowedOrigins;
use super::cluster::Member;
use super::housekeeping::Housekeeping;
use super::models;
use super::notify::Notifier;
use super::retention::Retiring;
use super::signals::{Signals, Told};
use super::tap::LineTap;
use super::withdrawal::Withdrawal;
use crate::command::Context;
use crate::config::settings::LimitSettings;
use crate::config::{Config, show};
use crate::exit::{CommandResult, ExitCode};
use crate::keys::{self, FileKeys};
use crate::logging;

/// How long clients have to hear that their turn was cut.
pub const LAST_WORDS: Duration = Duration::from_secs(5);

/// Settings that a hang-up takes over.
const TAKEN_OVER: [&str; 7] = [
    "server.hosts",
    "server.any_extension",
    "auth.bearer_token",
    "limits.requests",
    "limits.window",
    "limits.refused",
    "log.level",
];

/// How often files and agents are looked at. A revoked key's streams end within a few of these.
const LOOK: Duration = Duration::from_secs(1);

pub struct Gateway {
    pub server: Server,
    pub app: Router,
    /// More ports, each with routes of its own.
    pub further: Vec<(Server, Router)>,
    pub acp: Arc<Acp>,
    pub responses: Arc<Responses>,
    pub a2a: Arc<A2a>,
    pub tap: Option<Arc<LineTap>>,
    pub upkeep: Upkeep,
    pub housekeeping: Housekeeping,
    pub retiring: Retiring,
    pub withdrawal: Withdrawal,
    pub sessions: Arc<Sessions>,
    pub tools: ToolBridge,
    pub spawner: Spawner,
    pub metrics: PrometheusHandle,
    /// Where it is one of several gateways.
    pub member: Option<Member>,
}

impl Gateway {
    pub async fn run(self, context: &Context) -> CommandResult {
        let Self {
            server,
            app,
            further,
            acp,
            responses,
            a2a,
            tap,
            mut upkeep,
            housekeeping,
            retiring,
            withdrawal,
            sessions,
            tools,
            spawner,
            metrics,
            member,
        } = self;
        let mut signals = Signals::new().context("cannot listen to signals")?;
        let notifier = Notifier::new(&context.config.environment);
        if let Some(member) = &member {
            member.join(&sessions).await?;
        }
        let stop = Stop::default();
        let mut serving = pin!(serve_all(server, app, further, stop.clone()));
        let mut beating = pin!(notifier.beat());
        let mut measuring = pin!(metrics::upkeep(metrics));
        let mut cleaning = pin!(housekeeping.keep());
        let mut retiring = pin!(retiring.keep());
        let mut withdrawal = pin!(withdrawal.keep());
        let mut membership = pin!(keep_membership(member.as_ref(), &sessions));
        let mut look = tokio::time::interval(LOOK);
        notifier.ready();
        loop {
            tokio::select! {
                // It ends only when it is told to.
                _ = &mut serving => break,
                () = &mut beating => {}
                () = &mut measuring => {}
                () = &mut cleaning => {}
                () = &mut retiring => {}
                () = &mut withdrawal => {}
                () = &mut membership => {}
                _ = look.tick() => upkeep.look(),
                told = signals.next() => match told {
                    Told::Reload => upkeep.reload(context),
                    Told::Stop => break,
                },
            }
        }
        tracing::info!(seconds = context.config.settings.server.drain.0.as_secs(), "draining");
        upkeep.readiness.drain();
        notifier.stopping();
        if let Some(member) = &member {
            member.drain(&sessions).await;
        }
        stop.drain.cancel();
        acp.drain();
        responses.drain();
        let drain = tokio::time::sleep(context.config.settings.server.drain.0);
        let ended = tokio::select! {
            drained = async {
                let drained = (&mut serving).await;
                acp.settle().await;
                responses.settle().await;
                drained
            } => Some(drained),
            () = drain => None,
            () = &mut beating => None,
            () = &mut membership => None,
            () = signals.stop() => return Ok(ExitCode::Cancelled),
        };
        let orderly = async {
            // Turns that are left end here, and their clients are told so.
            sessions.shutdown().await;
            acp.end();
            tools.shutdown().await;
            let drained = match ended {
                Some(drained) => drained,
                None => serving.await,
            };
            if let Drained::Cut { connections } = drained {
                tracing::warn!(connections, "connections were cut, since their turns took longer than the drain");
            }
            acp.settle().await;
            responses.settle().await;
            a2a.settle().await;
            if let Some(tap) = &tap {
                tap.close();
            }
            upkeep.exchanges.settle().await;
            if let Some(member) = &member {
                member.leave().await;
            }
            spawner.shut_down().await;
        };
        tokio::select! {
            () = orderly => Ok(ExitCode::Success),
            () = signals.stop() => Ok(ExitCode::Cancelled),
        }
    }
}

/// For ever; without a cluster there is nothing to keep.
async fn keep_membership(member: Option<&Member>, sessions: &Sessions) {
    match member {
        Some(member) => member.keep(sessions).await,
        None => std::future::pending().await,
    }
}

/// All ports, until all have drained.
async fn serve_all(server: Server, app: Router, mut further: Vec<(Server, Router)>, stop: Stop) -> Drained {
    let Some((next, next_app)) = further.pop() else { return server.serve(app, stop).await };
    let others = Box::pin(serve_all(next, next_app, further, stop.clone()));
    let (one, other) = tokio::join!(server.serve(app, stop), others);
    match (one, other) {
        (Drained::Whole, Drained::Whole) => Drained::Whole,
        (one, other) => Drained::Cut { connections: one.cut() + other.cut() },
    }
}

/// What is looked after while the gateway runs.
pub struct Upkeep {
    guard: Arc<Guard>,
    keys: Arc<FileKeys>,
    reachable: AllowedOrigins,
    readiness: Readiness,
    exchanges: Arc<Exchanges>,
    served: Vec<Served>,
}

impl Upkeep {
    pub fn new(
        guard: Arc<Guard>,
        keys: Arc<FileKeys>,
        reachable: AllowedOrigins,
        readiness: Readiness,
        exchanges: Arc<Exchanges>,
        served: Vec<Served>,
    ) -> Self {
        Self { guard, keys, reachable, readiness, exchanges, served }
    }

    fn look(&mut self) {
        self.keys.refresh();
        self.reachable.refresh(&self.guard);
        for (agent, line) in self.exchanges.sessions().queues() {
            let waiting = f64::from(u32::try_from(line.waiting).unwrap_or(u32::MAX));
            ::metrics::gauge!(names::QUEUE_DEPTH, "agent" => agent.as_str().to_owned()).set(waiting);
        }
        for served in &self.served {
            let restarts = ::metrics::counter!(names::AGENT_RESTARTS, "agent" => served.name.as_str().to_owned());
            restarts.absolute(served.driver.pools().map(|pool| pool.failures).sum());
        }
        // Whoever names no agent gets the first, which is kept warm for the operator.
        let default = self.served.first().and_then(|served| served.driver.pools().next());
        self.readiness.set_runnable(default.is_some_and(|pool| pool.retry_after.is_none()));
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
        let token = config.settings.auth.bearer_token.clone();
        match keys::weak_token(token.as_ref()) {
            Some(weak) if self.reachable.listens_to_others() => {
                tracing::error!("{weak}; others can reach this address, so the token stays as it was");
                self.keys.reread();
            }
            weak => {
                weak.inspect(|weak| tracing::warn!("{weak}"));
                self.keys.reload(token);
            }
        }
        self.reachable.reload(&config.settings.server, &self.guard);
        let limits = &config.settings.limits;
        let [requests, failures] = rates(limits);
        self.guard.set_rates(requests, counted(limits), failures);
        for served in &self.served {
            served.openings.set_rate(requests);
        }
        self.exchanges.catalog().set_mapped(models::mapping(&config.settings));
        logging::set_level(config.settings.log.level.unwrap_or(super::LOG_LEVEL));
        tracing::info!("keys, hosts, origins, rate limits, names of models and the level of the log were read again");
        let waiting = show::differences(&context.config, &config);
        let waiting: Vec<_> = waiting.into_iter().filter(|key| !is_taken_over(key)).collect();
        if !waiting.is_empty() {
            tracing::warn!("changed, and in effect only after a restart: `{}`", waiting.join("`, `"));
        }
    }
}

fn is_taken_over(key: &str) -> bool {
    TAKEN_OVER.contains(&key) || key.starts_with("models.")
}

/// How often a key may ask, and a client address without a good one.
pub fn rates(limits: &LimitSettings) -> [Rate; 2] {
    [limits.requests(), limits.refused.0].map(|requests| Rate { requests, window: limits.window.0 })
}

/// Whose requests are counted. A limit that the operator set holds for everybody.
pub fn counted(limits: &LimitSettings) -> Counted {
    match limits.requests {
        Some(_) => Counted::Everybody,
        None => Counted::OthersThanLocalOperators,
    }
}
