//! An agent with a model, an environment and a folder of its own: a Gemini CLI that talks to another endpoint, say.

use std::time::Duration;

use gembridge_sdk::{Adapter, BuildError, Permissions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gembridge_sdk::run_helper();
    let workspace = std::env::temp_dir();
    let gemini = Adapter::gemini()
        .workspace(&workspace)
        .model("gemini-2.5-pro")
        // Over what this program inherited.
        .env("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:8080")
        .env("GEMINI_API_KEY", "a-key-of-that-endpoint")
        .startup_timeout(Duration::from_secs(30))
        .file_reads(true)
        .file_writes(false)
        .permissions(Permissions::Deny)
        .build();
    match gemini {
        Ok(gemini) => println!("{} is ready to be asked", gemini.name()),
        Err(BuildError::NotInstalled(why)) => println!("{why}"),
        Err(error) => return Err(error.into()),
    }
    tokio::runtime::Runtime::new()?.block_on(async {
        let agent = Adapter::demo().workspace(&workspace).env("LANG", "C").file_reads(true).build()?;
        println!("{}", agent.evaluate("hello").await?.text);
        agent.close().await;
        Ok(())
    })
}
