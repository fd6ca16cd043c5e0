//! What people install, installed as they would: the Debian package and the tarball in a clean root, and the npm package of
//! the client in a folder of its own.
#![expect(clippy::disallowed_methods, reason = "a test of packages installs them")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::home::Home;
use support::script::Script;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// The packages of the binary under test. The one that people get is built with more care, by the same script.
fn packages(out: &Path) -> (PathBuf, PathBuf) {
    let script = repository().join("scripts/package");
    let mut make = Command::new(script);
    make.arg(env!("CARGO_BIN_EXE_gembridge")).arg(out).env("DEB_COMPRESSION", "none");
    let said = done(&mut make);
    let mut lines = said.lines().map(PathBuf::from);
    (lines.next().unwrap(), lines.next().unwrap())
}

/// Everything that must be there after an installation into this root, and that it runs.
fn works_in(root: &Path) {
    for file in [
        "usr/lib/systemd/system/gembridge.service",
        "usr/share/man/man1/gembridge.1.gz",
        "usr/share/man/man1/gembridge-serve.1.gz",
        "usr/share/bash-completion/completions/gembridge",
        "usr/share/zsh/vendor-completions/_gembridge",
        "usr/share/fish/vendor_completions.d/gembridge.fish",
        "usr/share/doc/gembridge/copyright",
    ] {
        assert!(root.join(file).exists(), "`{file}` is missing");
    }
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/gembridge.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/gembridge serve"), "{unit}");
    let page = done(Command::new("gzip").args(["-dc"]).arg(root.join("usr/share/man/man1/gembridge-connect.1.gz")));
    assert!(page.contains("--trust") || page.contains("\\-\\-trust"), "{page}");
    let program = root.join("usr/bin/gembridge");
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        done(Command::new(&program).args(args).env_clear().env("HOME", home.path()).current_dir(home.path()))
    };
    assert!(run(&["--version"]).starts_with(&format!("gembridge {}", env!("CARGO_PKG_VERSION"))));
    assert!(run(&["run", "--agent", "demo", "hello there"]).contains("hello there"), "an answer of the built-in agent");
}

#[test]
fn the_debian_package_and_the_tarball_install_into_a_clean_root_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let (package, tarball) = packages(&folder.path().join("out"));
    let root = folder.path().join("debian");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    // A root without a shell or a C library: the script after the installation cannot run in it, and nothing else is there.
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display())).args(["--force-not-root", "--force-depends", "--log=/dev/null"]);
    done(dpkg.arg("--unpack").arg(&package));
    works_in(&root);
    let listed = done(Command::new("dpkg-deb").args(["--field"]).arg(&package).args(["Package", "Version"]));
    assert!(listed.contains("gembridge") && listed.contains(env!("CARGO_PKG_VERSION")), "{listed}");

    let root = folder.path().join("tarball");
    fs::create_dir(&root).unwrap();
    done(Command::new("tar").arg("-xzf").arg(&tarball).arg("-C").arg(&root));
    works_in(&root);
}

#[test]
fn the_client_is_packed_installed_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--ignore-scripts", "--pack-destination"]).arg(folder.path());
    let packed = done(pack.current_dir(repository().join("web/client")));
    fs::write(folder.path().join("package.json"), "{\"private\": true, \"type\": \"module\"}\n").unwrap();
    let tarball = folder.path().join(packed.trim());
    let mut install = Command::new("npm");
    install.args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]).arg(&tarball);
    done(install.current_dir(folder.path()));
    let program = r#"
        import { AgentChatClient } from "@gembridge/client";
        const client = new AgentChatClient({ url: process.env.URL, key: process.env.KEY });
        client.on("text_delta", ({ role, text }) => role === "agent" && process.stdout.write(text));
        await client.connect();
        const session = await client.newSession({ agent: "demo" });
        const { stopReason } = await client.prompt(session.id, "hello there");
        console.log("\n" + stopReason);
        client.close();
    "#;
    fs::write(folder.path().join("program.js"), program).unwrap();
    let gateway = Home::for_serving().serve();
    let mut node = Command::new(Script::node_program());
    node.arg("program.js")
        .current_dir(folder.path())
        .env("URL", format!("http://{}", gateway.address))
        .env("KEY", &gateway.key);
    let said = done(&mut node);
    assert!(said.contains("hello there") && said.trim_end().ends_with("end_turn"), "{said}");
}
