//! One turn: one process, from its start to the end of its whole tree.

use std::time::Duration;

use bytes::Bytes;
use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentStop, Update};
use gembridge_core::model::{Failure, FailureKind, Usage};
use gembridge_process::{Child, Exit, LineError, StopPlan, WriteError};
use tokio_util::sync::CancellationToken;

use super::decode::{Decoder, Verdict};
use super::error::{self, Trouble};
use crate::acp::fence;
use crate::acp::launch;
use crate::profile::Headless;
use crate::setup::DriverSetup;
use crate::workspace::PrivateDir;

/// Who hears of a turn. Called in the order of what happens: the start, then lines and updates, then the end.
pub(super) trait Listener: Send {
    fn started(&mut self, _pid: Option<u32>) {}

    fn stdout(&mut self, _line: &[u8]) {}

    /// A listener that takes its time holds up the program.
    fn updates(&mut self, updates: Vec<Update>) -> BoxFuture<'_, ()>;

    fn closed(&mut self, _exit: Exit, _stderr: &str) {}
}

/// A pipe to or from the program that is of no use any more.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{0}")]
    Output(LineError),
    #[error("its prompt could not be written: {0}")]
    Input(WriteError),
}

/// What is run.
pub(super) struct Plan<'a> {
    pub setup: &'a DriverSetup,
    pub headless: &'a Headless,
    pub private: &'a PrivateDir,
    /// Beside those of the launch.
    pub args: Vec<String>,
    pub prompt: Bytes,
    /// Ends the turn and its whole tree.
    pub cancel: CancellationToken,
}

/// How a turn ended.
pub(super) struct Ended {
    /// `None` where the process did not start.
    pub exit: Option<Exit>,
    /// As the program told it.
    pub session: Option<String>,
    pub usage: Option<Usage>,
    pub end: Result<AgentStop, Trouble>,
}

impl Ended {
    fn unstarted(failure: Failure) -> Self {
        Self { exit: None, session: None, usage: None, end: Err(Trouble::Failed(failure)) }
    }
}

pub(super) async fn run(plan: Plan<'_>, listener: &mut dyn Listener) -> Ended {
    let child = match start(&plan).await {
        Ok(child) => child,
        Err(failure) => return Ended::unstarted(failure),
    };
    let Child { mut stdin, mut stdout, stderr, handle } = child;
    listener.started(handle.pid());
    let mut decoder = Decoder::new(plan.headless.format);
    let read = {
        let write = async {
            match stdin.write_last(plan.prompt.clone()).await {
                // A program that ends before it has read all of its prompt says why.
                Ok(()) | Err(WriteError::Gone) => Ok(()),
                Err(error) => Err(Broken::Input(error)),
            }
        };
        let read = async {
            loop {
                let batch = match stdout.next_batch().await {
                    Ok(Some(batch)) => batch,
                    Ok(None) => return Ok(()),
                    Err(error) => return Err(Broken::Output(error)),
                };
                let mut updates = Vec::new();
                for line in &batch {
                    listener.stdout(line);
                    updates.extend(decoder.line(&Bytes::copy_from_slice(line)));
                }
                if !updates.is_empty() {
                    listener.updates(updates).await;
                }
            }
        };
        let both = async { tokio::try_join!(write, read).map(|_| ()) };
        tokio::select! {
            read = both => Some(read),
            () = plan.cancel.cancelled() => None,
        }
    };
    if read.is_none() || matches!(read, Some(Err(_))) {
        handle.end();
    }
    let exit = handle.stop(StopPlan { after_eof: Duration::from_secs(5) }).await;
    let tail = stderr.lines().join("\n");
    listener.closed(exit, &tail);
    let end = end(&plan, read, &decoder, exit, &tail);
    Ended { exit: Some(exit), session: decoder.session, usage: decoder.usage, end }
}

fn end(
    plan: &Plan<'_>,
    read: Option<Result<(), Broken>>,
    decoder: &Decoder,
    exit: Exit,
    stderr: &str,
) -> Result<AgentStop, Trouble> {
    let agent = &plan.setup.profile.name;
    match (read, &decoder.verdict) {
        (None, _) => Ok(AgentStop::Cancelled),
        (Some(Err(error)), _) => {
            let text = format!("agent `{agent}` broke the protocol: {error}");
            Err(Trouble::Failed(Failure::new(FailureKind::Protocol, text)))
        }
        // The result line holds, whatever the exit code is: some ends have the code of a success, and the reverse.
        (Some(Ok(())), Some(Verdict::Finished(stop))) => Ok(AgentStop::Stopped(stop.clone())),
        (Some(Ok(())), verdict) => Err(error::trouble(agent, plan.headless.format, verdict.as_ref(), exit, stderr)),
    }
}

async fn start(plan: &Plan<'_>) -> Result<Child, Failure> {
    let (setup, private) = (plan.setup, plan.private);
    let mut launch = launch::launch(setup, setup.version, private)?;
    launch.args.extend(plan.args.iter().cloned());
    launch::write_files(&launch).map_err(|error| launch::no_folder(setup, &error))?;
    let fence = fence::around(setup, &launch, private.path())?;
    let mut command = launch::command(setup, &launch, fence);
    // It reads its input once it has started, which takes as long as it takes.
    command.limits.write = Duration::from_secs(setup.profile.limits.start_seconds);
    setup.spawner.spawn(command).await.map_err(|error| launch::unstarted(setup, &error))
}
