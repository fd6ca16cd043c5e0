//! What a service manager hears.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::home::Home;
use crate::support::http::PATIENCE;

#[test]
fn r20_ready_comes_when_it_serves_the_heart_beats_and_stopping_is_told() {
    let home = Home::for_serving();
    let path = home.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = || {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "150000")];
    let mut gateway = home.serve_with(&["--agent", "demo"], &variables);
    assert_eq!(heard(), "READY=1");
    assert_eq!(gateway.get("/readyz").status, 200, "ready means ready");
    assert_eq!((heard().as_str(), heard().as_str()), ("WATCHDOG=1", "WATCHDOG=1"));

    // A loop that stands still does not beat. What it had sent before is read first.
    gateway.signal(Signal::STOP);
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut buffer = [0; 256];
    let sent_before = (0..1_000).take_while(|_| socket.recv(&mut buffer).is_ok()).count();
    assert!(sent_before < 1_000);
    gateway.signal(Signal::CONT);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(heard(), "WATCHDOG=1");

    gateway.signal(Signal::TERM);
    while heard() != "STOPPING=1" {}
    assert!(gateway.ended().success());
}
