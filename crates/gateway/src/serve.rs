//! `gembridge serve`: the frontends, the agents and the sessions, wired together until the gateway is stopped.

mod a2a;
mod acp;
mod address;
mod agent_sessions;
mod agents;
mod audit;
mod banner;
mod cluster;
mod folder_drivers;
mod housekeeping;
mod idle;
mod listener;
mod models;
mod notify;
mod openings;
mod operator;
mod allowed_origins;
mod retention;
mod running;
mod session_cap;
mod shared_lists;
mod signals;
mod tap;
mod tenant_driver;
mod tool_schemas;
mod tools;
mod withdrawal;
mod workspace_files;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use gembridge_api::a2a as a2a_api;
use gembridge_api::acp::{self as acp_api, Acp};
use gembridge_api::admin::health::{self, Readiness};
use gembridge_api::admin::metrics;
use gembridge_api::dialect::{DialectConfig, Dialects};
use gembridge_api::docs;
use gembridge_api::frontend::Frontend;
use gembridge_api::guard::body::BodyLimits;
use gembridge_api::guard::{Guard, GuardConfig};
use gembridge_api::messages::{self, Messages};
use gembridge_api::responses::{self, Responses};
use gembridge_api::routes;
use gembridge_api::server::{Connections, Deadlines, Server, ServerConfig};
use gembridge_api::ui;
use gembridge_api::{ollama, openai};
use gembridge_core::exchange::{Catalog, CatalogConfig, ExchangeConfig, Exchanges, UnknownModels};
use gembridge_core::session::{Sessions, SessionsConfig};
use gembridge_core::store::StoreError;
use gembridge_process::{GuardProgram, Spawner};
use gembridge_store::DiskStore;
use gembridge_tools::{SettlingToolHost, ToolBridge};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::agents::{Agent, Chosen};
use crate::cluster::Settled;
use crate::command::Context;
use crate::config::folders::ensure_private;
use crate::config::settings::{Level, ServerSettings, Settings};
use crate::config::value::HostName;
use crate::config::{Key, Source};
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::keys::{self, FileKeys, KeyFile, KeyLimits, StoredRank};
use crate::{hardening, local_address, local_secret, stale_cleanup, terminal};
use agent_sessions::AgentFiles;
use agents::{Agents, Served};
use allowed_origins::AllowedOrigins;
use banner::{Banner, Shown};
use cluster::Member;
use housekeeping::Housekeeping;
use operator::{Operator, Parts};
use retention::Retiring;
use running::{Gateway, Upkeep};
use session_cap::Allotment;
use withdrawal::Withdrawal;
use workspace_files::Workspaces;

/// The default log level of a gateway.
pub const LOG_LEVEL: Level = Level::Info;

/// Serves until a signal says otherwise.
pub fn serve(typed_hosts: &[HostName], tap: Option<&str>, context: &Context) -> CommandResult {
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let event_loop = built.context("no event loop; check the limit of open files (`ulimit -n`)")?;
    let served = event_loop.block_on(async {
        let tools = tools::start(&context.profiles).await?;
        let cluster = cluster::reach(&context.config).await?;
        let gateway = open(typed_hosts, tap, context, tools, cluster)?;
        gateway.run(context).await
    });
    // What still runs after a second signal goes with the process.
    event_loop.shutdown_background();
    served
}

