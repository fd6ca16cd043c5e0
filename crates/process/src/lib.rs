//! Children that never leak, never block and never flood: spawn under a guard, read capped lines, write with a
//! deadline, end the whole tree, restart with backoff, keep warm spares.
//!
//! This crate must not know any protocol that its children speak, nor sessions, nor which programs they are. It never
//! reads the environment: what a child gets is what the caller gives.
//!
//! ```no_run
//! # async fn example(environment: gembridge_process::Environment) -> Result<(), Box<dyn std::error::Error>> {
//! use gembridge_process::{Child, CommandSpec, GuardProgram, Spawner, StopPlan};
//!
//! let spawner = Spawner::new(GuardProgram::this_binary())?;
//! let child = spawner.spawn(CommandSpec::new("agent", environment).args(["--stdio"])).await?;
//! let Child { mut stdin, mut stdout, stderr, handle } = child;
//! stdin.write_line("hello").await?;
//! while let Some(batch) = stdout.next_batch().await? {
//!     for line in &batch {
//!         println!("{} bytes", line.len());
//!     }
//! }
//! println!("{}; {}", handle.stop(StopPlan::default()).await, stderr.tail());
//! # Ok(())
//! # }
//! ```

pub mod child;
pub mod environment;
pub mod excerpt;
pub mod foreground;
pub mod guard;
pub mod lines;
pub mod pool;
pub mod sandbox;
pub mod spawn;
pub mod startup;
pub mod supervise;
pub mod tag;

mod procfs;

pub use child::secrets::Secrets;
pub use child::{Begun, Child, Exit, ExitWatch, Handle, StderrTail, StopPlan, TreeMemory, WriteError, Writer};
pub use environment::Environment;
pub use excerpt::escape_excerpt;
pub use lines::{Batch, DEFAULT_LINE_LIMIT, LineError, LineReader, LineSplitter};
pub use pool::{Factory, Failure, Pool, PoolConfig, PoolError, PoolStatus};
pub use procfs::{Usage, usage};
pub use sandbox::{Reads, Sandbox};
pub use spawn::{CommandSpec, GuardProgram, Limits, Priority, SpawnError, Spawner};
pub use supervise::{Admission, RestartPolicy, Supervisor};
pub use tag::{RunTag, Swept, sweep};
