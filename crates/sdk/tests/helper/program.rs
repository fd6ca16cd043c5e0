//! A program that uses the library and is its own helper. With arguments, an agent that it asks one question: it is killed by
//! a test while the agent works.

use std::error::Error;
use std::time::Duration;

use gembridge_sdk::Adapter;

fn main() -> Result<(), Box<dyn Error>> {
    gembridge_sdk::run_helper();
    let mut words = std::env::args().skip(1);
    let agent = words.next().ok_or("this program is a helper of tests")?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let agent = Adapter::custom("fake", agent).args(words).startup_timeout(Duration::from_mins(3)).build()?;
        println!("{}", agent.evaluate("say working ;; wait-cancel").await?.text);
        Ok(())
    })
}
