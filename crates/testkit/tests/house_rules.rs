//! The rules of ARCHITECTURE.md that a test can hold: who may use whom, and what may stand where.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each crate may use of ours. A crate that is not listed here does not exist.
const EDGES: &[(&str, &[&str])] = &[
    ("api", &["core"]),
    ("cluster", &["core"]),
    ("core", &[]),
    ("process", &[]),
    ("drivers", &["core", "process", "unified"]),
    ("store", &["core"]),
    ("unified", &["core"]),
    ("tools", &["core"]),
    ("transcripts", &["unified"]),
    ("demo", &[]),
    ("testkit", &[]),
    ("sdk", &["core", "process", "drivers", "unified", "tools", "demo"]),
    ("gateway", &["api", "cluster", "core", "process", "drivers", "store", "unified", "transcripts", "tools", "demo"]),
];

/// What a crate must not know, by the name of the library that would teach it.
const STRANGERS: &[(&str, &[&str])] = &[
    ("api", &["rusqlite"]),
    ("core", &["axum", "hyper", "serde_json", "rmcp", "rusqlite", "rustix"]),
    ("cluster", &["axum", "hyper", "rusqlite", "rustix"]),
    ("process", &["axum", "hyper", "serde_json", "serde"]),
    ("unified", &["axum", "hyper", "rusqlite", "rustix"]),
    ("store", &["axum", "hyper"]),
    ("drivers", &["axum", "rusqlite"]),
    ("tools", &["axum", "rusqlite", "rustix"]),
    ("transcripts", &["axum", "hyper", "tokio"]),
    ("sdk", &["axum", "hyper", "rmcp", "rusqlite", "rustix"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The names under `[dependencies]` of a crate, those for tests left out.
fn dependencies(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    manifest["dependencies"].as_table().unwrap().keys().cloned().collect()
}

/// Every Rust file below `folder`, with its text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("target") && !path.ends_with("node_modules") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let shown = path.strip_prefix(root()).unwrap().display().to_string();
                found.push((shown, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "no source below {folder}");
    found
}

fn production_sources() -> Vec<(String, String)> {
    EDGES.iter().flat_map(|(name, _)| sources(&format!("crates/{name}/src"))).collect()
}

/// The text before the tests that stand in the same file.
fn before_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().unwrap_or(text)
}

#[test]
fn every_crate_is_in_the_plan() {
    let planned: BTreeSet<String> = EDGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let there: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, planned, "a new crate is architecture: argue it in ARCHITECTURE.md and name it here");
}

#[test]
fn a_crate_uses_only_what_it_may_know() {
    for (name, allowed) in EDGES {
        let ours: BTreeSet<String> = dependencies(name)
            .into_iter()
            .filter_map(|dependency| dependency.strip_prefix("gembridge-").map(str::to_owned))
            .collect();
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        assert!(ours.is_subset(&allowed), "crates/{name} uses {:?}", ours.difference(&allowed));
    }
}

#[test]
fn a_crate_depends_on_no_library_that_its_place_forbids() {
    for (name, strangers) in STRANGERS {
        let dependencies = dependencies(name);
        for stranger in *strangers {
            assert!(!dependencies.contains(*stranger), "crates/{name} must not know `{stranger}`");
        }
    }
}

#[test]
fn front_ends_core_and_process_know_no_product() {
    for folder in ["crates/api/src", "crates/core/src", "crates/process/src"] {
        for (path, text) in sources(folder) {
            let text = text.to_lowercase();
            for product in ["gemini", "claude", "codex", "qwen", "opencode"] {
                assert!(!text.contains(product), "{path} names `{product}`");
            }
        }
    }
}

/// The folders of `crates/api/src` that each speak one protocol to clients.
const FRONTENDS: &[&str] = &["a2a", "acp", "messages", "ollama", "openai", "responses"];

/// Which modules at the top of `crates/api/src` each of them uses, tests and comments left out.
fn module_uses() -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources("crates/api/src") {
        let module = path.strip_prefix("crates/api/src/").unwrap().split(['/', '.']).next().unwrap().to_owned();
        let code = before_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        let of_module = uses.entry(module.clone()).or_default();
        for line in code {
            let names =
                line.split("crate::").skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_'));
            of_module
                .extend(names.filter_map(|mut name| name.next()).map(str::to_owned).filter(|name| *name != module));
        }
    }
    assert!(uses["guard"].contains("problem"), "the test reads imports: {uses:?}");
    uses
}

#[test]
fn no_frontend_knows_another() {
    let uses = module_uses();
    for frontend in FRONTENDS {
        let others: Vec<&&str> = FRONTENDS.iter().filter(|other| uses[*frontend].contains(**other)).collect();
        assert!(others.is_empty(), "crates/api/src/{frontend} uses {others:?}");
    }
}

