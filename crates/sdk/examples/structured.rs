//! An answer of a type. What does not fit goes back to the agent.

use gembridge_sdk::Adapter;
use gembridge_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// What a reviewer found.
#[derive(Debug, Deserialize, JsonSchema)]
struct Finding {
    file: String,
    line: u32,
    problem: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gembridge_sdk::run_helper();
    tokio::runtime::Runtime::new()?.block_on(async {
        let agent = Adapter::demo().build()?;
        // The demo agent answers in prose first, and then as it is told: the second answer is the repaired one.
        let prompt = "unicode\nnext json [{\"file\": \"main.rs\", \"line\": 3, \"problem\": \"unused\"}]";
        let found = agent.evaluate_as::<Vec<Finding>>(prompt).await?;
        for Finding { file, line, problem } in found.value {
            println!("{file}:{line}: {problem}");
        }
        agent.close().await;
        Ok(())
    })
}
