//! The profiles that ship in the binary, and how a profile is read.

use super::{FileError, Profile, ProfileError, layer::Layer, template};

const BUILTIN: &[(&str, &str)] = &[
    ("gemini", include_str!("../../../../agents/gemini.toml")),
    ("claude", include_str!("../../../../agents/claude.toml")),
    ("codex", include_str!("../../../../agents/codex.toml")),
    ("opencode", include_str!("../../../../agents/opencode.toml")),
    ("qwen", include_str!("../../../../agents/qwen.toml")),
    ("goose", include_str!("../../../../agents/goose.toml")),
    ("gemini-a2a", include_str!("../../../../agents/gemini-a2a.toml")),
    ("demo", include_str!("../../../../agents/demo.toml")),
];

impl Profile {
    /// Every profile that ships in the binary, `demo` last.
    pub fn builtin() -> Result<Vec<Self>, ProfileError> {
        BUILTIN.iter().map(|(name, text)| Self::parse(name, text, &format!("agents/{name}.toml"))).collect()
    }

    /// Reads one profile; `file` is what an error calls it.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<Self, ProfileError> {
        check_name(name)?;
        let mut profile: Self = toml::from_str(text).map_err(|error| FileError::from_toml(file, text, &error))?;
        name.clone_into(&mut profile.name);
        profile.check(file, text)?;
        Ok(profile)
    }

    fn check(&self, file: &str, text: &str) -> Result<(), ProfileError> {
        if self.command.names.is_empty() != self.command.own_binary {
            let message = "`names` is empty exactly when `own_binary` is true; name the program";
            return Err(FileError::at_key(file, text, "names", message).into());
        }
        if self.mcp.server_name.contains('_') {
            let message =
                format!("`server_name` is `{}`; leave out `_`, agents cut tool names there", self.mcp.server_name);
            return Err(FileError::at_key(file, text, "server_name", message).into());
        }
        for method in &self.extensions {
            check_extension(&self.name, method)?;
        }
        for value in self.environment.set.values() {
            template::check(&self.name, value)?;
        }
        self.fence.check(&self.name)?;
        let layers = [&self.guest, &self.private_home, &self.trusted, &self.chat, &self.agent];
        layers.into_iter().chain(&self.sandbox).try_for_each(|layer: &Layer| layer.check(&self.name))
    }
}

/// The methods of the protocol itself are never passed through, so that only the names that it leaves to others may be listed.
pub(super) fn check_extension(agent: &str, method: &str) -> Result<(), ProfileError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if method.len() > 1 && method.len() <= 128 && method.starts_with('_') && method.chars().all(fits) {
        return Ok(());
    }
    Err(ProfileError::BadExtension { agent: agent.to_owned(), method: method.escape_debug().to_string() })
}

pub(super) fn check_name(name: &str) -> Result<(), ProfileError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) || name.starts_with('-') {
        return Err(ProfileError::BadName { name: name.to_owned() });
    }
    Ok(())
}
