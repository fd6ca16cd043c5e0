//! What a person or a pipe types, one line when one is asked for, without holding up anything else.
//!
//! One thread reads, since a read of a terminal cannot be interrupted. It reads only when it is asked to: what is typed
//! meanwhile stays in the terminal, where it is edited with the next prompt.

use std::io::{self, BufRead as _, Read as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::mpsc;

use super::line_editor::LineEditor;
use crate::terminal;

/// A longer line is a file that was pasted by mistake; it is cut here.
const LONGEST_LINE: u64 = 10 << 20;

pub struct Input {
    reader: Reader,
}

enum Reader {
    Thread {
        requests: SyncSender<Request>,
        typed: mpsc::Receiver<Typed>,
        /// A line was asked for and is not there yet.
        is_asked: bool,
    },
    /// There is nothing to read.
    Ended,
}

/// How the next line is read.
enum Request {
    /// With history, cursor keys and completion, behind this prompt.
    Edited(String),
    Plain,
}

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    Line(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    /// The input is at its end.
    End,
}

impl Input {
    /// Lines as they come: a pipe, or answers to questions.
    pub fn plain() -> io::Result<Self> {
        Self::start(None)
    }

    /// Prompts are typed into a line editor.
    pub fn edited(editor: LineEditor) -> io::Result<Self> {
        Self::start(Some(editor))
    }

    /// An input that is at its end already.
    pub fn none() -> Self {
        Self { reader: Reader::Ended }
    }

    fn start(editor: Option<LineEditor>) -> io::Result<Self> {
        let (requests, asked) = sync_channel(1);
        let (sender, typed) = mpsc::channel(1);
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || read(editor, &asked, &sender))?;
        Ok(Self { reader: Reader::Thread { requests, typed, is_asked: false } })
    }

    /// The next prompt that is typed. A line that was asked for before and is still being typed is taken for it.
    pub async fn prompt(&mut self, prompt: &str) -> Typed {
        if matches!(&self.reader, Reader::Thread { is_asked: true, .. }) && terminal::print(prompt).is_err() {
            return Typed::End;
        }
        self.ask(Request::Edited(prompt.to_owned())).await
    }

    /// The next line, without its end.
    pub async fn line(&mut self) -> Typed {
        self.ask(Request::Plain).await
    }

    async fn ask(&mut self, request: Request) -> Typed {
        let Reader::Thread { requests, typed, is_asked } = &mut self.reader else { return Typed::End };
        // There is room for one request, and there is one at a time.
        if !*is_asked && requests.send(request).is_err() {
            return Typed::End;
        }
        *is_asked = true;
        let line = typed.recv().await;
        *is_asked = false;
        line.unwrap_or(Typed::End)
    }
}

fn read(mut editor: Option<LineEditor>, requests: &Receiver<Request>, typed: &mpsc::Sender<Typed>) {
    while let Ok(request) = requests.recv() {
        let line = match (request, &mut editor) {
            (Request::Edited(prompt), Some(editor)) => editor.line(&prompt),
            (Request::Edited(_) | Request::Plain, _) => plain_line(),
        };
        if typed.blocking_send(line).is_err() {
            return;
        }
    }
}

fn plain_line() -> Typed {
    let mut bytes = Vec::new();
    match io::stdin().lock().by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
        Ok(0) | Err(_) => Typed::End,
        Ok(_) => Typed::Line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned()),
    }
}
