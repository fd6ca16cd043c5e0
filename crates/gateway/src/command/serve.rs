//! `gembridge serve`: what is meant by the flags.

use crate::cli::args::ServeArgs;
use crate::config::{Flag, Key};
use crate::exit::CommandResult;

use super::{Context, run};

pub fn run(args: &ServeArgs, context: &Context) -> CommandResult {
    crate::serve::serve(&args.allow_host, args.tap.as_deref(), context)
}

/// The settings among the flags. Further names of the host come on top of those in the settings.
pub fn flags(args: &ServeArgs) -> Vec<Flag> {
    let flag = |name, key, value: String| Flag { name, key: Key::dotted(key), value };
    let on = |is_on: bool, name, key| is_on.then(|| flag(name, key, "true".to_owned()));
    [
        args.host.clone().map(|host| flag("--host", "server.host", host)),
        args.port.map(|port| flag("--port", "server.port", port.to_string())),
        run::agent_flag(args.agent.as_deref()),
        on(args.behind_proxy, "--behind-proxy", "server.behind_proxy"),
        on(args.strict_models, "--strict-models", "openai.strict_models"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
