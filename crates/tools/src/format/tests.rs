use super::*;

const CITY: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"size":{"type":"integer"}},"required":["name","size"],"additionalProperties":false}"#;

fn format(schema: &str) -> JsonFormat {
    spec(Some(schema)).unwrap()
}

fn spec(schema: Option<&str>) -> Result<JsonFormat, String> {
    let schema = schema.map(|text| Opaque(Bytes::copy_from_slice(text.as_bytes())));
    JsonFormat::new(&FormatSpec { name: Some("city".into()), description: None, schema })
}

fn object(value: Value) -> JsonObject {
    let Value::Object(object) = value else { panic!("{value} is not an object") };
    object
}

fn text(found: Result<Opaque, String>) -> Result<String, String> {
    found.map(|opaque| String::from_utf8(opaque.0.to_vec()).unwrap())
}

#[test]
fn an_answer_is_found_whole_fenced_or_between_words() {
    let format = format(CITY);
    let bern = r#"{"size": 134, "name": "Bern"}"#;
    for written in [
        bern.to_owned(),
        format!("\n {bern}\n"),
        format!("Here it is:\n```json\n{bern}\n```\nAnything else?"),
        format!("```\n{bern}\n```"),
        format!("The answer is {bern}, I think {{really}}."),
        format!("I weighed [1, 2] and {{\"name\": 3}} first. {bern}"),
        format!("```json\n{{\"draft\": true}}\n```\n```json\n{bern}\n```"),
        format!("{{ not json }} {bern}"),
    ] {
        assert_eq!(text(format.find_in(&written)), Ok(bern.to_owned()), "{written}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let format = format(CITY);
    let wrong = format.find_in(r#"{"name": "Bern", "size": "big"}"#).unwrap_err();
    assert!(wrong.contains("at /size") && wrong.contains("integer"), "{wrong}");
    let wrong = format.find_in(r#"{"name": "Bern"}"#).unwrap_err();
    assert!(wrong.contains("at the answer") && wrong.contains("size"), "{wrong}");
    assert_eq!(format.find_in("I would rather not."), Err("there is no JSON in the answer".to_owned()));
}

#[test]
fn a_complaint_is_bounded() {
    let format = format(r#"{"type":"object","additionalProperties":{"type":"integer"}}"#);
    let many: JsonObject = (0..10_000).map(|n| (format!("key{n}"), Value::from("x".repeat(1_000)))).collect();
    assert!(format.deliver(many).unwrap_err().len() < 5_000);
}

#[test]
fn hostile_text_is_looked_at_in_bounded_time() {
    let format = format(CITY);
    for hostile in ["{".repeat(200_000), "[".repeat(200_000), "```".repeat(60_000), "{\"a\":".repeat(50_000)] {
        assert!(format.find_in(&hostile).is_err());
    }
}

#[test]
fn an_object_is_delivered_as_the_arguments_themselves() {
    let format = format(CITY);
    assert_eq!(serde_json::to_string(&*format.tool().input_schema).unwrap(), CITY);
    let delivered = format.deliver(object(json!({"size": 1, "name": "x", "wait_for_previous": false})));
    assert_eq!(text(delivered), Ok(r#"{"size":1,"name":"x"}"#.to_owned()));
    assert!(format.deliver(object(json!({"size": 1}))).is_err());
    assert!(format.instruction().contains(ANSWER));
}

#[test]
fn what_is_no_object_is_delivered_as_one_argument() {
    let format = format(
        r##"{"type":"array","items":{"$ref":"#/$defs/tree"},"$defs":{"tree":{"type":"object","properties":{"kids":{"$ref":"#"}}}}}"##,
    );
    let tool = format.tool();
    assert_eq!(
        serde_json::to_string(&*tool.input_schema).unwrap(),
        r##"{"$defs":{"tree":{"type":"object","properties":{"kids":{"$ref":"#/properties/data"}}}},"type":"object","properties":{"data":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["data"],"additionalProperties":false}"##
    );
    let whole = Value::Object((*tool.input_schema).clone());
    let check = jsonschema::validator_for(&whole).unwrap();
    assert!(check.is_valid(&json!({"data": [{"kids": [{}]}]})));
    assert!(!check.is_valid(&json!({"data": [{"kids": 7}]})));

    let delivered = format.deliver(object(json!({"data": [{"kids": []}]})));
    assert_eq!(text(delivered), Ok(r#"[{"kids":[]}]"#.to_owned()));
    assert!(format.deliver(object(json!({"kids": []}))).unwrap_err().contains("`data`"));
    assert_eq!(text(format.find_in("Sure: [{\"kids\": []}]")), Ok("[{\"kids\": []}]".to_owned()));
}

#[test]
fn a_form_that_is_only_a_reference_is_wrapped_and_still_checked() {
    let format = format(r##"{"$ref":"#/definitions/n","definitions":{"n":{"type":"integer"}}}"##);
    assert_eq!(text(format.deliver(object(json!({"data": 4})))), Ok("4".to_owned()));
    assert!(format.deliver(object(json!({"data": "4"}))).is_err());
}

#[test]
fn without_a_schema_any_object_will_do() {
    let any = spec(None).unwrap();
    assert_eq!(text(any.find_in("so: {\"a\": 1}")), Ok("{\"a\": 1}".to_owned()));
    assert!(any.find_in("[1, 2]").is_err());
    assert_eq!(text(any.deliver(object(json!({"a": 1})))), Ok(r#"{"a":1}"#.to_owned()));
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_with_the_reason() {
    for (schema, reason) in [
        ("{", "not JSON"),
        (r#"{"type":"strin"}"#, "cannot be used"),
        (r#"{"type":"object","properties":7}"#, "cannot be used"),
        (r#"{"type":"string","pattern":"("}"#, "cannot be used"),
        (r##"{"$ref":"#/$defs/missing"}"##, "cannot be used"),
        (r#"{"$ref":"https://example.com/schema.json"}"#, "cannot be used"),
        (r#"{"$ref":"file:///etc/passwd"}"#, "cannot be used"),
        ("[1]", "cannot be used"),
    ] {
        let refused = spec(Some(schema)).unwrap_err();
        assert!(refused.contains(reason), "{schema}: {refused}");
    }
}

/// Each definition refers to the next one twice.
fn doubling(keyword: &str, levels: usize) -> String {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({keyword: [next, next]}));
    }
    definitions.insert(format!("d{levels}"), json!({"type": "object"}));
    json!({"type": "object", "$defs": definitions, "allOf": [{"$ref": "#/$defs/d0"}]}).to_string()
}

#[test]
fn a_schema_that_no_answer_could_be_checked_against_in_time_is_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert!(spec(Some(&doubling(keyword, 10))).is_ok(), "{keyword}");
        let refused = spec(Some(&doubling(keyword, 40))).unwrap_err();
        assert!(refused.contains("refer less often"), "{refused}");
    }
    let chain: Map<_, _> = (0..20_000)
        .map(|link| (format!("d{link}"), json!({"$ref": format!("#/$defs/d{}", link + 1)})))
        .chain([("d20000".to_owned(), json!({}))])
        .collect();
    let chain = json!({"type": "object", "$defs": chain, "allOf": [{"$ref": "#/$defs/d0"}]}).to_string();
    assert!(spec(Some(&chain)).is_err(), "it would take more stack than there is");
}

#[test]
fn an_answer_whose_check_would_not_end_is_refused_and_others_are_not() {
    let node = json!({"properties": {"a": {"$ref": "#"}}});
    let format = format(&json!({"type": "object", "allOf": [node, node]}).to_string());
    let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    assert!(format.deliver(object(nested(8))).is_ok());
    let refused = format.deliver(object(nested(60))).unwrap_err();
    assert!(refused.contains("too deeply"), "{refused}");
    assert!(format.find_in(&nested(60).to_string()).is_err());
}

#[test]
fn schemas_that_refer_to_themselves_check_trees_of_any_usual_size() {
    let tree = r##"{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["value","children"]}"##;
    let list = r##"{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/properties/next"}}}}}"##;
    let deep = (0..30).fold(json!({"value": 1, "children": []}), |inner, n| json!({"value": n, "children": [inner]}));
    let leaf = json!({"value": 1, "children": []});
    let wide = json!({"value": 0, "children": vec![leaf; 20_000]});
    for answer in [deep, wide] {
        assert!(format(tree).deliver(object(answer)).is_ok());
    }
    let linked = (0..50).fold(json!({"next": null}), |inner, _| json!({"next": inner}));
    assert!(format(list).deliver(object(linked)).is_ok());
    let anchored =
        r##"{"type":"object","$anchor":"top","properties":{"a%b":{"$ref":"#top"},"c":{"$ref":"#/properties/a%25b"}}}"##;
    assert!(format(anchored).deliver(object(json!({"c": {}}))).is_ok());
    for outside in [r#"{"$ref":"https://example.org/s"}"#, r##"{"$ref":"#/$defs/none"}"##, r#"{"$ref":"other.json"}"#] {
        assert!(spec(Some(outside)).is_err(), "{outside}");
    }
}