/// Everything that can be refused is refused here, before a single agent is started.
fn open(
    typed_hosts: &[HostName],
    tap: Option<&str>,
    context: &Context,
    tools: ToolBridge,
    cluster: Option<Settled>,
) -> Result<Gateway, CommandError> {
    let settings = &context.config.settings;
    let folders = &context.config.folders;
    // Before anything is sized by it.
    hardening::allow_many_files();
    let mut chosen = Agents::choose(context)?;
    models::make_known(settings, &mut chosen);
    let addresses = address::resolve(&settings.server)?;
    check_exposure(&addresses, context)?;
    let server = address::bind(server_config(addresses, settings))?;
    let addresses = server.local_addrs().context("cannot tell the address")?;
    for folder in [&folders.config, &folders.state, &folders.cache] {
        ensure_private(folder)?;
    }
    let store = DiskStore::open(folders.sessions()).map_err(|error| unusable(&error))?;
    // Only once no other gateway can have the folder.
    let secret = local_secret::renew(folders)?;
    local_address::write(folders, &addresses)?;
    let shown = first_key(context)?;
    let token = settings.auth.bearer_token.clone();
    let keys = Arc::new(FileKeys::open(folders, token)?);
    let reachable = AllowedOrigins::new(folders, &settings.server, typed_hosts, &addresses);
    let port = addresses.first().map_or(settings.server.port.0, SocketAddr::port);
    let member = cluster.map(|settled| Member::new(settled, folders, port, &settings.sessions)).transpose()?;
    let forwarding = member.as_ref().map(Member::forwarding);
    let tickets = member.as_ref().map(Member::tickets);
    let guard_config = GuardConfig { forwarding, tickets, ..guard_config(settings, &reachable)? };
    let guard = Guard::new(guard_config, Arc::<FileKeys>::clone(&keys));
    let counted = metrics::install().context("cannot count what happens")?;

    let cleared = stale_cleanup::clear(folders);
    if cleared != stale_cleanup::Cleared::default() {
        tracing::info!(?cleared, "cleared what killed runs had left");
    }
    let spawner = Spawner::new(GuardProgram::this_binary()).context("cannot prepare to start agents")?;
    let Agents { served, setups, wanted } = Agents::start(chosen, context, &spawner, &keys);
    for served in &served {
        metrics::begin_agent(served.name.as_str());
    }
    let live = SessionsConfig { live: settings.limits.sessions.0 as usize };
    let of_guests = agents::guest_limits(Allotment::of(live.live, None), &keys);
    let sessions = Sessions::new(Arc::new(store.clone()), setups, live)
        .with_guests(of_guests)
        .with_observer(Arc::new(audit::Audit));
    let sessions = sessions.with_tool_host(Arc::new(SettlingToolHost(tools.clone())));
    let sessions = Arc::new(match &member {
        Some(member) => sessions.with_directory(member.directory()),
        None => sessions,
    });
    let catalog = catalog(&sessions, &served, settings);
    let exchanges = exchanges(&sessions, &catalog, settings, member.as_ref());
    let dialects = Dialects::new(Arc::clone(&exchanges), DialectConfig::default());
    let readiness = Readiness::default();
    let tap = tap.map(open_tap).transpose()?;
    let a2a = a2a::frontend(&sessions, &catalog, &served, settings);
    let acp = acp::frontend(&sessions, catalog, &served, context, tap.clone().map(|tap| tap as Arc<dyn acp_api::Tap>));
    let operator =
        Operator::new(&Parts { served: &served, folders, guard: &guard, keys: &keys, acp: &acp, sessions: &sessions });
    let agent_files = Arc::new(AgentFiles::new(context, &served, &sessions));
    let small = acp_api::tickets(&guard)
        .merge(gembridge_api::admin::operator::routes(Arc::new(operator)))
        .merge(gembridge_api::admin::agent_sessions::routes(agent_files))
        .merge(gembridge_api::admin::workspace_files::routes(Arc::new(Workspaces::new(&served, &sessions))));
    let open = health::routes(readiness.clone()).merge(acp_api::proof::routes(secret));
    let plain = plain_routes(small, acp_api::router(&acp), open.clone(), counted.clone());
    let (messages, responses) = (Messages::new(Arc::clone(&dialects)), Responses::new(Arc::clone(&dialects)));
    let frontends = [
        openai::frontend(Arc::clone(&dialects)),
        responses::frontend(Arc::clone(&responses)),
        messages::frontend(messages),
        ollama::frontend(dialects),
        a2a_api::frontend(&a2a),
        plain,
    ];
    let app = routes::app(&guard, frontends);
    let a2a_port = a2a::port(&a2a, &guard, open.clone(), settings)?;
    let acp_port = acp_port(&acp, &guard, open, settings)?;
    warn_about(&addresses, &served, &reachable, settings);
    terminal::print(&Banner { addresses: &addresses, agent: &served[0].agent, key: shown }.text())?;
    let retiring = Retiring::new(store, &settings.sessions);
    let housekeeping = Housekeeping::new(&sessions, &keys, &served, settings, wanted);
    let withdrawal = Withdrawal::new(&sessions, &keys);
    let upkeep = Upkeep::new(guard, keys, reachable, readiness, exchanges, served);
    let metrics = counted;
    Ok(Gateway {
        server,
        app,
        further: acp_port.into_iter().chain(a2a_port).collect(),
        acp,
        responses,
        a2a,
        tap,
        upkeep,
        housekeeping,
        retiring,
        withdrawal,
        sessions,
        tools,
        spawner,
        metrics,
        member,
    })
}

