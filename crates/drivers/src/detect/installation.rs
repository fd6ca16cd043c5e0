//! What belongs to an installed program: the files that it cannot run without, beside those of the system.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// An interpreter may be a script of its own, but not for ever.
const MOST_INTERPRETERS: usize = 4;

/// Folders in which package managers keep packages, each with whatever else it needs beside it. The outermost one counts:
/// a package finds what it depends on in any of them.
const PACKAGE_FOLDERS: &[&str] = &["node_modules", ".pnpm"];

/// What stands beside the `bin` of a program. Never the folder above them all: for a program in `~/.local/bin` that one holds the
/// data of everything else.
const BESIDE_BIN: &[&str] = &["lib", "lib64", "libexec", "pyvenv.cfg"];

/// Homebrew keeps its programs in `Cellar` and their libraries beside it.
const CELLAR: &str = "Cellar";
const BESIDE_CELLAR: &[&str] = &["Cellar", "lib", "opt", "etc/ca-certificates", "etc/openssl@3"];

/// The files and folders of a program, links followed: itself, the packages around it, its interpreter and the libraries beside
/// them. Some may not exist. `path` is the `PATH` that the program will have.
pub fn installation(program: &Path, path: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = Some(program.to_owned());
    for _ in 0..MOST_INTERPRETERS {
        let Some(named) = next.take() else { break };
        let Ok(real) = named.canonicalize() else { break };
        // A virtual environment of Python is found by the name of its interpreter, which is a link to that of the system.
        add_surroundings(&named, &mut found);
        if real != named {
            add_surroundings(&real, &mut found);
        }
        next = interpreter(&real, path);
        found.push(real);
    }
    found
}

fn add_surroundings(program: &Path, found: &mut Vec<PathBuf>) {
    let is_packages =
        |folder: &&Path| folder.file_name().is_some_and(|name| PACKAGE_FOLDERS.iter().any(|known| name == *known));
    found.extend(program.ancestors().filter(is_packages).last().map(Path::to_owned));
    let cellar = program.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == CELLAR));
    if let Some(brew) = cellar.and_then(Path::parent) {
        found.extend(BESIDE_CELLAR.iter().map(|name| brew.join(name)));
    }
    let bin = program.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "bin"));
    if let Some(prefix) = bin.and_then(Path::parent) {
        found.extend(BESIDE_BIN.iter().map(|name| prefix.join(name)));
    }
}

/// The program that runs a script, by its first line.
fn interpreter(script: &Path, path: &str) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(script).and_then(|file| file.take(256).read_to_end(&mut start)).ok()?;
    let first_line = start.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let first_line = String::from_utf8_lossy(first_line);
    let mut words = first_line.split_ascii_whitespace();
    let program = Path::new(words.next()?);
    if program.file_name().is_none_or(|name| name != "env") {
        return Some(program.to_owned());
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A home with a program in it, and what of it belongs to the program.
    fn found(files: &[(&str, &str)], links: &[(&str, &str)], program: &str) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let place = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        for (name, text) in files {
            fs::write(place(name), text.replace("HOME", root.to_str().unwrap())).unwrap();
        }
        for (name, target) in links {
            symlink(target, place(name)).unwrap();
        }
        let path = format!("bin:{0}/.local/bin:{0}/node/bin", root.display());
        let inside = installation(&root.join(program), &path).into_iter();
        inside.filter_map(|path| Some(path.strip_prefix(&root).ok()?.display().to_string())).collect()
    }

    #[test]
    fn a_package_of_node_comes_with_its_packages_and_its_interpreter() {
        let package = "node/lib/node_modules/@vendor/agent/cli.js";
        let files = [(package, "#!/usr/bin/env -S node --no-warnings\n"), ("node/bin/node", "\u{7f}ELF")];
        let links = [("node/bin/agent", "../lib/node_modules/@vendor/agent/cli.js")];
        let expected = [
            "node/lib",
            "node/lib64",
            "node/libexec",
            "node/pyvenv.cfg",
            "node/lib/node_modules",
            package,
            "node/lib",
            "node/lib64",
            "node/libexec",
            "node/pyvenv.cfg",
            "node/bin/node",
        ];
        assert_eq!(found(&files, &links, "node/bin/agent"), expected);
    }

    #[test]
    fn of_nested_package_folders_the_outermost_counts() {
        let real = "pnpm/global/5/.pnpm/agent@1/node_modules/agent/cli.js";
        assert_eq!(found(&[(real, "")], &[], real), ["pnpm/global/5/.pnpm", real]);
    }

    #[test]
    fn a_program_in_a_folder_of_many_brings_nothing_of_the_others() {
        let files = [(".local/bin/agent", "#!HOME/venv/bin/python\n"), (".local/state/gembridge/key", "secret")];
        let found = found(&files, &[("venv/bin/python", "/bin/sh")], ".local/bin/agent");
        assert!(found.contains(&".local/bin/agent".to_owned()) && found.contains(&"venv/lib".to_owned()), "{found:?}");
        let open = [".local", ".local/bin", ".local/state", "", "venv"];
        assert!(!found.iter().any(|path| open.contains(&path.as_str())), "{found:?}");
    }

    #[test]
    fn a_program_of_homebrew_comes_with_the_libraries_of_all() {
        let real = "brew/Cellar/agent/1.0/bin/agent";
        let found = found(&[(real, "")], &[("brew/bin/agent", "../Cellar/agent/1.0/bin/agent")], "brew/bin/agent");
        assert!(["brew/Cellar", "brew/opt", real].iter().all(|path| found.contains(&(*path).to_owned())), "{found:?}");
    }

    #[test]
    fn what_is_not_there_has_no_files() {
        assert_eq!(installation(Path::new("/no/such/program"), "/bin"), Vec::<PathBuf>::new());
        assert_eq!(found(&[("loop", "#!HOME/loop\n")], &[], "loop").len(), MOST_INTERPRETERS);
    }
}
