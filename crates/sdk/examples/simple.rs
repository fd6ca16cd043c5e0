//! One prompt, one answer. With Gemini CLI installed and logged in, `Adapter::gemini()` takes the place of the demo agent.

use gembridge_sdk::Adapter;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gembridge_sdk::run_helper();
    tokio::runtime::Runtime::new()?.block_on(async {
        let agent = Adapter::demo().build()?;
        let reply = agent.evaluate("Tell me of the river.").await?;
        println!("{}", reply.text);
        println!("stopped: {:?}, tokens: {:?}", reply.stop, reply.usage);
        agent.close().await;
        Ok(())
    })
}
