//! The connection to Redis. Every call has a deadline; a connection on which one failed is given up, and only the task that
//! renews the lease opens another, once a second: so a Redis that is gone costs nobody more than the first deadline, and one
//! that is back is not stormed.

use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, FromRedisValue, RedisError, RedisResult, ScriptInvocation};

use crate::error::ClusterError;

/// How long a connection may take to be there.
const CONNECTING: Duration = Duration::from_secs(1);

/// How long one call may take.
const DEADLINE: Duration = Duration::from_secs(1);

/// The oldest version whose scripts and commands are known to do.
const OLDEST: u64 = 7;

#[derive(Clone)]
pub struct Link {
    client: Client,
    state: Arc<RwLock<State>>,
}

/// Whether Redis can be asked now.
#[derive(Clone)]
enum State {
    Open {
        connection: MultiplexedConnection,
        number: u64,
    },
    /// The connection of this number was the last, and this is what became of it.
    Lost {
        number: u64,
        why: ClusterError,
    },
}

/// What answers at the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// `redis 7.0.15`, `valkey 8.1.0`.
    pub server: String,
}

impl Link {
    /// Nothing is connected before [`Link::connect`].
    pub fn new(address: &str) -> Result<Self, ClusterError> {
        // The address may hold a password, so that the library's words are not repeated.
        let client = Client::open(address).map_err(|error| ClusterError::Address(error.category().to_owned()))?;
        let why = ClusterError::Unreachable("it was not asked yet".to_owned());
        Ok(Self { client, state: Arc::new(RwLock::new(State::Lost { number: 0, why })) })
    }

    /// Opens a connection where there is none, and asks who answers.
    pub async fn connect(&self) -> Result<(), ClusterError> {
        let number = match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Open { .. } => return Ok(()),
            State::Lost { number, .. } => *number,
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECTING))
            .set_response_timeout(Some(DEADLINE))
            .set_pipeline_buffer_size(1_024);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        let connected = tokio::time::timeout(CONNECTING + DEADLINE, connecting).await;
        let connected =
            connected.map_err(|_| no_answer()).and_then(|connected| connected.map_err(|error| read(&error)));
        let next = match connected {
            Ok(connection) => State::Open { connection, number: number + 1 },
            Err(why) => State::Lost { number, why },
        };
        let outcome = match &next {
            State::Open { .. } => Ok(()),
            State::Lost { why, .. } => Err(why.clone()),
        };
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = next;
        outcome
    }

    /// Who answers, and whether it is new enough.
    pub async fn server(&self) -> Result<Reached, ClusterError> {
        self.connect().await?;
        let info: String =
            self.ask(|mut redis| async move { redis::cmd("INFO").arg("server").query_async(&mut redis).await }).await?;
        let field =
            |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        if let Some(valkey) = field("valkey_version") {
            return Ok(Reached { server: format!("valkey {valkey}") });
        }
        let version = field("redis_version").unwrap_or("unknown");
        let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
        if major.is_none_or(|major| major < OLDEST) {
            return Err(ClusterError::TooOld(version.to_owned()));
        }
        Ok(Reached { server: format!("redis {version}") })
    }

    /// One call, within its deadline. Where there is no connection it fails at once.
    pub(crate) async fn ask<T, F>(&self, call: impl FnOnce(MultiplexedConnection) -> F) -> Result<T, ClusterError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (connection, number) = match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Open { connection, number } => (connection.clone(), *number),
            State::Lost { why, .. } => return Err(why.clone()),
        };
        let error = match tokio::time::timeout(DEADLINE, call(connection)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => read(&error),
            Err(_) => no_answer(),
        };
        if let ClusterError::Unreachable(_) = error {
            self.give_up(number, &error);
        }
        Err(error)
    }

    pub(crate) async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, ClusterError> {
        self.ask(|mut redis| async move { script.invoke_async(&mut redis).await }).await
    }

    /// A connection that was replaced meanwhile stays.
    fn give_up(&self, number: u64, why: &ClusterError) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*state, State::Open { number: current, .. } if *current == number) {
            *state = State::Lost { number, why: why.clone() };
        }
    }
}

fn no_answer() -> ClusterError {
    ClusterError::Unreachable(format!("no answer within {} s", DEADLINE.as_secs()))
}

/// What an error of the library means here. Its texts hold what the server said, and no address.
fn read(error: &RedisError) -> ClusterError {
    if error.is_timeout() {
        no_answer()
    } else if error.is_io_error() || error.is_connection_dropped() || error.is_connection_refusal() {
        ClusterError::Unreachable(error.to_string())
    } else if error.is_unrecoverable_error() {
        // What came cannot be understood, so that nothing after it can be either.
        ClusterError::Unreachable(error.to_string())
    } else {
        ClusterError::Refused(error.to_string())
    }
}
