//! What the library shows of itself, and what it brings along.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Everything public, one line each, file by file: what a reader of the documentation finds.
fn listing() -> String {
    let library = std::fs::read_to_string(folder().join("src/lib.rs")).unwrap();
    let mut lines = Vec::new();
    for module in library.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')) {
        let found = items(&folder().join("src").join(format!("{module}.rs")));
        if !found.is_empty() {
            lines.push(format!("\n# {module}"));
            lines.extend(found);
        }
    }
    lines.join("\n").trim_start().to_owned() + "\n"
}

/// The public items of a file, without their bodies, and the variants of public enums.
fn items(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut found = Vec::new();
    let mut outer = "";
    let mut lines = text.split("\n#[cfg(test)]").next().unwrap_or_default().lines();
    while let Some(line) = lines.next() {
        if !line.is_empty() && !line.starts_with([' ', '}', ')', '/', '#']) {
            outer = line;
        }
        let is_shown = outer.starts_with("pub ") || outer.starts_with("impl");
        let is_variant = outer.starts_with("pub enum")
            && line
                .strip_prefix("    ")
                .is_some_and(|inner| inner.starts_with(|first: char| first.is_ascii_uppercase()));
        if is_variant {
            let name = line.trim().trim_end_matches([',', '{', ' ']);
            found.push(format!("    {name}"));
        }
        if !is_shown || !line.trim_start().starts_with("pub ") {
            continue;
        }
        let mut item = line.to_owned();
        // A signature may take several lines.
        let ends = |item: &str| {
            let last = item.trim_end().chars().last();
            last.is_some_and(|last| matches!(last, '{' | ';' | '}') || (last == ',' && !item.contains("fn ")))
        };
        while !ends(&item) {
            let Some(more) = lines.next() else { break };
            item.push(' ');
            item.push_str(more.trim());
        }
        let indent = if line.starts_with(' ') { "    " } else { "" };
        let item = item.trim().trim_end_matches(['{', ';', ',', ' ']).replace("( ", "(").replace(", )", ")");
        found.push(format!("{indent}{item}"));
    }
    found
}

#[test]
fn the_public_surface_is_as_it_is_written_down() {
    let (written, found) = (folder().join("public-api.txt"), listing());
    let expected = std::fs::read_to_string(&written).unwrap_or_default();
    let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join("public-api.txt");
    std::fs::write(&new, &found).unwrap();
    assert!(
        found == expected,
        "the public surface has changed: look at it, and put `{}` in the place of `{}`",
        new.display(),
        written.display()
    );
    let lines = found.lines().count();
    assert!(lines < 250, "{lines} lines: short enough to be read");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test asks cargo")]
fn nothing_of_the_http_apis_and_of_the_gateway_comes_with_it() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--offline", "-p", "gembridge-sdk", "-e", "normal", "--prefix", "none"]);
    let output = cargo.current_dir(folder()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"gembridge-core"), "{tree}");
    for stranger in
        ["axum", "gembridge", "gembridge-api", "gembridge-store", "gembridge-transcripts", "rusqlite", "clap", "utoipa"]
    {
        assert!(!names.contains(&stranger), "`{stranger}` comes along");
    }
}
