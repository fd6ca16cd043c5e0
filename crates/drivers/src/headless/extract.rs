//! Data in an answer: models wrap it in words and fences, whatever they were told.

use serde_json::Value;

/// The JSON of an answer: all of it, else the first fenced block that is JSON, else the first object or array in the text.
pub fn extract_json(text: &str) -> Option<Value> {
    whole(text).or_else(|| fenced(text)).or_else(|| first(text))
}

fn whole(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim()).ok()
}

fn fenced(text: &str) -> Option<Value> {
    // Every second piece stands between fences; its first line may name the language.
    text.split("```").skip(1).step_by(2).find_map(|block| {
        let body = block.split_once('\n').map_or(block, |(_, body)| body);
        whole(body).or_else(|| whole(block))
    })
}

fn first(text: &str) -> Option<Value> {
    text.match_indices(['{', '[']).find_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter();
        values.next()?.ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_is_found_as_a_whole_in_a_fence_or_among_words() {
        for (text, data) in [
            (" {\"a\": 1} \n", Some(json!({"a": 1}))),
            ("7", Some(json!(7))),
            ("Here:\n```json\n[1, 2]\n```\nDone {\"b\": 2}", Some(json!([1, 2]))),
            ("```\nnot json\n```\nthen ```json {\"a\": 2}```", Some(json!({"a": 2}))),
            ("It is {\"a\": {\"b\": \"}\"}} and {\"c\": 1}.", Some(json!({"a": {"b": "}"}}))),
            ("an {open brace and then [3]", Some(json!([3]))),
            ("nothing at all", None),
            ("{broken", None),
        ] {
            assert_eq!(extract_json(text), data, "{text}");
        }
    }
}
