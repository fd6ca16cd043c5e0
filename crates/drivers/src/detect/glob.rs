//! `*` in a path, really expanded: one component at a time, newest version first.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use super::Probe;
use crate::profile::Version;

/// Every path that the pattern stands for. `*` is a whole component; a pattern without one stands for itself.
pub(super) fn expand(pattern: &Path, probe: &dyn Probe) -> Vec<PathBuf> {
    pattern.components().fold(vec![PathBuf::new()], |folders, component| {
        if component.as_os_str() != "*" {
            return folders.into_iter().map(|folder| folder.join(component)).collect();
        }
        folders
            .iter()
            .flat_map(|folder| newest_first(probe.entries(folder)).into_iter().map(|name| folder.join(name)))
            .collect()
    })
}

/// By version where a name has one, as numbers; the others after them, by name.
fn newest_first(mut names: Vec<String>) -> Vec<String> {
    names.sort_by_cached_key(|name| (Reverse(Version::find_in(name)), name.clone()));
    names
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{expand, newest_first};
    use crate::detect::Disk;

    #[test]
    fn newer_versions_come_first_by_number_and_not_by_text() {
        let names = ["v9.1.0", "latest", "v22.1.0", "v22.11.0", "lts"].map(str::to_owned).to_vec();
        assert_eq!(newest_first(names), ["v22.11.0", "v22.1.0", "v9.1.0", "latest", "lts"]);
    }

    #[test]
    fn stars_are_expanded_from_the_disk_and_plain_paths_stay() {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["node/v1.0.0/bin", "node/v2.0.0/bin", "python/v3.0.0/bin"] {
            std::fs::create_dir_all(temp.path().join(folder)).unwrap();
        }
        let expanded = expand(&temp.path().join("*/*/bin"), &Disk);
        let wanted = ["node/v2.0.0/bin", "node/v1.0.0/bin", "python/v3.0.0/bin"].map(|folder| temp.path().join(folder));
        assert_eq!(expanded, wanted);
        assert!(expand(&temp.path().join("missing/*"), &Disk).is_empty());
        assert_eq!(expand(Path::new("/a/b"), &Disk), [Path::new("/a/b")]);
    }
}
