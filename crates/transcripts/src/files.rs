//! Folders and files of the agents: only ever read, and only regular files.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::lines::{Line, Lines};
use crate::output::Output;

/// How much of a file is looked at to know whose session it is.
const HEAD: u64 = 256 << 10;

/// What lies in a folder, by name. A folder that is not there is empty; links to folders are followed, since people
/// move their settings about that way.
pub(crate) fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir()).collect()
}

/// The regular files of a folder, by name. Neither links nor pipes: what a session file is must not lead elsewhere.
pub(crate) fn regular_files(folder: &Path) -> Vec<PathBuf> {
    let is_regular = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    entries(folder).into_iter().filter(is_regular).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// When a file was last written, in milliseconds since 1970.
pub(crate) fn modified(path: &Path) -> u64 {
    let written = fs::metadata(path).and_then(|found| found.modified()).ok();
    let since = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

/// How large a file is, and when it was last written.
pub(crate) fn size_and_time(path: &Path) -> Option<(u64, SystemTime)> {
    let found = fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()?))
}

pub(crate) fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// A small text file that an agent wrote beside its sessions.
pub(crate) fn small_text(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    (found.is_file() && found.len() <= 4 << 20).then(|| fs::read_to_string(path).ok())?
}

/// A session file, unpacked where it is packed.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = File::open(path)?;
    if path.extension().is_some_and(|extension| extension == "zst") {
        let unpacked = ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?;
        return Ok(Box::new(BufReader::with_capacity(64 << 10, unpacked)));
    }
    Ok(Box::new(BufReader::with_capacity(256 << 10, file)))
}

/// Tells the system to read a file into its cache. Only a hint: whoever reads the file reports what is wrong with it.
pub(crate) fn fetch_ahead(path: &Path) {
    if let Ok(file) = File::open(path) {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::WillNeed).ok();
    }
}

/// Hands every line of a file to `each`. What cannot be read is told to `out`.
pub(crate) fn for_each_line(path: &Path, out: &mut Output<'_>, mut each: impl FnMut(&str, &mut Output<'_>)) {
    out.at_file(path);
    let mut lines = match open(path) {
        Ok(reader) => Lines::new(reader),
        Err(error) => return out.damaged_file(&format!("cannot be opened: {error}")),
    };
    loop {
        match lines.next() {
            Ok(Some((number, line))) => {
                out.at_line(number);
                match line {
                    Line::Text(text) => each(text, out),
                    Line::Damaged(reason) => out.damaged_line(&reason),
                }
            }
            Ok(None) => return,
            Err(error) => return out.damaged_file(&format!("cannot be read to its end: {error}")),
        }
    }
}

/// Looks at the first lines of a file until `look` has found what it wants. Lines that are no JSON are passed over:
/// whoever reads the session reports them.
pub(crate) fn look_at_head<T>(path: &Path, mut look: impl FnMut(&serde_json::Value) -> Option<T>) -> Option<T> {
    let mut lines = Lines::new(BufReader::new(open(path).ok()?.take(HEAD)));
    while let Ok(Some((_, line))) = lines.next() {
        if let Line::Text(text) = line
            && let Ok(record) = serde_json::from_str(text)
            && let Some(found) = look(&record)
        {
            return Some(found);
        }
    }
    None
}
