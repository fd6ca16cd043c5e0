//! Puts the built chat page into the binary: a list of the files of `web/dist`, or of none where it was not built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    if dist.join("index.html").is_file() {
        collect(&dist, &mut files)?;
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&dist).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        let file = file.canonicalize()?.to_string_lossy().into_owned();
        writeln!(list, "    ({name:?}, include_bytes!({file:?})),").map_err(io::Error::other)?;
    }
    list.push(']');
    #[expect(clippy::disallowed_methods, reason = "cargo tells a build script by the environment where it may write")]
    let out = std::env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo named no folder to write to"))?;
    fs::write(PathBuf::from(out).join("page_files.rs"), list)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() {
            collect(&path, files)?;
        } else if !is_hidden {
            files.push(path);
        }
    }
    Ok(())
}
