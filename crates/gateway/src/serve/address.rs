//! Where the gateway listens, and under which names it may be asked for.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use gembridge_api::server::{Server, ServerConfig};

use super::listener;
use crate::config::settings::ServerSettings;
use crate::exit::CommandError;

/// The addresses that the host stands for.
pub fn resolve(settings: &ServerSettings) -> Result<Vec<SocketAddr>, CommandError> {
    let (host, port) = (settings.host.as_str(), settings.port.0);
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    let found = match bare.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default(),
    };
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    // The system would choose another port for each of them.
    if port == 0 {
        addresses.truncate(1);
    }
    if addresses.is_empty() {
        let problem =
            format!("host `{host}` has no address; set `server.host` or `--host` to one, such as `127.0.0.1`");
        return Err(CommandError::usage(problem));
    }
    Ok(addresses)
}

/// Whether anybody but this machine can reach one of them.
pub fn is_reachable(addresses: &[SocketAddr]) -> bool {
    addresses.iter().any(|address| !address.ip().to_canonical().is_loopback())
}

/// Takes the addresses, or says who is in the way.
pub fn bind(config: ServerConfig) -> Result<Server, CommandError> {
    let shown = config.addrs.iter().map(ToString::to_string).collect::<Vec<_>>().join("` or `");
    let wanted = config.addrs.clone();
    Server::bind(config).map_err(|error| {
        let way_out = match error.kind() {
            io::ErrorKind::AddrInUse => {
                let who = wanted.iter().find_map(|address| listener::of(*address)).unwrap_or("another program");
                return CommandError::usage(format!(
                    "cannot listen on `{shown}`: {who} listens there; stop it, or choose another port with `--port`, or for \
                     good with `server.port` of `gembridge.toml`"
                ));
            }
            io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege; choose another with `--port`",
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address; choose another with `--host`",
            _ => "choose another address with `--host` and `--port`",
        };
        CommandError::usage(format!("cannot listen on `{shown}`: {way_out}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::value::Port;

    fn addresses(host: &str, port: u16) -> Vec<SocketAddr> {
        resolve(&ServerSettings { host: host.to_owned(), port: Port(port), ..ServerSettings::default() }).unwrap()
    }

    #[test]
    fn s4_what_others_can_reach_is_told_from_what_they_cannot() {
        for (host, reachable) in [
            ("127.0.0.1", false),
            ("127.1.2.3", false),
            ("::1", false),
            ("[::1]", false),
            ("::ffff:127.0.0.1", false),
            ("0.0.0.0", true),
            ("::", true),
            ("192.0.2.7", true),
        ] {
            assert_eq!(is_reachable(&addresses(host, 80)), reachable, "{host}");
        }
    }

    #[test]
    fn a_free_port_is_asked_for_once() {
        assert_eq!(addresses("localhost", 0).len(), 1);
        let settings = ServerSettings { host: "no such host".to_owned(), ..ServerSettings::default() };
        assert!(resolve(&settings).unwrap_err().error.to_string().contains("has no address"));
    }
}
