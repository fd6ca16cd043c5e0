//! A history as one prompt, for an agent that has not heard it.

use super::said::{Part, Role, Said, Words};
use crate::model::{Content, Prompt};

/// A history in one prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    pub prompt: Prompt,
    /// Messages that did not fit.
    pub left_out: usize,
}

/// Puts a conversation into one prompt of about `budget` bytes: blocks with the speaker's name, an empty line between
/// them. What the system says and the last message of the user are always whole, and so are the newest calls with their
/// results, since those are what is new; of the rest, the newest that fit.
/// A conversation that is one message of the user needs no blocks.
pub fn fold(conversation: &[Said<'_>], budget: usize) -> Folded {
    if let [only] = conversation
        && only.role == Role::User
    {
        return Folded { prompt: spoken(conversation), left_out: 0 };
    }
    let last_user = conversation.iter().rposition(|said| said.role == Role::User);
    let last_answer = conversation.iter().rposition(|said| said.role == Role::Assistant);
    let results = last_answer.filter(|answer| conversation[*answer..].iter().any(|said| said.role == Role::Tool));
    let is_result = |at: usize| results.is_some_and(|first| at >= first);
    let is_kept_always = |at: usize| conversation[at].role == Role::System || Some(at) == last_user || is_result(at);
    let cost = |at: usize| conversation[at].len() + HEADING;
    let whole: usize = (0..conversation.len()).filter(|at| is_kept_always(*at)).map(cost).sum();
    let mut room = budget.saturating_sub(whole);
    let mut first = conversation.len();
    while first > 0 {
        let at = first - 1;
        if !is_kept_always(at) {
            match room.checked_sub(cost(at)) {
                Some(rest) => room = rest,
                None => break,
            }
        }
        first = at;
    }
    let is_kept = |at: usize| at >= first || is_kept_always(at);
    let mut blocks = Blocks::default();
    for said in (0..conversation.len()).filter(|at| is_kept(*at)).map(|at| &conversation[at]) {
        blocks.speaker(said.role);
        blocks.add(said);
    }
    let left_out = (0..conversation.len()).filter(|at| !is_kept(*at)).count();
    Folded { prompt: blocks.into_prompt(), left_out }
}

/// What is new in a conversation that the agent knows: the user's messages as they are; anything else with its
/// speaker's name.
pub fn spoken(news: &[Said<'_>]) -> Prompt {
    let mut blocks = Blocks::default();
    let named = news.iter().any(|said| said.role != Role::User);
    for said in news {
        if named {
            blocks.speaker(said.role);
            blocks.add(said);
        } else {
            blocks.flush();
            match &said.words {
                Words::Text(text) => blocks.content.push(Content::text(*text)),
                Words::Parts(parts) => blocks.content.extend(parts.iter().map(|part| match part {
                    Part::Text(text) => Content::text(*text),
                    Part::Media(media) => media.to_content(),
                    Part::Call { .. } | Part::ResultOf(_) => Content::text(in_words(part)),
                })),
            }
        }
    }
    blocks.into_prompt()
}

/// The same with every speaker's name: what stands beside something else in one message.
pub fn named(news: &[Said<'_>]) -> Vec<Content> {
    let mut blocks = Blocks::default();
    for said in news {
        blocks.speaker(said.role);
        blocks.add(said);
    }
    blocks.into_prompt().content
}

/// A part as the agent reads it, where it is no media.
pub(super) fn in_words(part: &Part<'_>) -> String {
    match part {
        Part::Text(text) => (*text).to_owned(),
        Part::Media(_) => String::new(),
        Part::Call { call, arguments } => format!("called the tool {call} with {arguments}"),
        Part::ResultOf(call) => format!("{call} gave back:"),
    }
}

/// Who speaks first in a prompt that is made of blocks with their speakers' names.
pub(super) fn first_speaker(prompt: &Prompt) -> Option<Role> {
    let Some(Content::Text(text)) = prompt.content.first() else { return None };
    let text = text.to_str();
    Role::ALL.into_iter().find(|role| text.starts_with(role.heading()))
}

/// What the system says before anybody else does, in a prompt that is made of blocks.
pub(super) fn system_of(prompt: &Prompt) -> Vec<Content> {
    let mut system = Vec::new();
    if first_speaker(prompt) != Some(Role::System) {
        return system;
    }
    for content in &prompt.content {
        let Content::Text(text) = content else {
            system.push(content.clone());
            continue;
        };
        let text = text.to_str();
        match next_speaker(&text) {
            None => system.push(content.clone()),
            Some(0) => break,
            Some(end) => {
                system.push(Content::text(&text[..end]));
                break;
            }
        }
    }
    system
}

/// Where somebody else than the system has the word.
fn next_speaker(text: &str) -> Option<usize> {
    let others = || Role::ALL.into_iter().filter(|role| *role != Role::System);
    if others().any(|role| text.starts_with(role.heading())) {
        return Some(0);
    }
    let gaps = text.match_indices("\n\n");
    gaps.map(|(gap, _)| gap).find(|gap| others().any(|role| text[gap + 2..].starts_with(role.heading())))
}

/// About what the name of a speaker and the lines around it take.
const HEADING: usize = 16;

impl Role {
    const ALL: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Tool];

    fn heading(self) -> &'static str {
        match self {
            Self::System => "[System]\n",
            Self::User => "[User]\n",
            Self::Assistant => "[Assistant]\n",
            Self::Tool => "[Tool]\n",
        }
    }
}

/// A prompt in the making: text gathers until something else comes.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    content: Vec<Content>,
    text: String,
}

