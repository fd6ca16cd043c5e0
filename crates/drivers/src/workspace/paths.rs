//! Paths as an agent writes them, made relative to the root by components. No file is looked at here.

use std::path::{Component, Path, PathBuf};

/// Folders whose content runs or steers programs: a write there is asked about, whatever the mode.
const GUARDED_FOLDERS: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".gemini",
    ".claude",
    ".codex",
    ".qwen",
    ".opencode",
    ".goose",
    ".gembridge",
    ".cursor",
    ".vscode",
    ".idea",
    ".husky",
    ".devcontainer",
    ".github",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".config",
    ".local",
];

/// Files that a shell, a version manager or an agent reads by itself.
const GUARDED_FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".envrc",
    ".env",
    ".npmrc",
    ".yarnrc",
    ".netrc",
    ".pypirc",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".mcp.json",
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    "gembridge.toml",
];

/// `path` relative to the root, component by component; `None` when it is not plainly inside.
pub(super) fn inside(roots: &[PathBuf], path: &str) -> Option<PathBuf> {
    if path.is_empty() || path.contains('\0') {
        return None;
    }
    let path = Path::new(path);
    let relative = if path.is_absolute() { roots.iter().find_map(|root| path.strip_prefix(root).ok())? } else { path };
    let mut clean = PathBuf::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

/// Whether a write to this relative path could make a program do something by itself.
pub(super) fn is_guarded(relative: &Path) -> bool {
    let is_in = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let names: Vec<String> = relative.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    names.iter().any(|name| is_in(GUARDED_FOLDERS, name)) || names.last().is_some_and(|name| is_in(GUARDED_FILES, name))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{inside, is_guarded};

    #[test]
    fn only_what_lies_plainly_inside_the_root_is_taken() {
        let roots = [PathBuf::from("/ws"), PathBuf::from("/real/ws")];
        for (path, expected) in [
            ("a.txt", Some("a.txt")),
            ("./a/./b.txt", Some("a/b.txt")),
            ("/ws/a/b.txt", Some("a/b.txt")),
            ("/real/ws/a", Some("a")),
            ("/ws//a", Some("a")),
            ("/ws", Some("")),
            (".", Some("")),
            ("/ws-evil/a", None),
            ("/wsx", None),
            ("../a", None),
            ("a/../../b", None),
            ("a/../b", None),
            ("/ws/../etc/passwd", None),
            ("/etc/passwd", None),
            ("/proc/self/environ", None),
            ("/", None),
            ("", None),
            ("a\0b", None),
        ] {
            assert_eq!(inside(&roots, path), expected.map(PathBuf::from), "{path:?}");
        }
    }

    #[test]
    fn writes_that_steer_programs_are_guarded() {
        for path in [
            ".git/hooks/pre-commit",
            "sub/.git/config",
            ".gemini/settings.json",
            ".claude/x",
            ".bashrc",
            "home/.zshrc",
            ".GIT/config",
            ".env",
            ".github/workflows/x.yml",
        ] {
            assert!(is_guarded(Path::new(path)), "{path}");
        }
        for path in ["src/main.rs", "git/config", ".gitignore", "docs/.bashrc.md", "environment"] {
            assert!(!is_guarded(Path::new(path)), "{path}");
        }
    }
}
