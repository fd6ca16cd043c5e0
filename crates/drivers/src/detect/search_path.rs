//! The folders in which programs are looked for.

use std::path::{Path, PathBuf};

use super::{Probe, glob};
use crate::profile::Environment;

/// Where package and version managers put programs, after PATH. `$NAME` is a variable; a place whose variable is not set is
/// left out. `*` stands for any name, newest version first.
const USUAL: &[&str] = &[
    "$NPM_CONFIG_PREFIX/bin",
    "$npm_config_prefix/bin",
    "$HOME/.npm-global/bin",
    "$HOME/.local/bin",
    "$MISE_DATA_DIR/shims",
    "$HOME/.local/share/mise/shims",
    "$HOME/.local/share/mise/installs/*/*/bin",
    "$NVM_DIR/versions/node/*/bin",
    "$HOME/.nvm/versions/node/*/bin",
    "$VOLTA_HOME/bin",
    "$HOME/.volta/bin",
    "$HOME/.local/share/fnm/node-versions/*/installation/bin",
    "$HOME/.asdf/shims",
    "$PNPM_HOME",
    "$HOME/.local/share/pnpm",
    "$HOME/.bun/bin",
    "$HOME/.yarn/bin",
    "$HOME/.opencode/bin",
    "$HOME/.cargo/bin",
    "$HOME/bin",
    "$HOMEBREW_PREFIX/bin",
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/usr/local/bin",
    "/usr/bin",
    "/snap/bin",
];

/// The folders of PATH. An empty or relative one would depend on where we were started, so it is left out.
pub(super) fn on_path(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let path = environment.get("PATH").map_or("", String::as_str);
    std::env::split_paths(path).filter(|folder| folder.is_absolute())
}

/// The usual places that exist in this environment, globs expanded.
pub(super) fn usual(environment: &Environment, probe: &dyn Probe) -> impl Iterator<Item = PathBuf> {
    USUAL
        .iter()
        .filter_map(|place| with_variable(place, environment))
        .flat_map(move |place| glob::expand(&place, probe))
}

fn with_variable(place: &str, environment: &Environment) -> Option<PathBuf> {
    let Some(rest) = place.strip_prefix('$') else { return Some(PathBuf::from(place)) };
    let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
    let base = Path::new(environment.get(name)?);
    // The pattern is ours; a star in the value is a letter of a folder's name, and such folders are left out.
    let plain = base.is_absolute() && !base.to_string_lossy().contains('*');
    plain.then(|| if below.is_empty() { base.to_owned() } else { base.join(below) })
}
