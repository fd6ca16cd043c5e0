//! What clients call a model, and what they get.

use std::collections::BTreeMap;

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
}
