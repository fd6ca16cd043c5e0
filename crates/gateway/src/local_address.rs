//! Where the gateway of this state folder listens: a file that it writes when it does, for programs of its user.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use crate::config::{ConfigError, Folders, private_file};

fn path(folders: &Folders) -> PathBuf {
    folders.state.join("address")
}

/// Called by the one gateway that holds the state folder. Of several addresses one of this machine itself is the best.
pub fn write(folders: &Folders, addresses: &[SocketAddr]) -> Result<(), ConfigError> {
    let local = addresses.iter().find(|address| address.ip().to_canonical().is_loopback());
    match local.or(addresses.first()) {
        Some(address) => private_file::write(&path(folders), &format!("{address}\n")),
        None => Ok(()),
    }
}

/// Where it listened last, as this machine reaches it. Whoever answers there has to prove who it is.
pub fn read(folders: &Folders) -> Option<SocketAddr> {
    let mut address: SocketAddr = fs::read_to_string(path(folders)).ok()?.trim().parse().ok()?;
    // One that listens everywhere is asked here.
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        SocketAddr::V4(_) | SocketAddr::V6(_) => {}
    }
    Some(address)
}
