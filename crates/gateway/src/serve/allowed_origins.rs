//! From where the gateway may be reached: hosts of the settings and the flags, origins of their file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use gembridge_api::guard::address::Proxies;
use gembridge_api::guard::host::Hosts;
use gembridge_api::guard::origin::{Extensions, Origins};
use gembridge_api::guard::{Guard, Reach};

use crate::config::entries::Reported;
use crate::config::private_file::Stamp;
use crate::config::settings::ServerSettings;
use crate::config::value::HostName;
use crate::config::{ConfigError, Folders};
use crate::origins::OriginFile;

/// What decides about hosts and origins, and the file that may change while we run.
pub struct AllowedOrigins {
    folders: Folders,
    settings: ServerSettings,
    /// Names that were typed, and addresses that we listen on: nobody can point those elsewhere.
    fixed: Vec<String>,
    listens: Listens,
    path: PathBuf,
    stamp: Stamp,
    reported: Reported,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Listens {
    /// On loopback alone.
    Here,
    ToOthers,
}

impl AllowedOrigins {
    pub fn new(folders: &Folders, settings: &ServerSettings, typed: &[HostName], addresses: &[SocketAddr]) -> Self {
        let path = OriginFile::path(folders);
        let listening = addresses.iter().filter(|address| !address.ip().is_unspecified()).map(literal);
        let fixed = typed.iter().map(|host| host.as_str().to_owned()).chain(listening).collect();
        Self {
            folders: folders.clone(),
            settings: settings.clone(),
            fixed,
            listens: if super::address::is_reachable(addresses) { Listens::ToOthers } else { Listens::Here },
            stamp: Stamp::of(&path),
            path,
            reported: Reported::default(),
        }
    }

    /// Whether others than this machine can connect.
    pub fn listens_to_others(&self) -> bool {
        self.listens == Listens::ToOthers
    }

    /// Whether a name beyond this machine's own is allowed.
    pub fn has_names(&self) -> bool {
        !self.fixed.is_empty() || !self.settings.hosts.0.is_empty()
    }

    pub fn reach(&self) -> Result<Reach, ConfigError> {
        let origins = OriginFile::load(&self.folders)?;
        self.reported.warn(&origins.reports());
        let extensions = if self.settings.any_extension.0 { Extensions::Any } else { Extensions::Listed };
        let hosts = self.settings.hosts.0.iter().map(|host| host.as_str().to_owned());
        Ok(Reach {
            hosts: Hosts::new(hosts.chain(self.fixed.iter().cloned())),
            origins: Origins::new(origins.origins(), extensions),
        })
    }

    /// Takes over what changed in the file.
    pub fn refresh(&mut self, guard: &Arc<Guard>) {
        let stamp = Stamp::of(&self.path);
        if stamp != self.stamp {
            self.stamp = stamp;
            self.apply(guard);
        }
    }

    /// Takes other settings.
    pub fn reload(&mut self, settings: &ServerSettings, guard: &Arc<Guard>) {
        self.settings = settings.clone();
        self.stamp = Stamp::of(&self.path);
        self.apply(guard);
    }

    fn apply(&self, guard: &Arc<Guard>) {
        match self.reach() {
            Ok(reach) => {
                guard.set_reach(reach);
                tracing::info!("hosts and origins were read again");
            }
            Err(error) => tracing::error!(%error, "hosts and origins stay as they were"),
        }
    }
}

/// The proxies that are believed: those of the settings, else whoever forwards from this machine.
pub fn proxies(settings: &ServerSettings) -> Proxies {
    let named = settings.proxies.0.clone();
    if !named.is_empty() || !settings.behind_proxy.0 {
        return Proxies(named);
    }
    Proxies(["127.0.0.0/8", "::1"].into_iter().filter_map(|network| network.parse().ok()).collect())
}

/// An address as a URL has it.
fn literal(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}
