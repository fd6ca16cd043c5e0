//! Standard input, line by line, without holding up anything else.

use std::io::{self, BufRead as _, Read as _};

use tokio::sync::mpsc;

/// A longer line is a file that somebody pasted by mistake; it is cut here.
const LONGEST_LINE: u64 = 10 << 20;

/// Lines typed ahead that are kept.
const TYPED_AHEAD: usize = 16;

pub struct Input {
    lines: mpsc::Receiver<String>,
}

impl Input {
    /// The thread ends with the program: a read of a terminal cannot be interrupted.
    pub fn start() -> io::Result<Self> {
        let (sender, lines) = mpsc::channel(TYPED_AHEAD);
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || read(&sender))?;
        Ok(Self { lines })
    }

    /// An input that is at its end already.
    pub fn none() -> Self {
        Self { lines: mpsc::channel(1).1 }
    }

    /// The next line, without its end; `None` at the end of the input.
    pub async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// Forgets what was typed ahead: it was not meant for a question that came later.
    pub fn forget_typed_ahead(&mut self) {
        while self.lines.try_recv().is_ok() {}
    }
}

fn read(lines: &mpsc::Sender<String>) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut bytes = Vec::new();
        match stdin.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}
