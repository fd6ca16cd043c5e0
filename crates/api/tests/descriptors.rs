//! The server when the process has no descriptor left. Alone in its process, since it uses them all up.

#[path = "http/support.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod support;

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{TestServer, soon, with_key};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Takes every descriptor that is left.
fn hoard() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[tokio::test]
async fn r11_without_descriptors_clients_are_told_and_with_them_served_and_none_leak() {
    setrlimit(Resource::Nofile, Rlimit { current: Some(256), ..getrlimit(Resource::Nofile) }).unwrap();
    let stage = TestServer::start();
    assert_eq!(stage.ask(&with_key("GET /who", &["connection: close"])).await.status, 200);
    let before = open_descriptors();

    let mut kept = stage.connect().await;
    kept.send(&with_key("GET /who", &[])).await;
    assert_eq!(kept.reply().await.status, 200);
    let mut hoarded = hoard();
    hoarded.pop();
    // The last one is the client's: the server has but the one that it kept for this.
    for (target, status) in [("GET /who", 503), ("GET /health", 200), ("GET /who", 503)] {
        let mut outside = stage.connect().await;
        outside.send(&with_key(target, &[])).await;
        let reply = outside.reply().await;
        assert_eq!(reply.status, status, "{target}");
        assert_eq!(reply.header("retry-after").is_some(), status == 503);
        outside.closed().await;
    }
    kept.send(&with_key("GET /who", &[])).await;
    assert_eq!(kept.reply().await.status, 200, "who is inside is served");
    drop(hoarded);
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.status, 200);
    drop(kept);

    for _ in 0..1_000 {
        assert_eq!(stage.ask(&with_key("GET /who", &[])).await.status, 200);
    }
    soon(async {
        while open_descriptors() > before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
