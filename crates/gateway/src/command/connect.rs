//! `gembridge connect`: which gateway, with which key, and how it is known that the key reaches it and nobody else.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::cli::args::ConnectArgs;
use crate::config::variables::CLIENT_KEY;
use crate::connect::{self, Address, Credential, EditorFolders, Scheme, Target, Trust, TrustLists, Untrusted};
use crate::exit::{CommandError, CommandResult};
use crate::{keys, local_address, local_secret};

use super::Context;

pub fn run(args: &ConnectArgs, context: &Context) -> CommandResult {
    let address = args.url.clone().unwrap_or_else(|| own_gateway(context));
    let (credential, source) = credential(args, &address, context)?;
    let trust = trust(args, &address, source, context)?;
    let folders = match source {
        _ if args.no_folder => EditorFolders::LeftOut,
        KeySource::Own => {
            let untrusted = if args.trust { Untrusted::Add } else { Untrusted::Ask };
            let folders = &context.config.folders;
            let lists = TrustLists { config: folders.config.clone(), state: folders.state.clone() };
            EditorFolders::Trusted { lists, untrusted }
        }
        KeySource::Named if args.trust => {
            let why = "`--trust` is for your own gateway with your own key; leave `GEMBRIDGE_KEY` and `--key-file` out";
            return Err(CommandError::usage(why));
        }
        KeySource::Named => EditorFolders::AsServed,
    };
    connect::run(&Target { address, credential, trust, folders })
}

/// The gateway of this user: where it listens, or where the settings would have it listen.
pub(super) fn own_gateway(context: &Context) -> Address {
    let port = context.config.settings.server.port.0;
    let configured = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Address::at(local_address::read(&context.config.folders).unwrap_or(configured))
}

/// Where the key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeySource {
    /// Somebody said that this key is for this gateway.
    Named,
    /// The operator's own: it is for the operator's own gateway and goes nowhere else.
    Own,
}

/// The key: the file that was named, the environment, or the operator's own for a gateway on this machine.
fn credential(
    args: &ConnectArgs,
    address: &Address,
    context: &Context,
) -> Result<(Credential, KeySource), CommandError> {
    let may_be_own = address.is_of_this_machine() && address.scheme() == Scheme::Plain;
    let (key, source) = if let Some(file) = &args.key_file {
        (read(file)?, KeySource::Named)
    } else if let Some(key) = context.sources.environment.get(CLIENT_KEY) {
        (key.to_owned(), KeySource::Named)
    } else if !may_be_own {
        let way_out = "set `GEMBRIDGE_KEY`, or name a file with `--key-file`";
        let why = "your own key is sent to your gateway on this machine only";
        return Err(CommandError::usage(format!("no key for `{address}`; {way_out} ({why})")));
    } else {
        (own_key(context)?, KeySource::Own)
    };
    let credential = Credential::new(&key)
        .ok_or_else(|| CommandError::usage("the key is empty, or holds characters that no key has"))?;
    Ok((credential, source))
}

/// The operator's own key.
pub(super) fn own_key(context: &Context) -> Result<String, CommandError> {
    let file = keys::first_key_path(&context.config.folders);
    match &context.config.settings.auth.bearer_token {
        Some(token) => Ok(token.reveal().to_owned()),
        None if file.exists() => read(&file).map(|key| key.trim().to_owned()),
        None => {
            let way_out =
                "start `gembridge serve`; for a gateway of somebody else set `GEMBRIDGE_KEY`, or use `--key-file`";
            Err(CommandError::usage(format!("no gateway has run here yet; {way_out}")))
        }
    }
}

fn read(path: &Path) -> Result<String, CommandError> {
    fs::read_to_string(path).map_err(|error| CommandError::usage(format!("the key file `{}`: {error}", path.display())))
}

/// How the other end shows that the key may be sent to it.
fn trust(args: &ConnectArgs, address: &Address, source: KeySource, context: &Context) -> Result<Trust, CommandError> {
    if address.scheme() == Scheme::Tls {
        if args.insecure {
            let way_out = "name the certificate authority of a private one with `--ca FILE`";
            return Err(CommandError::usage(format!(
                "`--insecure` is not for `wss`: certificates are always checked; {way_out}"
            )));
        }
        return connect::tls(args.ca.as_deref()).map(Trust::Certificate);
    }
    if args.ca.is_some() {
        return Err(CommandError::usage("`--ca` is for `wss://` addresses; `ws://` shows no certificate"));
    }
    match (address.is_of_this_machine(), args.insecure, source) {
        (_, true, KeySource::Named) => Ok(Trust::Unchecked),
        (true, _, _) => Ok(Trust::Proof { secret: local_secret::path(&context.config.folders) }),
        (false, _, _) => Err(CommandError::usage(format!(
            "`{address}` would send the key over the network in plain text; use `wss://`, or an SSH tunnel, or say \
             `--insecure` if nobody else can read that network"
        ))),
    }
}
