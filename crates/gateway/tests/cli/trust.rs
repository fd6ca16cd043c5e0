//! `gembridge trust`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::home::Home;

#[test]
fn a_folder_is_trusted_listed_and_forgotten() {
    let home = Home::new();
    assert_eq!(home.run(&["trust", "list"]).succeeds().stdout, "");
    home.run(&["trust", "add", "empty"]).succeeds();
    let real = fs::canonicalize(home.path("empty")).unwrap();
    assert_eq!(home.run(&["trust", "list"]).succeeds().stdout, format!("{}\n", real.display()));
    assert_eq!(home.run(&["trust", "list", "--json"]).succeeds().json()[0], real.to_str().unwrap());
    home.run(&["trust", "remove", "empty"]).succeeds();
    assert_eq!(home.run(&["trust", "list"]).succeeds().stdout, "");
    home.run(&["trust", "remove", "empty"]).refused(2, "is not on the trust list");
}

#[test]
fn s14_the_list_and_its_folder_are_private() {
    let home = Home::new();
    fs::remove_dir_all(home.path(".config")).unwrap();
    home.run(&["trust", "add", "empty"]).succeeds();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.path(".config/gembridge")), 0o700);
    assert_eq!(mode(home.config("trust.toml")), 0o600);
}
