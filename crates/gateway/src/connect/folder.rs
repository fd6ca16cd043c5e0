//! The folder of an editor: the operator's own agent works in it once it is trusted. Whoever opens a session in one that is not
//! is asked with the first prompt, and whoever gets a session in which the agent does not see the folder is told so in it.

mod question;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::question::{Decision, Question};
use crate::config::trust;

/// What becomes of folders that clients name.
#[derive(Clone, Debug)]
pub enum EditorFolders {
    /// The gateway decides: the key, or the gateway, is not the operator's own.
    AsServed,
    /// The client has no project: the gateway is told of no folder, and its agent works where it works.
    LeftOut,
    /// The agent works in those that the operator trusts.
    Trusted { lists: TrustLists, untrusted: Untrusted },
}

/// Where it is kept which folders are trusted.
#[derive(Clone, Debug)]
pub struct TrustLists {
    /// The config folder, for good.
    pub config: PathBuf,
    /// The state folder, for one session.
    pub state: PathBuf,
}

/// What becomes of a folder that is not on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// It is added.
    Add,
    /// The person at the client is asked with the first prompt.
    Ask,
}

/// What goes where after the client has said something.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Routed {
    pub to_gateway: Vec<String>,
    pub to_client: Vec<String>,
}

impl Routed {
    fn up(line: String) -> Self {
        Self { to_gateway: vec![line], to_client: Vec::new() }
    }
}

/// The folders of one client's sessions.
#[derive(Debug, Default)]
pub(super) struct ClientFolders {
    /// Requests for a session, until they are answered.
    opening: HashMap<String, Opening>,
    /// Sessions whose folder the person was not asked about to the end, by their ids.
    questions: HashMap<String, Question>,
    /// Folders without which the person wants to go on. They are not asked about again.
    declined: HashSet<PathBuf>,
    /// How many questions were asked.
    asked: u64,
}

/// What follows if the agent does not see the folder of a session that is being opened.
#[derive(Debug)]
enum Opening {
    Tell(String),
    Ask(PathBuf),
}

/// Requests and sessions that are remembered at once; for more the client is told nothing.
const MOST_WAITING: usize = 64;

