//! The same question to every agent that is installed, all at once.

use futures_util::future::join_all;
use gembridge_sdk::{Adapter, BuildError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gembridge_sdk::run_helper();
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut agents = Vec::new();
        for builder in [
            Adapter::gemini(),
            Adapter::claude(),
            Adapter::codex(),
            Adapter::opencode(),
            Adapter::qwen(),
            Adapter::demo(),
        ] {
            match builder.build() {
                Ok(agent) => agents.push(agent),
                Err(BuildError::NotInstalled(why)) => println!("- {why}"),
                Err(error) => return Err(error.into()),
            }
        }
        let answers = join_all(agents.iter().map(|agent| async move {
            let answer = agent.evaluate("What is a river, in one sentence?").await;
            (agent.name(), answer.map(|reply| reply.text))
        }));
        for (name, answer) in answers.await {
            match answer {
                Ok(text) => println!("- {name}: {text}"),
                Err(error) => println!("- {name} has no answer: {error}"),
            }
        }
        for agent in agents {
            agent.close().await;
        }
        Ok(())
    })
}
