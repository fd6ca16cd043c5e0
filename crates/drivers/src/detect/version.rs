//! The version of a program, asked of the program itself: the only part of detection that runs anything.

use std::path::Path;
use std::time::Duration;

use gembridge_process::{CommandSpec, Environment as ChildEnvironment, LineError, SpawnError, Spawner, StopPlan};

use crate::profile::{Driver, Environment, Profile, Version};

/// A cold start of a large program on a busy machine stays below this.
const DEADLINE: Duration = Duration::from_secs(10);

/// More than any version needs; a program that floods is not asked further.
const MOST_LINES: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Output(#[from] LineError),
    #[error("`{program}` is a server, which is not asked")]
    Server { program: String },
    #[error("`{program} {args}` did not answer within {DEADLINE:?}")]
    Silent { program: String, args: String },
    #[error("`{program} {args}` printed no version")]
    None { program: String, args: String },
}

/// Runs `<program> --version`, or what the profile says instead, and reads the answer.
pub async fn version_of(
    profile: &Profile,
    program: &Path,
    environment: &Environment,
    spawner: &Spawner,
) -> Result<Version, VersionError> {
    let args = &profile.command.version_args;
    let shown = || (program.display().to_string(), args.join(" "));
    // A server would not print its version but start.
    if profile.driver == Driver::A2a {
        return Err(VersionError::Server { program: shown().0 });
    }
    let environment = profile.version_environment(program, environment);
    let environment =
        environment.into_iter().fold(ChildEnvironment::default(), |all, (name, value)| all.with(name, value));
    let child = spawner.spawn(CommandSpec::new(program, environment).args(args).cwd("/")).await?;
    let (mut stdout, handle) = (child.stdout, child.handle);
    let read = async {
        let mut seen = 0;
        while let Some(batch) = stdout.next_batch().await? {
            for line in &batch {
                if let Some(version) = Version::find_in(&String::from_utf8_lossy(line)) {
                    return Ok(Some(version));
                }
            }
            seen += batch.iter().count();
            if seen > MOST_LINES {
                break;
            }
        }
        Ok::<_, LineError>(Version::find_in(&String::from_utf8_lossy(stdout.unfinished())))
    };
    let answer = tokio::time::timeout(DEADLINE, read).await;
    handle.stop(StopPlan { after_eof: Duration::ZERO }).await;
    let (program, args) = shown();
    match answer {
        Err(_) => Err(VersionError::Silent { program, args }),
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(None)) => Err(VersionError::None { program, args }),
        Ok(Ok(Some(version))) => Ok(version),
    }
}
