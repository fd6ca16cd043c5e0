//! Functions of the program that the agent may call.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use gembridge_core::BoxFuture;
use gembridge_core::model::{ClientTool, Content, Opaque, ReturnOutcome, ToolReturn};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A function of the program that the agent may call, by MCP. Arguments are typed by serde, their schema comes of schemars.
///
/// ```
/// use gembridge_sdk::{Tool, ToolError};
/// use gembridge_sdk::schemars::{self, JsonSchema};
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct City {
///     /// As people write it.
///     name: String,
/// }
///
/// let weather = Tool::new("weather", "How the weather is in a city", |city: City| async move {
///     if city.name.is_empty() {
///         return Err(ToolError::failed("which city?"));
///     }
///     Ok(format!("sunny in {}", city.name))
/// });
/// assert_eq!(weather.name(), "weather");
/// ```
#[derive(Clone)]
#[must_use]
pub struct Tool {
    pub(crate) declared: ClientTool,
    run: Arc<Run>,
}

type Run = dyn Fn(Value) -> BoxFuture<'static, Result<String, ToolError>> + Send + Sync;

impl Tool {
    /// A function with typed arguments. A result that is text is told as it is, every other as JSON.
    pub fn new<A, R, F, D>(name: impl AsRef<str>, description: impl AsRef<str>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        F: Fn(A) -> D + Send + Sync + 'static,
        D: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let schema = SchemaGenerator::default().into_root_schema_for::<A>().to_value();
        Self::with_schema(name, description, &schema, move |arguments| {
            let called = serde_path_to_error::deserialize::<_, A>(arguments).map(&function);
            let called = called.map_err(|wrong| ToolError::failed(format!("the arguments do not fit: {wrong}")));
            async move { text_of(&called?.await?) }
        })
    }

    /// A function that takes its arguments as JSON, with a schema of the caller's own.
    pub fn with_schema<F, D>(name: impl AsRef<str>, description: impl AsRef<str>, schema: &Value, function: F) -> Self
    where
        F: Fn(Value) -> D + Send + Sync + 'static,
        D: Future<Output = Result<String, ToolError>> + Send + 'static,
    {
        let declared = ClientTool {
            name: name.as_ref().into(),
            description: Some(description.as_ref().into()),
            schema: Some(Opaque(Bytes::from(schema.to_string()))),
        };
        Self { declared, run: Arc::new(move |arguments| function(arguments).boxed()) }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.declared.name
    }

    /// Runs it with what the agent sent. A panic is a failure of the tool.
    pub(crate) async fn call(&self, arguments: &Opaque) -> Result<String, ToolError> {
        let arguments = match arguments.0.as_ref() {
            b"" | b"null" => Value::Object(serde_json::Map::new()),
            sent => serde_json::from_slice(sent)
                .map_err(|wrong| ToolError::failed(format!("the arguments are not JSON: {wrong}")))?,
        };
        // The function itself may panic, and what it returns may.
        let called = AssertUnwindSafe(async { (self.run)(arguments).await }).catch_unwind().await;
        called.unwrap_or_else(|panic| {
            let words = words_of(panic.as_ref());
            tracing::error!(tool = self.name(), panic = words, "a tool panicked; the agent is told that it failed");
            Err(ToolError::failed(format!("the tool `{}` failed: {words}", self.name())))
        })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.declared.name).finish_non_exhaustive()
    }
}

fn text_of(result: &impl Serialize) -> Result<String, ToolError> {
    match serde_json::to_value(result) {
        Ok(Value::String(text)) => Ok(text),
        Ok(other) => Ok(other.to_string()),
        Err(error) => Err(ToolError::failed(format!("the result cannot be written as JSON: {error}"))),
    }
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

/// Why a tool gives no result. Every error becomes one by `?`, and is told to the agent, which goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    pub(crate) message: String,
    pub(crate) consequence: Consequence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The agent is told, and goes on.
    Told,
    /// The evaluation ends.
    Abort,
}

impl ToolError {
    /// The agent is told this, and goes on.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), consequence: Consequence::Told }
    }

    /// The evaluation ends with this, as an error of the phase `Tool`.
    pub fn abort(message: impl Into<String>) -> Self {
        Self { message: message.into(), consequence: Consequence::Abort }
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::failed(error.to_string())
    }
}

/// What the agent is told of a call.
pub(crate) fn returned(result: &Result<String, String>) -> ToolReturn {
    match result {
        Ok(text) => ToolReturn { outcome: ReturnOutcome::Done, content: vec![Content::text(text.as_str())] },
        Err(message) => ToolReturn::failed(message.as_str()),
    }
}