impl Blocks {
    pub(super) fn speaker(&mut self, role: Role) {
        self.gap();
        self.text.push_str(role.heading());
    }

    /// A prompt as a message of the user; one that names its speakers itself as it stands.
    pub(super) fn prompt(&mut self, prompt: &Prompt) {
        match first_speaker(prompt) {
            Some(_) => self.gap(),
            None => self.speaker(Role::User),
        }
        self.lines(&prompt.content);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.content.is_empty() && self.text.is_empty()
    }

    fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
    }

    fn add(&mut self, said: &Said<'_>) {
        let mut follows_text = false;
        for part in said.parts() {
            match part {
                Part::Media(media) => {
                    self.flush();
                    self.content.push(media.to_content());
                    follows_text = false;
                }
                part => {
                    if follows_text {
                        self.text.push('\n');
                    }
                    match part {
                        Part::Text(text) => self.text.push_str(text),
                        other => self.text.push_str(&in_words(&other)),
                    }
                    follows_text = true;
                }
            }
        }
    }

    /// Goes on where the text stands.
    pub(super) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn new_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Blocks of a message as they were sent, those of text on lines of their own.
    pub(super) fn lines(&mut self, content: &[Content]) {
        for block in content {
            if let Content::Text(text) = block {
                self.new_line();
                self.text.push_str(&text.to_str());
            } else {
                self.flush();
                self.content.push(block.clone());
            }
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.content.push(Content::text(std::mem::take(&mut self.text)));
        }
    }

    pub(super) fn into_prompt(mut self) -> Prompt {
        self.flush();
        Prompt { content: self.content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Content {
        Content::Image { mime: "image/png".into(), data: "AA==".into(), uri: None }
    }

    #[test]
    fn the_system_has_the_word_until_somebody_else_takes_it() {
        let text = Content::text;
        for (prompt, system) in [
            (vec![text("[System]\na\n\nb\n\n[User]\nc\n\n[User]\nd")], vec![text("[System]\na\n\nb")]),
            (vec![text("[System]\na\n\n[System]\nb\n\n[Tool]\nc")], vec![text("[System]\na\n\n[System]\nb")]),
            (vec![text("[System]\na"), text("[User]\nb")], vec![text("[System]\na")]),
            (
                vec![text("[System]\na"), image(), text("b\n\n[Assistant]\nc"), image()],
                vec![text("[System]\na"), image(), text("b")],
            ),
            (vec![text("[System]\na")], vec![text("[System]\na")]),
            (vec![text("[System] a\n\n[User]\nb")], vec![]),
            (vec![text("[User]\na\n\n[System]\nb")], vec![]),
            (vec![image(), text("[System]\na")], vec![]),
            (vec![], vec![]),
        ] {
            let prompt = Prompt { content: prompt };
            assert_eq!(system_of(&prompt), system, "{prompt:?}");
        }
    }
}
