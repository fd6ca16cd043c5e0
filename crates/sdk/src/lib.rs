//! Coding agents that speak ACP, as a Rust library: a prompt in, a typed answer out.
//!
//! An [`Adapter`] runs Gemini CLI, Claude, Codex, `OpenCode`, Qwen Code or any other program that speaks the
//! [Agent Client Protocol](https://agentclientprotocol.com), unmodified and with the login that it has. One process serves
//! all prompts that it can hold, and ends with this program, however that ends.
//!
//! # Ask
//!
//! ```rust,standalone_crate
//! use gembridge_sdk::Adapter;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // First of all: agents run below a guard process, which is this program, started again.
//!     gembridge_sdk::run_helper();
//!     tokio::runtime::Runtime::new()?.block_on(async {
//!         // `Adapter::gemini()` and the others take the same.
//!         let agent = Adapter::demo().build()?;
//!         let reply = agent.evaluate("Hello, agent").await?;
//!         assert!(reply.text.contains("Hello, agent"));
//!         agent.close().await;
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # A typed answer
//!
//! The schema comes of the type. What does not fit goes back to the agent, a few times.
//!
//! ```rust,standalone_crate
//! use gembridge_sdk::schemars::{self, JsonSchema};
//! use gembridge_sdk::{Adapter, Evaluated};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Review {
//!     summary: String,
//!     /// From 0 to 10.
//!     score: u8,
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     gembridge_sdk::run_helper();
//!     tokio::runtime::Runtime::new()?.block_on(async {
//!         let agent = Adapter::demo().build()?;
//!         // The demo agent says what it is told to say: here the answer itself.
//!         let prompt = r#"json {"summary": "small and clear", "score": 8}"#;
//!         let review: Evaluated<Review> = agent.evaluate_as(prompt).await?;
//!         assert_eq!((review.value.summary.as_str(), review.value.score), ("small and clear", 8));
//!         agent.close().await;
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Tools and events
//!
//! Functions of the program are tools of the agent, and what happens can be watched as it happens.
//!
//! ```rust,standalone_crate
//! use gembridge_sdk::schemars::{self, JsonSchema};
//! use gembridge_sdk::{Adapter, Tool, TurnEvent};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Numbers {
//!     a: i64,
//!     b: i64,
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     gembridge_sdk::run_helper();
//!     tokio::runtime::Runtime::new()?.block_on(async {
//!         let add = Tool::new("add", "Adds two numbers", |n: Numbers| async move { Ok(n.a + n.b) });
//!         let agent = Adapter::demo().tool(add).build()?;
//!         let mut stream = agent.stream(r#"call add {"a": 2, "b": 40}"#).await?;
//!         while let Some(event) = stream.next().await {
//!             if let TurnEvent::Tool(tool) = event {
//!                 println!("{} {:?}", tool.name, tool.output);
//!             }
//!         }
//!         assert!(stream.finish().await?.text.contains("42"));
//!         agent.close().await;
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # What holds for every agent
//!
//! - **Where it works**: in [`workspace`](AdapterBuilder::workspace), or in an empty private folder for each session, removed
//!   with it. Files are read and written through this program only where
//!   [`file_reads`](AdapterBuilder::file_reads) and [`file_writes`](AdapterBuilder::file_writes) say so, and only in there.
//! - **What it may do**: [`Permissions`] decides, and allows everything once by default. The environment is inherited, so that
//!   logins work.
//! - **When it ends**: a [`deadline`](Prompt::deadline) tells the agent to stop and then ends it. A [`Budget`] holds for
//!   several prompts.
//! - **What went wrong**: an [`EvaluateError`] says in which [`Phase`], and what to do.
//! - **Sessions**: [`Adapter::evaluate`] asks in a new one each time; a [`Session`] remembers.
//! - **Processes**: every agent has a guard, which ends it with all that it started when this program is gone, by a crash
//!   too. [`run_helper`] says what that needs. Linux only.

mod adapter;
mod builder;
mod session;
mod prompt;
mod reply;
mod event;
mod stream;
mod tool;
mod permission;
mod budget;
mod error;
mod helper_process;
mod evaluation;
mod output;
mod conversation;
mod engine;
mod environment;

pub use adapter::Adapter;
pub use budget::Budget;
pub use builder::AdapterBuilder;
pub use error::{BuildError, ErrorKind, EvaluateError, Phase};
pub use event::{Observed, TurnEvent};
pub use helper_process::run_helper;
pub use permission::{Decision, PermissionCallback, PermissionOption, PermissionRequest, Permissions};
pub use prompt::{Completion, Prompt};
pub use reply::{
    Evaluated, PlanEntry, PlanStatus, Reply, Stop, ToolOrigin, ToolStatus, ToolUse, UnifiedMessage, Usage,
};
pub use schemars;
pub use session::{Session, SessionState};
pub use stream::TurnStream;
pub use tool::{Tool, ToolError};
