//! Files through the client: off by default, confined where they are on; terminals and extensions never.

use crate::fixture::Fake;

async fn said(fake: &Fake, script: &str) -> String {
    let adapter = fake.in_workspace(&[]).file_reads(true).file_writes(true).build().unwrap();
    let reply = adapter.evaluate(script).await.unwrap();
    adapter.close().await;
    reply.text
}

#[tokio::test]
async fn files_terminals_and_extensions_are_unknown_methods_by_default() {
    let fake = Fake::new();
    let adapter = fake.in_workspace(&[]).build().unwrap();
    let here = fake.workspace().display().to_string();
    for script in [format!("read {here}/a"), format!("write {here}/a text"), "terminal ls".to_owned(), "ext".to_owned()]
    {
        let reply = adapter.evaluate(script.as_str()).await.unwrap();
        assert!(reply.text.contains("-32601"), "{script}: {}", reply.text);
    }
    assert_eq!(adapter.evaluate("notify ;; say on").await.unwrap().text, "on", "notifications are ignored");
    adapter.close().await;
}

#[tokio::test]
async fn reads_honour_line_and_limit() {
    let fake = Fake::new();
    std::fs::write(fake.workspace().join("a"), "one\ntwo\nthree\nfour\n").unwrap();
    let path = fake.workspace().join("a").display().to_string();
    let text = said(&fake, &format!("read {path} line 2 limit 2")).await;
    assert!(text.contains("two\nthree") && !text.contains("one") && !text.contains("four"), "{text}");
}

#[tokio::test]
async fn writes_make_the_folders_that_are_missing() {
    let fake = Fake::new();
    let path = fake.workspace().join("deep/er/a").display().to_string();
    assert!(said(&fake, &format!("write {path} hello")).await.contains("write: ok"));
    assert_eq!(std::fs::read_to_string(fake.workspace().join("deep/er/a")).unwrap(), "hello");
}

#[tokio::test]
async fn nothing_outside_of_the_workspace_is_read_or_written() {
    let fake = Fake::new();
    let outside = fake.path("outside");
    std::fs::write(&outside, "secret").unwrap();
    std::fs::create_dir(fake.path("workspace-sibling")).unwrap();
    std::fs::write(fake.path("workspace-sibling/a"), "secret").unwrap();
    std::os::unix::fs::symlink(&outside, fake.workspace().join("link")).unwrap();
    let here = fake.workspace().display().to_string();
    for path in [
        outside.display().to_string(),
        format!("{here}/../outside"),
        format!("{here}-sibling/a"),
        format!("{here}/link"),
    ] {
        let text = said(&fake, &format!("read {path} ;; write {path} changed")).await;
        assert!(text.contains("read error -32600"), "{path}: {text}");
        assert!(text.contains("write error -32600"), "{path}: {text}");
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    assert_eq!(std::fs::read_to_string(fake.path("workspace-sibling/a")).unwrap(), "secret");
}
