//! What happens while the agent works, as it happens; questions of the agent are answered by the program.

use std::io::Write as _;
use std::time::Duration;

use gembridge_sdk::{Adapter, Decision, Permissions, Prompt, TurnEvent};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gembridge_sdk::run_helper();
    tokio::runtime::Runtime::new()?.block_on(async {
        let permissions = Permissions::ask(|request| async move {
            if request.title.contains("rm") { Decision::Reject } else { Decision::AllowOnce }
        });
        let agent = Adapter::demo().permissions(permissions).build()?;
        let prompt = Prompt::new("think\nplan\nrun ls\nstory 2").within(Duration::from_mins(2));
        let mut stream = agent.stream(prompt).await?;
        while let Some(event) = stream.next().await {
            match event {
                TurnEvent::Text(text) => {
                    print!("{text}");
                    std::io::stdout().flush()?;
                }
                TurnEvent::Tool(tool) => println!("\n[{} {:?}]", tool.name, tool.status),
                TurnEvent::Permission(request) => println!("\n[may it? {}]", request.title),
                TurnEvent::PermissionDecided { allowed } => println!("[allowed: {allowed}]"),
                TurnEvent::Plan(entries) => println!("\n[plan of {} steps]", entries.len()),
                _ => {}
            }
        }
        let reply = stream.finish().await?;
        println!("\n[{} messages]", reply.transcript.len());
        agent.close().await;
        Ok(())
    })
}
