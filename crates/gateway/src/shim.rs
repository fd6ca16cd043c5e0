//! `gembridge mcp-shim`: the gateway's tool server on standard streams. Agents that take none over HTTP start it; it stands
//! first on the line and takes no flags.

use std::process::ExitCode;

use gembridge_tools::shim;

use crate::config::Environment;

/// Where the tool server is, and what lets us in. In the environment, since everybody can read arguments.
const URL: &str = "GEMBRIDGE_MCP_URL";
const TOKEN: &str = "GEMBRIDGE_MCP_TOKEN";

pub fn main(environment: &Environment) -> ExitCode {
    let (Some(url), Some(token)) = (environment.get(URL), environment.get(TOKEN)) else {
        eprintln!("gembridge mcp-shim: `{URL}` and `{TOKEN}` are not set; it is started by agents, for a gateway");
        return ExitCode::FAILURE;
    };
    match shim::run_on_stdio(url, token) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("gembridge mcp-shim: {problem}");
            ExitCode::FAILURE
        }
    }
}
