//! What an agent does not take in a prompt, told to it in words.

use gembridge_core::model::{Content, PromptAbilities};

/// The prompt as this agent can be given it, and a warning for what it cannot see.
pub(super) fn for_agent(content: Vec<Content>, abilities: PromptAbilities, warnings: &mut Vec<String>) -> Vec<Content> {
    let mut in_words = |content: Content| {
        if abilities.takes(&content) {
            return content;
        }
        match content {
            Content::Image { mime, .. } => {
                warnings.push(format!("the agent takes no images; it was told that there was one (`{mime}`)"));
                Content::text(format!("[An image of the type {mime} was attached here; it cannot be shown to you.]"))
            }
            // Its words are all of it.
            Content::Document { uri, text, .. } => Content::text(format!("[{uri}]\n{}", text.to_str())),
            other => other,
        }
    };
    content.into_iter().map(&mut in_words).collect()
}

#[cfg(test)]
mod tests {
    use gembridge_core::model::Text;

    use super::*;

    fn prompt() -> Vec<Content> {
        vec![
            Content::text("What is this?"),
            Content::Image { mime: "image/png".into(), data: Text::plain("aGk="), uri: None },
            Content::Document { uri: "file:///a.md".into(), mime: None, text: Text::plain("words") },
        ]
    }

    #[test]
    fn what_an_agent_takes_stays_as_it_is() {
        let mut warnings = Vec::new();
        let all = PromptAbilities { image: true, audio: true, embedded: true };
        assert_eq!(for_agent(prompt(), all, &mut warnings), prompt());
        assert_eq!(warnings, Vec::<String>::new());
    }

    #[test]
    fn an_image_is_told_of_with_a_warning_and_a_document_keeps_its_words() {
        let mut warnings = Vec::new();
        let told = for_agent(prompt(), PromptAbilities::default(), &mut warnings);
        let image = "[An image of the type image/png was attached here; it cannot be shown to you.]";
        let expected = ["What is this?", image, "[file:///a.md]\nwords"].map(Content::text);
        assert_eq!(told, expected);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
}
