//! Functions of the program as tools of the agent.

use gembridge_sdk::schemars::{self, JsonSchema};
use gembridge_sdk::{Adapter, Tool, ToolError};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct City {
    /// As people write it.
    name: String,
}

#[derive(Serialize)]
struct Weather {
    city: String,
    degrees: i32,
}

async fn weather(city: City) -> Result<Weather, ToolError> {
    if city.name == "Atlantis" {
        return Err(ToolError::failed("there is no weather in Atlantis"));
    }
    Ok(Weather { city: city.name, degrees: 21 })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gembridge_sdk::run_helper();
    tokio::runtime::Runtime::new()?.block_on(async {
        let tool = Tool::new("weather", "How the weather is in a city", weather);
        let agent = Adapter::demo().tool(tool).build()?;
        // The demo agent calls what it is told to call; any other decides for itself.
        for prompt in [r#"call weather {"name": "Oslo"}"#, r#"call weather {"name": "Atlantis"}"#] {
            let reply = agent.evaluate(prompt).await?;
            for tool in &reply.tools {
                println!("{} {:?}: {}", tool.name, tool.status, tool.output.as_deref().unwrap_or_default());
            }
        }
        agent.close().await;
        Ok(())
    })
}