/// Beyond this machine nobody gets in without a key, so there must be one, and none that can be guessed.
fn check_exposure(addresses: &[SocketAddr], context: &Context) -> Result<(), CommandError> {
    let folders = &context.config.folders;
    match keys::weak_token(context.config.settings.auth.bearer_token.as_ref()) {
        Some(weak) if address::is_reachable(addresses) => {
            return Err(CommandError::usage(format!("{weak}, since others can reach this address")));
        }
        Some(weak) => tracing::warn!("{weak}"),
        None => {}
    }
    let has_token = context.config.settings.auth.bearer_token.is_some();
    // A file that is not there yet gets its first key.
    let has_key = has_token || !KeyFile::path(folders).exists() || !KeyFile::load(folders)?.entries().is_empty();
    if has_key {
        return Ok(());
    }
    let way_out = "run `gembridge keys create NAME` first";
    if address::is_reachable(addresses) {
        let shown = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join("`, `");
        let problem =
            format!("`{shown}` can be reached by others, and there is no key that lets anybody in; {way_out}");
        return Err(CommandError::usage(problem));
    }
    tracing::warn!("there is no key, so that every request is refused; {way_out}");
    Ok(())
}

/// The first run makes the operator's key.
fn first_key(context: &Context) -> Result<Shown, CommandError> {
    let folders = &context.config.folders;
    let file = keys::first_key_path(folders);
    let has_token = context.config.settings.auth.bearer_token.is_some();
    if KeyFile::path(folders).exists() || has_token {
        let is_kept = file.exists() && KeyFile::load(folders)?.entries().iter().any(|key| key.name == keys::FIRST);
        return Ok(match (is_kept, has_token) {
            (true, _) => Shown::InFile(file),
            (false, true) => token(context.config.source(&Key::dotted("auth.bearer_token"))),
            (false, false) => Shown::Elsewhere,
        });
    }
    let key = keys::create(folders, keys::FIRST, StoredRank::Admin, KeyLimits::default())?;
    keys::keep_first(&key, &file)?;
    // What is written anywhere but to a terminal is kept, by a journal for one, and read by others.
    Ok(if context.terminal.stdout.is_terminal { Shown::New { key, file } } else { Shown::InFile(file) })
}

/// Where the operator's token can be had.
fn token(source: &Source) -> Shown {
    let variable = match source {
        Source::Environment { variable } | Source::DotEnv { variable, .. } => variable.clone(),
        _ => "BEARER_TOKEN".to_owned(),
    };
    Shown::Token { variable, origin: source.to_string() }
}

fn unusable(error: &StoreError) -> CommandError {
    match error {
        // Another gateway has them, or a newer one wrote them.
        StoreError::InUse(_) | StoreError::Refused(_) => CommandError::usage(error.to_string()),
        _ => CommandError::new(ExitCode::Failed, error.to_string()),
    }
}

fn server_config(addrs: Vec<SocketAddr>, settings: &Settings) -> ServerConfig {
    let server = &settings.server;
    ServerConfig {
        addrs,
        deadlines: Deadlines {
            // The turns end first, each with a word to its client.
            drain: server.drain.0 + running::LAST_WORDS,
            ..Deadlines::default()
        },
        connections: Connections {
            most: server.connections.0 as usize,
            most_per_address: server.connections_per_address.0 as usize,
            ..Connections::default()
        },
    }
}

