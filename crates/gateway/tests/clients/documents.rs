//! The programs that the documents show, run as they are printed.

use std::fs;
use std::path::PathBuf;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::script::{Script, repository};

/// Every document that people read first.
fn documents() -> Vec<PathBuf> {
    let folder = fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = folder.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain([repository().join("README.md")]).collect()
}

/// The blocks of a language that use a client library, with the address and the key of the gateway.
fn programs(language: &str, gateway: &Gateway) -> Vec<String> {
    let mut found = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let opening = format!("\n```{language}\n");
        let blocks = text.split(&opening).skip(1).filter_map(|rest| rest.split("\n```").next());
        let programs = blocks.filter(|block| block.contains("localhost:11434"));
        found.extend(programs.map(|program| {
            program.replace("localhost:11434", &gateway.address.to_string()).replace("gb-…", &gateway.key)
        }));
    }
    found
}

#[test]
fn every_program_of_the_documents_works_as_it_is_printed() {
    let mut gateway = Home::for_serving().serve();
    let (python, javascript) = (programs("python", &gateway), programs("js", &gateway));
    assert!(!python.is_empty() && !javascript.is_empty(), "the documents show no program");
    let is_acp = |program: &String| program.contains("/acp");
    for (program, script) in python
        .iter()
        .map(|program| (program, Script::python_text(program)))
        .chain(javascript.iter().map(|program| (program, Script::node_text(program))))
    {
        let said = script.succeeds(&gateway, "demo");
        assert!(!is_acp(program) || said.contains("river"), "no answer came: {said}");
    }
    let completing = python.iter().chain(&javascript).filter(|program| !is_acp(program)).count();
    gateway.wait_for("a completion for each program", |gateway| {
        let log = gateway.stderr();
        let routes = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"];
        let asked: usize = routes.iter().map(|route| log.matches(&format!("route={route} status=200")).count()).sum();
        assert!(asked <= completing, "{}", gateway.stderr());
        (asked == completing).then_some(())
    });
}

/// The rows of the tables in `docs/clients.md` that name where a version is pinned: program, version, file.
fn pinned_programs() -> Vec<[String; 3]> {
    let text = fs::read_to_string(repository().join("docs/clients.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `")).map(|line| {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect::<Vec<_>>()
    });
    rows.filter_map(|cells| <[String; 3]>::try_from(cells).ok())
        .filter(|[_, _, file]| file.starts_with("tests/"))
        .collect()
}

#[test]
fn the_programs_that_the_documents_name_are_those_that_the_tests_run() {
    let named = pinned_programs();
    for file in [
        "tests/node/package.json",
        "tests/clients/node/package.json",
        "tests/clients/python/requirements.txt",
        "tests/clients/python/litellm.txt",
    ] {
        let pins = fs::read_to_string(repository().join(file)).unwrap();
        let here: Vec<_> = named.iter().filter(|[_, _, pinned]| pinned == file).collect();
        assert!(!here.is_empty(), "no program of `{file}` is named");
        for [program, version, _] in here {
            let lines = [format!("\"{program}\": \"{version}\""), format!("\n{program}=={version} ")];
            assert!(lines.iter().any(|line| pins.contains(line)), "`{program}` {version} is not what `{file}` pins");
        }
    }
    let agents: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(repository().join("tests/node/package.json")).unwrap()).unwrap();
    for kind in ["dependencies", "optionalDependencies"] {
        for program in agents[kind].as_object().unwrap().keys() {
            assert!(named.iter().any(|[name, ..]| name == program), "`{program}` is run, and no document names it");
        }
    }
}

#[test]
fn the_table_of_whole_programs_is_what_the_tests_run() {
    let text = fs::read_to_string(repository().join("docs/clients.md")).unwrap();
    let (_, rest) = text.split_once("## Whole programs").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let named: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("_does_a_task"))
        .filter_map(|line| line.trim_end_matches(" |").rsplit('`').nth(1))
        .collect();
    let sources = [include_str!("coding_programs.rs"), include_str!("codex.rs")].concat();
    let run: Vec<&str> = sources.split("#[test]\nfn ").skip(1).filter_map(|test| test.split("()").next()).collect();
    assert!(run.iter().all(|test| named.contains(test)), "{run:?} are not all in the table");
    assert!(named.iter().all(|test| run.contains(test)), "{named:?} are not all run");
}
