//! What clients call a model, and what they get.

use std::collections::BTreeMap;

use gembridge_core::exchange::Unlisted;

use super::agents::Served;
use crate::agents::{self, Agent};
use crate::config::settings::Settings;

/// Names that programs have built in, for the agent that most people have. A name in the settings or in `models.json`
/// wins.
const BUILT_IN: [(&str, &str); 3] =
    [("gpt-3.5-turbo", "gemini-2.5-flash"), ("gpt-4", "gemini-2.5-pro"), ("gpt-4-turbo", "gemini-2.5-pro")];

pub fn mapping(settings: &Settings) -> BTreeMap<String, String> {
    let built_in = BUILT_IN.iter().map(|(name, model)| ((*name).to_owned(), (*model).to_owned()));
    let chosen = settings.models.iter().map(|(name, model)| (name.clone(), model.as_str().to_owned()));
    built_in.chain(chosen).collect()
}

/// What the operator's names stand for may be asked of the agents, also where they do not list it.
pub fn make_known(settings: &Settings, agents: &mut [Agent]) {
    for target in settings.models.values() {
        let target = target.as_str();
        let named = target.split_once('/').and_then(|(name, model)| Some((place_of(name, agents)?, model)));
        let (place, model) = named.unwrap_or((0, target));
        if let Some(agent) = agents.get_mut(place) {
            agent.profile.model.known.push(model.to_owned());
        }
    }
}

/// Parts of the names of models that make or read something else than conversations.
const NO_CONVERSATION: [&str; 11] = [
    "embedding",
    "image",
    "realtime",
    "tts",
    "whisper",
    "dall-e",
    "transcribe",
    "moderation",
    "sora",
    "imagen",
    "-audio",
];

/// What is not in the list of models: the built-in agent beside a real one, and models that hold no conversation.
pub fn unlisted(served: &[Served]) -> Unlisted {
    let (built_in, real): (Vec<_>, Vec<_>) =
        served.iter().partition(|served| agents::is_built_in(&served.agent.profile));
    let agents = if real.is_empty() { Vec::new() } else { built_in.iter().map(|served| served.name.clone()).collect() };
    Unlisted { agents, models: |id| NO_CONVERSATION.iter().any(|part| id.to_ascii_lowercase().contains(part)) }
}

fn place_of(name: &str, agents: &[Agent]) -> Option<usize> {
    agents.iter().position(|agent| agent.profile.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_mapping_wins_over_the_built_in_one() {
        let mut settings = Settings::default();
        settings.models.insert("gpt-4".to_owned(), "mine".parse().unwrap());
        settings.models.insert("fast".to_owned(), "gemini-2.5-flash".parse().unwrap());
        let mapping = mapping(&settings);
        assert_eq!(mapping["gpt-4"], "mine");
        assert_eq!(mapping["fast"], "gemini-2.5-flash");
        assert_eq!(mapping["gpt-4-turbo"], "gemini-2.5-pro");
    }

    #[test]
    fn what_the_operators_names_stand_for_is_known_to_the_agent_that_is_meant() {
        let mut settings = Settings::default();
        settings.models.insert("one".to_owned(), "gemini/new".parse().unwrap());
        settings.models.insert("two".to_owned(), "plain".parse().unwrap());
        let profiles = gembridge_drivers::profile::Profile::builtin().unwrap();
        let agent = |name: &str| {
            let profile = profiles.iter().find(|profile| profile.name == name).unwrap().clone();
            Agent { profile, program: "program".into(), chosen: crate::agents::Chosen::Named }
        };
        let mut agents = [agent("demo"), agent("gemini")];
        make_known(&settings, &mut agents);
        let knows = |place: usize, model: &str| agents[place].profile.model.known.iter().any(|known| known == model);
        assert!(knows(1, "new") && !knows(0, "new"));
        assert!(knows(0, "plain") && !knows(1, "plain"));
    }
}