fn guard_config(settings: &Settings, reachable: &AllowedOrigins) -> Result<GuardConfig, CommandError> {
    let limits = &settings.limits;
    let [requests, failures] = running::rates(limits);
    Ok(GuardConfig {
        reach: reachable.reach()?,
        proxies: allowed_origins::proxies(&settings.server),
        rate: Some(requests),
        counted: running::counted(limits),
        failure_rate: failures,
        forwarding: None,
        tickets: None,
        bodies: BodyLimits { large: u32::try_from(limits.body.0).unwrap_or(u32::MAX), ..BodyLimits::default() },
    })
}

fn exchanges(
    sessions: &Arc<Sessions>,
    catalog: &Arc<Catalog>,
    settings: &Settings,
    member: Option<&Member>,
) -> Arc<Exchanges> {
    let config = ExchangeConfig {
        history_budget: usize::try_from(settings.openai.history.0).unwrap_or(usize::MAX),
        show_agent_tools: settings.openai.show_tools.0,
        ..ExchangeConfig::default()
    };
    let (sessions, catalog) = (Arc::clone(sessions), Arc::clone(catalog));
    match member {
        Some(member) => Exchanges::in_cluster(sessions, catalog, config, member.histories(), &member.fingerprint_key()),
        None => Exchanges::new(sessions, catalog, config),
    }
}

fn catalog(sessions: &Sessions, served: &[Served], settings: &Settings) -> Arc<Catalog> {
    let config = CatalogConfig {
        default_agent: served[0].name.clone(),
        mapped: models::mapping(settings),
        unknown: if settings.openai.strict_models.0 { UnknownModels::Refuse } else { UnknownModels::FallBack },
        unlisted: models::unlisted(served),
    };
    Arc::new(Catalog::new(sessions, config))
}

/// The routes without an error envelope of their own. Where a route stands decides what it asks of its callers.
fn plain_routes(small: Router, websocket: Router, open: Router, metrics: PrometheusHandle) -> Frontend {
    Frontend {
        open: open.merge(docs::shell()).merge(ui::shell()),
        small: small.merge(metrics::routes(metrics)).merge(docs::routes()),
        websocket,
        ..Frontend::default()
    }
}

/// One more port, where the WebSocket is at `/` too.
fn acp_port(
    acp: &Arc<Acp>,
    guard: &Arc<Guard>,
    open: Router,
    settings: &Settings,
) -> Result<Option<(Server, Router)>, CommandError> {
    let Some(port) = settings.server.acp_port else { return Ok(None) };
    let addresses = address::resolve(&ServerSettings { port, ..settings.server.clone() })?;
    let server = address::bind(server_config(addresses, settings))?;
    for address in server.local_addrs().context("cannot tell the address")? {
        tracing::info!("ACP clients find a WebSocket at ws://{address}/");
    }
    let websocket = acp_api::root_router(acp).merge(acp_api::router(acp));
    let frontend = Frontend { open, small: acp_api::tickets(guard), websocket, ..Frontend::default() };
    Ok(Some((server, routes::app(guard, [frontend]))))
}

fn open_tap(to: &str) -> Result<Arc<tap::LineTap>, CommandError> {
    let opened = tap::LineTap::open(to).map(Arc::new);
    opened.map_err(|error| CommandError::usage(format!("cannot write the tap `{to}`: {error}; choose another file")))
}

fn warn_about(addresses: &[SocketAddr], served: &[Served], reachable: &AllowedOrigins, settings: &Settings) {
    if address::is_reachable(addresses) {
        let shown = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if !settings.server.behind_proxy.0 {
            tracing::warn!(
                "others can reach {shown}, and keys and prompts cross the network as plain text; put a proxy with TLS \
                 before it and say `--behind-proxy`"
            );
        }
        if !reachable.has_names() {
            tracing::warn!("requests for any name but localhost are refused; allow one with `--allow-host NAME`");
        }
    }
    if settings.server.any_extension.0 {
        tracing::warn!("every browser extension may call; `gembridge origins allow` names single ones");
    }
    let Agent { chosen, .. } = &served[0].agent;
    if let Chosen::BuiltIn(lacking) = chosen {
        tracing::warn!("{}, so the built-in demo agent answers; {}", lacking.problem(), lacking.way_out());
    }
}