impl ClientFolders {
    /// The client says this.
    pub(super) fn said(&mut self, line: String, folders: &EditorFolders) -> Routed {
        let (lists, untrusted) = match folders {
            EditorFolders::Trusted { lists, untrusted } => (lists, untrusted),
            EditorFolders::AsServed => {
                let changed = self.opened(&line, None);
                return Routed::up(changed.unwrap_or(line));
            }
            EditorFolders::LeftOut => return Routed::up(without_folder(&line).unwrap_or(line)),
        };
        if line.contains("session/new") {
            let changed = self.opened(&line, Some((lists, *untrusted)));
            return Routed::up(changed.unwrap_or(line));
        }
        // Nothing but the beginning of a session is of interest where nothing is in question.
        if self.questions.is_empty() && !question::may_be_answer(&line) {
            return Routed::up(line);
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else { return Routed::up(line) };
        if question::is_answer(&message) {
            return self.answered(&message, lists);
        }
        let session = message["params"]["sessionId"].as_str().unwrap_or_default();
        let Some(question) = self.questions.get_mut(session) else { return Routed::up(line) };
        match message["method"].as_str() {
            Some("session/prompt") => {
                let routed = question.hold(session, line, self.asked);
                self.asked += u64::from(!routed.to_client.is_empty());
                routed
            }
            Some("session/cancel") => {
                let to_client = question.take_back(session);
                Routed { to_gateway: vec![line], to_client }
            }
            Some("session/close" | "session/delete") => {
                self.questions.remove(session);
                Routed::up(line)
            }
            _ => Routed::up(line),
        }
    }

    /// The gateway says this. What the client is to hear after it.
    pub(super) fn heard(&mut self, line: &str) -> Option<String> {
        if self.opening.is_empty() {
            return None;
        }
        let answer: Value = serde_json::from_str(line).ok()?;
        if answer.get("method").is_some() {
            return None;
        }
        let opening = self.opening.remove(&answer["id"].to_string())?;
        let result = &answer["result"];
        let ignored = result["_meta"]["gembridge"]["ignored"].as_array()?;
        if !ignored.iter().any(|what| what == "cwd") {
            return None;
        }
        let session = result["sessionId"].as_str()?;
        match opening {
            Opening::Tell(note) => Some(told(session, &note)),
            Opening::Ask(folder) => {
                if self.questions.len() < MOST_WAITING {
                    self.questions.insert(session.to_owned(), Question::due(folder));
                }
                None
            }
        }
    }

    /// A session is being opened, if this is a request for one. What the gateway is to hear instead, if anything changes.
    fn opened(&mut self, line: &str, trusted: Option<(&TrustLists, Untrusted)>) -> Option<String> {
        if !line.contains("session/new") {
            return None;
        }
        let mut request: Value = serde_json::from_str(line).ok()?;
        if request["method"] != "session/new" {
            return None;
        }
        let folder = PathBuf::from(request["params"]["cwd"].as_str()?);
        // A client without a project names the root.
        folder.parent()?;
        let (opening, works) = match trusted {
            None => (Opening::Tell(as_served(&folder)), false),
            Some((lists, _)) if is_trusted(lists, &folder) => (Opening::Tell(as_served(&folder)), true),
            Some((lists, Untrusted::Add)) => match trust::add(&lists.config, &folder) {
                Ok(_) => (Opening::Tell(as_served(&folder)), true),
                Err(error) => (Opening::Tell(format!("{} ({error})\n\n", unseen(&folder))), false),
            },
            Some((_, Untrusted::Ask)) if self.declined.contains(&folder) => {
                (Opening::Tell(untrusted_note(&folder)), false)
            }
            Some((_, Untrusted::Ask)) => (Opening::Ask(folder), false),
        };
        if self.opening.len() < MOST_WAITING {
            self.opening.insert(request["id"].to_string(), opening);
        }
        if !works {
            return None;
        }
        request["params"]["_meta"]["gembridge"]["work_in_cwd"] = json!(true);
        Some(request.to_string())
    }

    /// The person has decided, or the client cannot ask.
    fn answered(&mut self, message: &Value, lists: &TrustLists) -> Routed {
        let asked = self.questions.iter().find(|(_, question)| question.is_answered_by(message));
        // One that was taken back in the meantime.
        let Some(session) = asked.map(|(session, _)| session.clone()) else { return Routed::default() };
        let Some(Question::Open { folder, call, held, .. }) = self.questions.remove(&session) else {
            return Routed::default();
        };
        let decision = Decision::read(message);
        let trusted = match decision {
            Decision::Trust => trust::add(&lists.config, &folder).map(|_| true),
            Decision::Once => trust::allow_once(&lists.state, &folder).map(|()| true),
            Decision::Without | Decision::Unanswered => Ok(false),
        };
        let works = matches!(trusted, Ok(true));
        let mut to_client = vec![question::settled(&session, &call, works)];
        match trusted {
            Ok(true) => {}
            Ok(false) => {
                if decision == Decision::Unanswered {
                    to_client.push(told(&session, &untrusted_note(&folder)));
                }
                self.declined.insert(folder.clone());
            }
            Err(error) => to_client.push(told(&session, &format!("{} ({error})\n\n", unseen(&folder)))),
        }
        let first = |(at, line): (usize, String)| if works && at == 0 { working_in(&line, &folder) } else { line };
        Routed { to_gateway: held.into_iter().enumerate().map(first).collect(), to_client }
    }
}

/// A request for a session, without the folder that it names.
fn without_folder(line: &str) -> Option<String> {
    if !line.contains("session/new") {
        return None;
    }
    let mut request: Value = serde_json::from_str(line).ok()?;
    if request["method"] != "session/new" {
        return None;
    }
    request["params"].as_object_mut()?.remove("cwd")?;
    Some(request.to_string())
}

/// The prompt, with the wish that its session works in the folder.
fn working_in(line: &str, folder: &Path) -> String {
    let Ok(mut prompt) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    prompt["params"]["_meta"]["gembridge"]["work_in"] = json!(folder);
    prompt.to_string()
}

/// A piece of the agent's answer that the relay says.
fn told(session: &str, note: &str) -> String {
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": note}});
    question::update(session, &update)
}

fn is_trusted(lists: &TrustLists, folder: &Path) -> bool {
    trust::Trust::load(&lists.config).is_ok_and(|list| list.covers(folder))
}

fn unseen(folder: &Path) -> String {
    format!("gembridge: the agent does not see `{}` and has no tools here.", folder.display())
}

fn as_served(folder: &Path) -> String {
    format!(
        "{} The gateway serves it as a model (`mode = \"agent\"` of its settings lets it work in a folder).\n\n",
        unseen(folder)
    )
}

fn untrusted_note(folder: &Path) -> String {
    let shown = folder.display();
    format!(
        "{} To let it work there, run `gembridge trust add '{shown}'`, or start `gembridge connect --trust`, and begin a new \
         session.\n\n",
        unseen(folder)
    )
}
