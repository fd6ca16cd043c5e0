//! The list of tools at one endpoint, as an agent reads it and as its calls are understood.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use gembridge_core::model::{ClientTool, Opaque};
use gembridge_core::tool_host::Offer;
use rmcp::model::{JsonObject, Tool};
use serde_json::Value;

use crate::format::{ANSWER, JsonFormat};
use crate::name::Naming;

/// Arguments that agents add to what a tool declares, for their own use.
const ADDED_BY_AGENTS: [&str; 1] = ["wait_for_previous"];

#[derive(Debug, Default)]
pub struct List {
    shown: Vec<Tool>,
    by_name: HashMap<Arc<str>, Entry>,
    /// What tools are called by their client, where they are shown under another name.
    by_own_name: HashMap<Arc<str>, Arc<str>>,
}

/// What answers to a name.
#[derive(Debug)]
pub enum Entry {
    /// A tool of the client.
    Client { name: Arc<str>, schema: Arc<JsonObject> },
    /// The tool by which the agent delivers its answer.
    Answer(JsonFormat),
}

impl List {
    pub fn new(offer: &Offer, naming: &Naming) -> Self {
        let mut list = Self::default();
        if let Some(spec) = offer.format.as_ref().and_then(|format| format.spec()) {
            // It was made from the same before, so it can be made again.
            match JsonFormat::new(spec) {
                Ok(format) => {
                    list.shown.push(format.tool());
                    list.by_name.insert(ANSWER.into(), Entry::Answer(format));
                }
                Err(error) => tracing::warn!(%error, "an answer's form is not offered to the agent as a tool"),
            }
        }
        for tool in offer.tools.iter() {
            list.add(tool, naming);
        }
        list
    }

    fn add(&mut self, tool: &ClientTool, naming: &Naming) {
        let shown = naming.shown(&tool.name, &self.by_name);
        let schema = Arc::new(object_schema(tool.schema.as_ref()));
        let description = description(tool, &shown);
        self.shown.push(Tool::new_with_raw(shown.to_string(), description, schema.clone()));
        if shown != tool.name {
            self.by_own_name.insert(tool.name.clone(), shown.clone());
        }
        self.by_name.insert(shown, Entry::Client { name: tool.name.clone(), schema });
    }

    /// As the agent reads it, in the order in which the client wrote it.
    pub fn tools(&self) -> Vec<Tool> {
        self.shown.clone()
    }

    pub fn find(&self, called: &str, naming: &Naming) -> Option<&Entry> {
        naming.find(called, &self.by_name).or_else(|| self.by_name.get(naming.find(called, &self.by_own_name)?))
    }
}

/// What the client says of its tool. A model that sees another name is told the client's, which prompts speak of.
fn description(tool: &ClientTool, shown: &str) -> Option<Cow<'static, str>> {
    let own = tool.description.as_deref();
    if *tool.name == *shown {
        return own.map(|text| text.to_owned().into());
    }
    let renamed = format!("The user calls this tool `{}`.", tool.name);
    Some(own.map_or(renamed.clone(), |text| format!("{text}\n\n{renamed}")).into())
}

/// The client's schema as it is. Only where it does not say that the arguments are an object, it is made to say so:
/// agents drop the whole list for one tool that does not.
fn object_schema(schema: Option<&Opaque>) -> JsonObject {
    let parsed = schema.and_then(|schema| serde_json::from_slice::<JsonObject>(&schema.0).ok());
    let mut schema =
        parsed.unwrap_or_else(|| JsonObject::from_iter([("properties".to_owned(), Value::Object(JsonObject::new()))]));
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        schema.insert("type".to_owned(), "object".into());
    }
    schema
}

