//! What the demo does with tools that a prompt did not name by a word of the script: a model would decide, it has rules.

use std::rc::Rc;

use super::Turn;
use crate::mcp::Tool;
use crate::sample::Sampler;
use crate::script::Call;

/// The tool that takes the answer itself, where a client wants it in a certain form.
const ANSWER_TOOL: &str = "structured_output";
/// A prompt that wants a tool, whichever it is.
const ANY_TOOL: &str = "one of the tools";
/// Shorter words of a tool's name, such as `get`, stand in too many prompts.
const SHORTEST_WORD: usize = 4;

impl Turn {
    /// Calls the tool that the prompt is about, and delivers the answer in the form that is asked for. Says whether it
    /// did anything.
    pub(super) async fn use_what_is_offered(&self) -> bool {
        let asked = newest(&self.prompt.text);
        let mut fitting = None;
        let mut answer = None;
        for server in self.session.servers().iter() {
            let Ok(tools) = server.known_tools().await else { continue };
            answer = answer.or_else(|| find(&tools, |tool| tool.name == ANSWER_TOOL));
            let is_clients = |tool: &Tool| tool.name != ANSWER_TOOL;
            fitting = fitting.or_else(|| find(&tools, |tool| is_clients(tool) && is_about(asked, &tool.name)));
            if asked.contains(ANY_TOOL) {
                fitting = fitting.or_else(|| find(&tools, is_clients));
            }
        }
        if let Some((tools, at)) = fitting {
            let told = self.call_offered(&tools[at], asked).await;
            if answer.is_none() {
                self.stream(&told).await;
                return true;
            }
        }
        let Some((tools, at)) = answer else { return false };
        self.call_offered(&tools[at], asked).await;
        self.stream("done").await;
        true
    }

    async fn call_offered(&self, tool: &Tool, asked: &str) -> String {
        let arguments = Sampler::new(&tool.input_schema, asked).value();
        self.call(&Call { tool: tool.name.clone(), arguments: Ok(arguments) }).await
    }
}

fn find(tools: &Rc<[Tool]>, wanted: impl Fn(&Tool) -> bool) -> Option<(Rc<[Tool]>, usize)> {
    tools.iter().position(wanted).map(|at| (Rc::clone(tools), at))
}

/// What was said last. In a folded prompt results of tools may follow it: then the tools have been called.
fn newest(prompt: &str) -> &str {
    let newest = prompt.rsplit_once("[User]\n").map_or(prompt, |(_, newest)| newest);
    if newest.contains("\n[Tool]\n") { "" } else { newest }
}

/// Whether a prompt speaks of what a tool is called after.
fn is_about(prompt: &str, tool: &str) -> bool {
    let prompt = prompt.to_lowercase();
    let mut name = String::new();
    for letter in tool.chars() {
        if letter.is_uppercase() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    let words = || prompt.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let about = |part: &str| words().any(|word| word == part || word.strip_suffix('s') == Some(part));
    prompt.contains(&tool.to_lowercase())
        || name.split(|letter: char| !letter.is_alphanumeric()).any(|part| part.len() >= SHORTEST_WORD && about(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_about_a_tool_whose_name_has_one_of_its_words() {
        for (prompt, tool, is) in [
            ("What is the weather in Oslo?", "get_weather", true),
            ("how are the Weathers?", "getWeather", true),
            ("please use add", "add", true),
            ("get me a coffee", "get_weather", false),
            ("whether or not", "get_weather", false),
            ("", "get_weather", false),
        ] {
            assert_eq!(is_about(prompt, tool), is, "{prompt} {tool}");
        }
    }

    #[test]
    fn results_that_are_there_already_are_not_asked_for_again() {
        assert_eq!(newest("[System]\nbe brief\n\n[User]\nthe weather?"), "the weather?");
        assert_eq!(newest("[User]\nthe weather?\n\n[Assistant]\ncalls\n\n[Tool]\nrain"), "");
        assert_eq!(newest("the weather?"), "the weather?");
    }
}
