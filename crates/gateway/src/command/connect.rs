//! `gembridge connect`: which gateway, and with which key.

use std::fs;

use crate::cli::args::ConnectArgs;
use crate::config::variables::CLIENT_KEY;
use crate::connect::{self, Address, Credential};
use crate::exit::{CommandError, CommandResult};
use crate::keys;

use super::Context;

pub fn run(args: &ConnectArgs, context: &Context) -> CommandResult {
    let port = context.config.settings.server.port.0;
    let address = args.url.clone().unwrap_or_else(|| Address::of_this_machine(port));
    let credential = credential(args, &address, context)?;
    connect::run(&address, &credential)
}

/// The key: the file that was named, the environment, or the operator's own for a gateway on this machine.
fn credential(args: &ConnectArgs, address: &Address, context: &Context) -> Result<Credential, CommandError> {
    let environment = &context.sources.environment;
    let read = |path: &std::path::Path| {
        fs::read_to_string(path)
            .map_err(|error| CommandError::usage(format!("the key file `{}`: {error}", path.display())))
    };
    let own = keys::first_key_path(&context.config.folders);
    let key = if let Some(file) = &args.key_file {
        read(file)?
    } else if let Some(key) = environment.get(CLIENT_KEY) {
        key.to_owned()
    } else if let Some(token) = &context.config.settings.auth.bearer_token {
        token.reveal().to_owned()
    } else if address.is_of_this_machine() && own.exists() {
        read(&own)?
    } else {
        let way_out = "set `GEMBRIDGE_KEY`, or name a file with `--key-file`";
        return Err(CommandError::usage(format!("no key for `{address}`; {way_out}")));
    };
    Credential::new(&key).ok_or_else(|| CommandError::usage("the key is empty, or holds characters that no key has"))
}