/// Takes out what an agent added of its own and the tool does not declare.
pub fn without_additions(mut arguments: JsonObject, schema: &JsonObject) -> JsonObject {
    let declared = schema.get("properties").and_then(Value::as_object);
    for added in ADDED_BY_AGENTS {
        if !declared.is_some_and(|declared| declared.contains_key(added)) {
            arguments.shift_remove(added);
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gembridge_core::tool_host::FormatSpec;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, schema: Option<&'static str>) -> ClientTool {
        let schema = schema.map(|text| Opaque(Bytes::from_static(text.as_bytes())));
        ClientTool { name: name.into(), description: Some("does it".into()), schema }
    }

    fn list(tools: Vec<ClientTool>, format: Option<FormatSpec>) -> List {
        let format = format.map(|spec| Arc::new(JsonFormat::new(&spec).unwrap()) as _);
        List::new(&Offer { tools: tools.into(), format }, &Naming::new("gembridge", &[], 64))
    }

    #[test]
    fn a_schema_comes_out_as_it_was_written_with_the_order_of_its_keys() {
        let written = r##"{"type":"object","properties":{"zeta":{"type":"string","x-odd":[1,2.50]},"alpha":{"$ref":"#/$defs/a"}},"required":["zeta"],"$defs":{"a":{"const":null}},"additionalProperties":false}"##;
        let list = list(vec![tool("t", Some(written))], None);
        let shown = serde_json::to_string(&*list.tools()[0].input_schema).unwrap();
        assert_eq!(shown, written.replace("2.50", "2.5"));
    }

    #[test]
    fn a_schema_that_agents_would_drop_the_list_for_says_that_it_is_an_object() {
        let tools = vec![
            tool("none", None),
            tool("bare", Some("{}")),
            tool("odd", Some("true")),
            tool("list", Some(r#"{"type":["object","null"],"title":"T"}"#)),
        ];
        let shown: Vec<_> =
            list(tools, None).tools().iter().map(|tool| Value::Object((*tool.input_schema).clone())).collect();
        assert_eq!(
            shown,
            [
                json!({"properties": {}, "type": "object"}),
                json!({"type": "object"}),
                json!({"properties": {}, "type": "object"}),
                json!({"type": "object", "title": "T"}),
            ]
        );
    }

    #[test]
    fn a_tool_of_the_client_never_takes_the_name_of_the_answer() {
        let any_object = FormatSpec { name: None, description: None, schema: None };
        let list = list(vec![tool(ANSWER, None)], Some(any_object));
        let naming = Naming::new("gembridge", &[], 64);
        assert!(matches!(list.find(ANSWER, &naming), Some(Entry::Answer(_))));
        let shown = list.tools()[1].name.to_string();
        assert_ne!(shown, ANSWER);
        assert!(matches!(list.find(&shown, &naming), Some(Entry::Client { name, .. }) if name.as_ref() == ANSWER));
    }

    #[test]
    fn a_tool_that_is_shown_under_another_name_answers_to_its_own_too() {
        let long = "x".repeat(64);
        let tools = vec![tool("files.read", None), tool(&long, None), tool("read_file", None)];
        let naming = Naming::new("gembridge", &[], 64);
        let list = List::new(&Offer { tools: tools.into(), format: None }, &naming);
        let own = |called: &str| match list.find(called, &naming) {
            Some(Entry::Client { name, .. }) => name.to_string(),
            _ => String::new(),
        };
        let shown = list.tools()[0].name.to_string();
        assert_ne!(shown, "files.read");
        for called in [shown.as_str(), "files.read", "mcp_gembridge_files.read"] {
            assert_eq!(own(called), "files.read", "{called}");
        }
        let described = |at: usize| list.tools()[at].description.clone().unwrap();
        assert_eq!(described(0), "does it\n\nThe user calls this tool `files.read`.");
        assert_eq!(
            (list.tools()[2].name.as_ref(), described(2).as_ref()),
            ("read_file", "does it"),
            "as the client wrote it"
        );
        assert_eq!(own(&format!("mcp_gembridge_{long}")), long);
    }

    #[test]
    fn what_an_agent_adds_is_dropped_unless_the_tool_declares_it() {
        let arguments = || json!({"b": 1, "wait_for_previous": true, "a": 2}).as_object().unwrap().clone();
        let declares = json!({"properties": {"wait_for_previous": {}}}).as_object().unwrap().clone();
        let cleaned = serde_json::to_string(&without_additions(arguments(), &JsonObject::new())).unwrap();
        assert_eq!(cleaned, r#"{"b":1,"a":2}"#);
        assert_eq!(without_additions(arguments(), &declares), arguments());
    }
}
