//! The files that hold what the operator decided, damaged: nothing panics, whatever stands in them.

use gembridge_testkit::fuzz::{Fuzz, signature};

use super::Folders;
use super::trust::Trust;
use crate::keys::KeyFile;
use crate::origins::OriginFile;

const WORDS: &[&str] = &[
    "[[keys]]\n",
    "name = \"ann\"\n",
    "digest = \"0000000000000000000000000000000000000000000000000000000000000000\"\n",
    "rank = \"user\"\n",
    "rank = \"admin\"\n",
    "created = \"2026-11-16T10:00:00Z\"\n",
    "limits = { turns = 1, queue = 2, priority = -1 }\n",
    "origins = [\"https://chat.example.org\"]\n",
    "\"chrome-extension://abcdefghijklmnopabcdefghijklmnop\",",
    "folders = [\"/home/ann/project\"]\n",
    "\"\"\"",
    "\\u0000",
];

/// Each file is read as each of the three.
#[test]
fn s31_fuzz_private_files() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("gembridge");
    super::folders::ensure_private(&folder).unwrap();
    let folders = Folders { config: folder.clone(), state: folder.clone(), cache: folder.clone() };
    Fuzz::named("private-files").words(WORDS).check(move |input| {
        let _kept = &root;
        for file in ["keys.toml", "origins.toml", "trust.toml"] {
            std::fs::write(folder.join(file), input).unwrap();
        }
        let keys = KeyFile::load(&folders).map(|keys| (keys.entries().len(), keys.shares().count())).ok();
        let origins = OriginFile::load(&folders).map(|origins| origins.origins().len()).ok();
        let trust = Trust::load(&folder).map(|trust| (trust.folders().len(), trust.covers(&folder))).ok();
        signature(&(keys, origins, trust))
    });
}
