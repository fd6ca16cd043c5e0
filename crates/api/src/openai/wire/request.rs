//! The body of `POST /v1/chat/completions`.

use super::object::AnyObject;
use super::object::object;
use super::tool::{FunctionChoiceValue, ToolChoiceValue};
use super::{Bounded, Function, Message, OneOrMany, ResponseFormat, Skipped, Str, Tool, ToolChoice, ToolName, WordOr};

object! {
    /// A request for an answer. Fields that are accepted without effect, and unknown ones, come back by name in the
    /// response header `x-gembridge-ignored`.
    pub struct ChatRequest<'a> {
        /// An agent, `agent/model`, a model's own id, or a mapped name; `GET /v1/models` lists them.
        "model" => model: Str<'a> as [String],
        "messages" => messages: Bounded<Message<'a>, 10_000> as [Vec<Message<'static>>],
        "stream" => stream: bool as [bool],
        "stream_options" => stream_options: StreamOptions<'a> as [StreamOptions<'static>],
        /// How many answers, at most 8; each from a session of its own.
        "n" => n: u64 as [u64],
        /// Up to 4 texts that end the answer before they appear.
        "stop" => stop: OneOrMany<'a, Str<'a>, 4> as [Vec<String>],
        /// Ends the answer after about so many tokens: a character of ASCII counts as a quarter, any other as one.
        "max_tokens" => max_tokens: u64 as [u64],
        /// As `max_tokens`, thoughts included.
        "max_completion_tokens" => max_completion_tokens: u64 as [u64],
        /// Tools that the client runs. A call of one ends the answer; the next request brings its result, and the
        /// agent goes on where it was.
        "tools" => tools: Bounded<Tool<'a>, 256> as [Vec<Tool<'static>>],
        /// What older clients have instead of `tools`.
        "functions" => functions: Bounded<Function<'a>, 256> as [Vec<Function<'static>>],
        /// `auto`, `none`, `required`, or the tools that may be called.
        "tool_choice" => tool_choice: WordOr<'a, ToolChoice<'a>> as [ToolChoiceValue],
        /// `auto`, `none`, or the one to call.
        "function_call" => function_call: WordOr<'a, ToolName<'a>> as [FunctionChoiceValue],
        /// `false`: one call in each answer.
        "parallel_tool_calls" => parallel_tool_calls: bool as [bool],
        "response_format" => response_format: ResponseFormat<'a> as [ResponseFormat<'static>],
        /// Refused: agents do not report them.
        "logprobs" => logprobs: Skipped as [bool],
        /// Refused: agents do not report them.
        "top_logprobs" => top_logprobs: Skipped as [u64],
        /// `text` only.
        "modalities" => modalities: Bounded<Str<'a>, 8> as [Vec<String>],
        "user" => user: Skipped as [String],
        "metadata" => metadata: Skipped as [AnyObject],
        "store" => store: Skipped as [bool],
        "prompt_cache_key" => prompt_cache_key: Skipped as [String],
        "safety_identifier" => safety_identifier: Skipped as [String],
        /// Ignored unless it is `auto` or `default`.
        "service_tier" => service_tier: Str<'a> as [String],
        /// Accepted and ignored.
        "temperature" => temperature: Skipped as [f64],
        /// Accepted and ignored.
        "top_p" => top_p: Skipped as [f64],
        /// Accepted and ignored.
        "seed" => seed: Skipped as [i64],
        /// Accepted and ignored.
        "presence_penalty" => presence_penalty: Skipped as [f64],
        /// Accepted and ignored.
        "frequency_penalty" => frequency_penalty: Skipped as [f64],
        /// Accepted and ignored.
        "logit_bias" => logit_bias: Skipped as [AnyObject],
        /// Accepted and ignored.
        "reasoning_effort" => reasoning_effort: Skipped as [String],
        /// Accepted and ignored.
        "verbosity" => verbosity: Skipped as [String],
    }
}

object! {
    pub struct StreamOptions<'a> {
        "include_usage" => include_usage: bool as [bool],
        "include_obfuscation" => include_obfuscation: Skipped as [bool],
    }
}
