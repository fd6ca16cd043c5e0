//! The fake Gemini API as a program: prints its address as the first line and serves until it is killed.
//! `fake-gemini-api [PORT]`, a free port without it.

use std::io::{self, Write};

use gembridge_testkit::gemini_api::FakeGemini;

#[tokio::main]
async fn main() -> io::Result<()> {
    let port = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(|_| io::Error::other(format!("`{text}` is not a port; write `8090`")))?,
        None => 0,
    };
    let api = FakeGemini::start_on(port).await?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", api.url())?;
    stdout.flush()?;
    drop(stdout);
    std::future::pending().await
}