#[test]
fn the_modules_of_the_api_use_each_other_in_one_direction() {
    let uses = module_uses();
    for module in uses.keys() {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&String> = uses[module].iter().collect();
        while let Some(used) = next.pop() {
            assert_ne!(used, module, "crates/api/src/{module} is used by what it uses: {reached:?}");
            if reached.insert(used) {
                next.extend(uses.get(used).into_iter().flatten());
            }
        }
    }
}

#[test]
fn a_file_fits_in_the_head_and_says_what_it_is() {
    for (path, text) in production_sources() {
        let lines = before_tests(&text).lines().count();
        assert!(lines <= 500, "{path} has {lines} lines before its tests: split it by kind");
        let opens = text.starts_with("//!") || text.starts_with("#![doc") || path.ends_with("tests.rs");
        assert!(opens, "{path} does not say in `//!` what it is");
    }
}

#[test]
fn folders_and_files_are_named_after_what_is_in_them() {
    for (path, _) in production_sources() {
        let stem = Path::new(&path).file_stem().unwrap().to_str().unwrap().to_owned();
        for vague in ["mod", "utils", "util", "common", "helpers", "helper", "manager", "types", "misc"] {
            assert_ne!(stem, vague, "{path}");
        }
    }
}

#[test]
fn s9_no_sql_is_put_together_from_text() {
    let both = ["crates/store/src", "crates/transcripts/src"].into_iter().flat_map(sources);
    for (path, text) in both {
        for call in ["execute(", "execute_batch(", "query(", "query_row(", "query_map(", "prepare(", "prepare_cached("]
        {
            for (at, _) in text.match_indices(call) {
                let arguments: String = text[at + call.len()..].chars().take(40).collect();
                assert!(!arguments.trim_start().starts_with("&format!"), "{path}: {call}{arguments}");
                assert!(!arguments.trim_start().starts_with("format!"), "{path}: {call}{arguments}");
            }
        }
    }
}

/// The one module that may have `unsafe` in it.
const UNSAFE: &str = "crates/store/src/disk/sys.rs";

#[test]
fn s32_unsafe_code_stands_in_one_module() {
    for (path, text) in production_sources().into_iter().filter(|(path, _)| path != UNSAFE) {
        let found = text.lines().find(|line| line.contains("unsafe {") || line.contains("allow(unsafe_code)"));
        assert_eq!(found, None, "unsafe code outside {UNSAFE}: {path}");
    }
    let blocks = fs::read_to_string(root().join(UNSAFE)).unwrap().matches("unsafe {").count();
    assert_eq!(blocks, 1, "{UNSAFE}: each block is argued, and there is one");
}

#[test]
fn every_quality_line_that_a_test_is_named_after_is_explained() {
    let lines = fs::read_to_string(root().join("docs/quality.md")).unwrap();
    for (path, text) in sources("crates") {
        for name in text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next()) {
            let Some((line, _)) = name.split_once('_') else { continue };
            let digits = line.get(1..).unwrap_or_default().trim_end_matches(|last: char| last.is_ascii_lowercase());
            let is_line = line.starts_with(['b', 'f', 'r', 's'])
                && !digits.is_empty()
                && digits.bytes().all(|digit| digit.is_ascii_digit());
            if is_line {
                let row = format!("| {} |", line[..1].to_uppercase() + &line[1..]);
                assert!(lines.contains(&row), "{path}: `{name}` is named after a line that docs/quality.md lacks");
            }
        }
    }
}

#[test]
fn no_test_is_ignored() {
    // Put together here, so that this file does not find itself.
    let markers = ["#[ign", "todo", "unimplemented"].map(|word| match word {
        "#[ign" => format!("{word}ore"),
        other => format!("{other}!("),
    });
    for (path, text) in sources("crates") {
        for marker in &markers {
            assert!(!text.contains(marker.as_str()), "{path} has `{marker}`");
        }
    }
}

#[test]
fn every_protocol_folder_has_the_same_four_files() {
    for folder in [
        "crates/api/src/acp",
        "crates/api/src/messages",
        "crates/api/src/ollama",
        "crates/api/src/openai",
        "crates/api/src/responses",
        "crates/drivers/src/acp",
        "crates/drivers/src/headless",
        "crates/drivers/src/a2a",
    ] {
        for part in ["wire.rs", "decode.rs", "encode.rs", "error.rs"] {
            assert!(root().join(folder).join(part).exists(), "{folder}/{part} is missing");
        }
    }
}

#[test]
fn every_built_in_agent_is_one_file_of_data_and_nothing_else() {
    let agents: Vec<_> = fs::read_dir(root().join("agents"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    assert!(agents.len() >= 7, "{agents:?}");
    for name in agents {
        assert_eq!(
            Path::new(&name).extension().and_then(|end| end.to_str()),
            Some("toml"),
            "agents/{name} is not data"
        );
    }
}
