//! Tells systemd the state of the service: datagrams on the socket that `NOTIFY_SOCKET` names.
//!
//! `sd-notify` is not used: it sends on a blocking socket, so a service manager that does not read would stop the event loop
//! that its watchdog watches; it knows no abstract sockets (`@name`); and it reads the environment of the process by itself.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::config::Environment;

pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    beat: Option<Duration>,
}

impl Notifier {
    /// Silent where nobody listens.
    pub fn new(environment: &Environment) -> Self {
        let socket = environment.get("NOTIFY_SOCKET").and_then(|name| match open(name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(%error, "the socket that `NOTIFY_SOCKET` names cannot be used");
                None
            }
        });
        // Meant for another process when it names one.
        let is_ours = environment.get("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let limit = environment.get("WATCHDOG_USEC").and_then(|text| text.parse().ok()).map(Duration::from_micros);
        let beat = limit.filter(|limit| is_ours && !limit.is_zero() && socket.is_some()).map(|limit| limit / 3);
        Self { socket, beat }
    }

    pub fn ready(&self) {
        self.tell("READY=1");
    }

    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Beats for as long as the event loop works: each beat goes through its queue first. Never resolves.
    pub async fn beat(&self) {
        let Some(period) = self.beat else { return std::future::pending().await };
        let mut tick = tokio::time::interval(period);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tick.tick().await;
            let mut through_the_loop = tokio::task::JoinSet::new();
            through_the_loop.spawn(std::future::ready(()));
            if through_the_loop.join_next().await.is_some_and(|passed| passed.is_ok()) {
                self.tell("WATCHDOG=1");
            }
        }
    }

    fn tell(&self, state: &str) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            tracing::warn!(%error, state, "the service manager could not be notified");
        }
    }
}

fn open(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not stop us.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Manager {
        socket: UnixDatagram,
        notifier: Notifier,
        _folder: tempfile::TempDir,
    }

    fn manager(watchdog: &str) -> Manager {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", watchdog)];
        Manager { socket, notifier: Notifier::new(&Environment::from(variables)), _folder: folder }
    }

    impl Manager {
        fn heard(&self) -> String {
            let mut buffer = [0; 256];
            let length = self.socket.recv(&mut buffer).unwrap();
            String::from_utf8_lossy(&buffer[..length]).into_owned()
        }
    }

    #[test]
    fn r20_the_manager_hears_ready_and_stopping() {
        let manager = manager("0");
        manager.notifier.ready();
        assert_eq!(manager.heard(), "READY=1");
        manager.notifier.stopping();
        assert_eq!(manager.heard(), "STOPPING=1");
        assert!(manager.notifier.beat.is_none());
    }

    #[test]
    fn r20_the_heart_beats_while_the_loop_turns_and_stops_while_it_is_blocked() {
        let manager = manager("30000");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let end = tokio_util::sync::CancellationToken::new();
        let (blocked, is_blocked) = std::sync::mpsc::sync_channel::<()>(1);
        let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                runtime.block_on(async {
                    tokio::select! {
                        () = manager.notifier.beat() => {}
                        () = end.cancelled() => {}
                    }
                });
            });
            assert_eq!(manager.heard(), "WATCHDOG=1");
            runtime.spawn(async move {
                blocked.send(()).unwrap();
                // The only thread of the loop stands still here.
                released.recv().unwrap();
            });
            is_blocked.recv().unwrap();
            manager.socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            // One beat may have passed the loop just before, and those that were sent wait in the socket.
            let mut buffer = [0; 64];
            let still_beating = (0..100).take_while(|_| manager.socket.recv(&mut buffer).is_ok()).count();
            assert!(still_beating < 100);
            release.send(()).unwrap();
            manager.socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            assert_eq!(manager.heard(), "WATCHDOG=1");
            end.cancel();
        });
    }
}
