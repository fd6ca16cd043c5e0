//! The server when the process has no descriptor left. Alone in its process, since it uses them all up.

#[path = "http/stage.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod stage;

use std::fs::File;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stage::{Stage, soon, with_key};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Takes every descriptor that is left.
fn hoard() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[tokio::test]
async fn r11_without_descriptors_the_server_waits_and_with_them_it_goes_on_and_none_leak() {
    setrlimit(Resource::Nofile, Rlimit { current: Some(256), ..getrlimit(Resource::Nofile) }).unwrap();
    let stage = Stage::start();
    assert_eq!(stage.ask(&with_key("GET /who", &["connection: close"])).await.status, 200);
    let before = open_descriptors();

    let mut kept = stage.connect().await;
    kept.send(&with_key("GET /who", &[])).await;
    assert_eq!(kept.reply().await.status, 200);
    let mut hoarded = hoard();
    hoarded.pop();
    // The last one is the client's: the server has none to take it in with.
    let mut outside = stage.connect().await;
    outside.send(&with_key("GET /who", &[])).await;
    let early = tokio::time::timeout(Duration::from_millis(300), outside.reply()).await;
    assert!(early.is_err(), "there was no descriptor to answer with");
    kept.send(&with_key("GET /who", &[])).await;
    assert_eq!(kept.reply().await.status, 200, "who is inside is served");
    drop(hoarded);
    assert_eq!(outside.reply().await.status, 200);
    drop((kept, outside));

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
