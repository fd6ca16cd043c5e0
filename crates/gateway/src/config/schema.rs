//! What keys there are, read off the structs: for `config schema`, for unknown keys and for the names of variables.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::key::Key;
use super::settings::Settings;

/// The JSON schema of `gembridge.toml`.
pub fn json() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Settings>().to_value()
}

/// One level of the tree of keys.
#[derive(Clone, Debug)]
pub enum Node {
    /// Keys that are fixed.
    Section(Vec<(String, Node)>),
    /// Keys that the operator chooses, all of one shape.
    Names(Box<Node>),
    /// A value.
    Leaf,
}

impl Node {
    /// The whole tree.
    pub fn root() -> Self {
        let generator = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        Self::read(&generator.into_generator().into_root_schema_for::<Settings>().to_value())
    }

    fn read(schema: &Value) -> Self {
        if let Some(properties) = schema["properties"].as_object() {
            return Self::Section(properties.iter().map(|(name, inner)| (name.clone(), Self::read(inner))).collect());
        }
        // A map whose keys have a shape of their own lists its values under that shape.
        let by_shape = schema["patternProperties"].as_object().and_then(|shapes| shapes.values().next());
        match by_shape.unwrap_or(&schema["additionalProperties"]) {
            inner @ Value::Object(_) => Self::Names(Box::new(Self::read(inner))),
            _ => Self::Leaf,
        }
    }

    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Section(entries) => entries.iter().find(|(known, _)| known == name).map(|(_, node)| node),
            Self::Names(inner) => Some(inner),
            Self::Leaf => None,
        }
    }

    /// The values with fixed names, in the whole tree below.
    pub fn leaves(&self) -> Vec<Key> {
        let mut found = Vec::new();
        self.collect_leaves(&Key::default(), &mut found);
        found
    }

    fn collect_leaves(&self, at: &Key, found: &mut Vec<Key>) {
        match self {
            Self::Section(entries) => {
                for (name, node) in entries {
                    node.collect_leaves(&at.child(name), found);
                }
            }
            Self::Names(_) => {}
            Self::Leaf => found.push(at.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_every_section_and_its_values() {
        let root = Node::root();
        let leaves: Vec<_> = root.leaves().iter().map(Key::to_string).collect();
        for key in ["default.agent", "server.port", "auth.bearer_token", "log.errors_file", "permissions.policy"] {
            assert!(leaves.contains(&key.to_owned()), "{key} is missing in {leaves:?}");
        }
        assert!(!leaves.iter().any(|key| key.starts_with("agents")), "names of agents are the operator's");
        let agent = root.get("agents").and_then(|agents| agents.get("mine")).unwrap();
        assert!(agent.get("command").is_some() && agent.get("comand").is_none());
    }
}
