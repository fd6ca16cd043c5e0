//! What the settings say of the cluster, checked as a whole; and the id of this gateway in it.

use gembridge_cluster::{ClusterError, ClusterSecret, Link, SHORTEST_SECRET};
use gembridge_core::directory::NodeId;

use crate::config::settings::ClusterSettings;
use crate::config::{Folders, private_file};
use crate::exit::{CommandError, ExitCode};

/// A cluster that the settings name.
pub struct Settled {
    pub link: Link,
    pub secret: ClusterSecret,
    /// Where the others reach this gateway, as it was written.
    pub address: String,
}

/// `None`: this gateway stands alone.
pub fn settle(settings: &ClusterSettings) -> Result<Option<Settled>, CommandError> {
    let ClusterSettings { redis, address, secret, secret_file } = settings;
    let Some(redis) = redis else {
        if address.is_some() || secret.is_some() || secret_file.is_some() {
            let problem = "`[cluster]` names no `redis`; say where Redis is, or leave the section out";
            return Err(CommandError::usage(problem));
        }
        return Ok(None);
    };
    let link = Link::new(redis.reveal()).map_err(|error| CommandError::usage(error.to_string()))?;
    let address = address.clone().ok_or_else(|| {
        CommandError::usage(
            "`cluster.address` is missing; say where the other gateways reach this one, such as `10.0.0.7`",
        )
    })?;
    let text = match (secret, secret_file) {
        (Some(secret), None) => secret.reveal().to_owned(),
        (None, Some(file)) => private_file::read_text(file.as_path())?.ok_or_else(|| {
            CommandError::usage(format!(
                "`cluster.secret_file` is `{}`, and there is no such file",
                file.as_path().display()
            ))
        })?,
        (Some(_), Some(_)) => {
            return Err(CommandError::usage("`cluster.secret` and `cluster.secret_file` are both set; leave one out"));
        }
        (None, None) => {
            let problem = "`cluster.secret` is missing; give all gateways the output of one `openssl rand -hex 32`";
            return Err(CommandError::usage(problem));
        }
    };
    let secret = ClusterSecret::new(&text).ok_or_else(|| {
        CommandError::usage(format!(
            "the secret of the cluster has fewer than {SHORTEST_SECRET} characters and can be guessed; take the output of \
             `openssl rand -hex 32`"
        ))
    })?;
    Ok(Some(Settled { link, secret, address }))
}

/// The id of this gateway, made once: its sessions are its own after a restart too. Called by the one process that holds
/// the state folder.
pub fn node_id(folders: &Folders) -> Result<NodeId, CommandError> {
    let path = folders.state.join("node");
    if let Some(known) = private_file::read_text(&path)?.and_then(|text| text.trim().parse().ok()) {
        return Ok(known);
    }
    let fresh = NodeId::fresh();
    private_file::write(&path, &format!("{fresh}\n"))?;
    Ok(fresh)
}

/// `host:port`, where only a host was written.
pub fn with_port(address: &str, port: u16) -> String {
    let has_port = match address.rsplit_once(':') {
        // An address of IPv6 is full of colons; with a port it stands in brackets.
        Some((host, port)) => (!host.contains(':') || host.ends_with(']')) && port.parse::<u16>().is_ok(),
        None => false,
    };
    if has_port {
        return address.to_owned();
    }
    if address.contains(':') && !address.starts_with('[') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

/// Redis cannot be had: the gateway does not start, and the service manager tries again.
pub fn unusable(error: &ClusterError) -> CommandError {
    match error {
        ClusterError::Address(_) | ClusterError::TooOld(_) => CommandError::usage(error.to_string()),
        ClusterError::Unreachable(_) | ClusterError::Refused(_) | ClusterError::Replaced => CommandError::new(
            ExitCode::Failed,
            format!("cannot join the cluster: {error}; check `cluster.redis`, or run `gembridge doctor`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_gets_that_of_the_server() {
        for (written, expected) in [
            ("10.0.0.7", "10.0.0.7:1"),
            ("10.0.0.7:8080", "10.0.0.7:8080"),
            ("bridge.internal", "bridge.internal:1"),
            ("bridge.internal:80", "bridge.internal:80"),
            ("fd00::7", "[fd00::7]:1"),
            ("[fd00::7]", "[fd00::7]:1"),
            ("[fd00::7]:80", "[fd00::7]:80"),
        ] {
            assert_eq!(with_port(written, 1), expected);
        }
    }
}
