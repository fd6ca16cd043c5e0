//! What of a client's prompt an agent is given. Some agents open every file that a link names, and run a text that begins
//! like a command of theirs; neither may happen on the word of a client that has no right to the files or the agent.

use std::borrow::Cow;

use gembridge_core::driver::SlashCommands;
use gembridge_core::model::{Content, Failure, FailureKind, Prompt, Text};
use percent_encoding::percent_decode_str;

use crate::workspace::Jail;

/// What a link may lead to.
pub(crate) enum Files<'a> {
    /// Nothing: in chat there is no folder, so links reach the model as text.
    None,
    /// What lies in the workspace.
    Workspace(&'a Jail),
}

/// The blocks of a prompt as the agent may have them: themselves, if nothing has to change. ACP knows one speaker, so what
/// others said comes in them under their names.
pub(crate) fn filtered<'p>(
    prompt: &'p Prompt,
    files: &Files<'_>,
    slash: SlashCommands,
) -> Result<Cow<'p, [Content]>, Failure> {
    let blocks = prompt.blocks();
    if blocks.iter().all(|content| is_safe(content, files, slash)) {
        return Ok(blocks);
    }
    blocks.iter().map(|content| safe(content, files, slash)).collect()
}

fn is_safe(content: &Content, files: &Files<'_>, slash: SlashCommands) -> bool {
    match (content, files) {
        (Content::Text(text), _) => slash == SlashCommands::Run || !is_command(&text.to_str()),
        (Content::Link { uri, .. }, Files::Workspace(jail)) => may_be_opened(uri, jail),
        (Content::Link { .. } | Content::Other { .. }, Files::None) => false,
        (Content::Image { uri, .. }, Files::None) => uri.is_none(),
        (Content::Document { uri, .. } | Content::Blob { uri, .. }, Files::None) => is_web(uri),
        (Content::Audio { .. }, Files::None) | (_, Files::Workspace(_)) => true,
    }
}

fn safe(content: &Content, files: &Files<'_>, slash: SlashCommands) -> Result<Content, Failure> {
    if is_safe(content, files, slash) {
        return Ok(content.clone());
    }
    Ok(match content.clone() {
        // In every block of text, since agents join blocks before they look.
        Content::Text(text) => Content::Text(Text::plain(format!("\u{200b}{}", text.to_str()))),
        Content::Link { uri, name, .. } => Content::text(format!("[{name}]({uri})")),
        // The bytes are in the prompt; the address would only be one more way to a file.
        Content::Image { mime, data, .. } => Content::Image { mime, data, uri: None },
        Content::Document { uri, mime, text } => Content::Document { uri: attachment(&uri).into(), mime, text },
        Content::Blob { uri, mime, data } => Content::Blob { uri: attachment(&uri).into(), mime, data },
        Content::Other { kind, .. } => {
            let kind: String = kind.chars().take(32).flat_map(char::escape_debug).collect();
            let why = format!("a block of type `{kind}` is not taken in chat; send it as text");
            return Err(Failure::new(FailureKind::Unsupported, why));
        }
        audio @ Content::Audio { .. } => audio,
    })
}

/// Whether a text begins like a command, after what the agent trims: `$` is as good as `/` to some, and a byte order
/// mark is a blank to JavaScript.
fn is_command(text: &str) -> bool {
    let trimmed = text.trim_start_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
    trimmed.starts_with(['/', '$'])
}

fn is_web(uri: &str) -> bool {
    scheme(uri).is_some_and(|scheme| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// The name of an embedded file, as an address that leads nowhere.
fn attachment(uri: &str) -> String {
    let name = uri.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    format!("attachment:{name}")
}

/// Whether an agent that opens the link itself stays inside the workspace.
fn may_be_opened(uri: &str, jail: &Jail) -> bool {
    match scheme(uri) {
        Some(scheme) if scheme.eq_ignore_ascii_case("file") => {
            local_path(&uri[scheme.len() + 1..]).is_some_and(|path| jail.holds(&path))
        }
        // Some agents take an address without a scheme for a path.
        None => jail.holds(uri),
        Some(_) => true,
    }
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (!scheme.is_empty() && scheme.bytes().all(fits)).then_some(scheme)
}

/// The path behind `file:`. `None` for another host, and for what is no text.
fn local_path(rest: &str) -> Option<String> {
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, _) = rest.split_once('/')?;
            let is_here = host.is_empty() || host.eq_ignore_ascii_case("localhost");
            is_here.then(|| &rest[host.len()..])?
        }
        None => rest,
    };
    // A fragment or a query is the client's note on the file (`#L10`), not a part of its name.
    let path = path.split(['#', '?']).next().unwrap_or_default();
    percent_decode_str(path).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::JailLimits;

    fn chat(content: Content) -> Result<Content, Failure> {
        let prompt = Prompt::new(vec![content]);
        filtered(&prompt, &Files::None, SlashCommands::AsText).map(|blocks| blocks[0].clone())
    }

    fn link(uri: &str) -> Content {
        Content::Link { uri: uri.into(), name: "notes".into(), mime: None }
    }

    #[test]
    fn f2_in_chat_no_block_leads_to_a_file() {
        for uri in ["file:///etc/passwd", "https://example.com/x", "/etc/passwd", "FILE:/etc/passwd"] {
            assert_eq!(chat(link(uri)).unwrap(), Content::text(format!("[notes]({uri})")), "{uri}");
        }
        let image = Content::Image { mime: "image/png".into(), data: "AA==".into(), uri: Some("file:///k".into()) };
        assert!(matches!(chat(image).unwrap(), Content::Image { uri: None, .. }));
        let document = |uri: &str| Content::Document { uri: uri.into(), mime: None, text: "t".into() };
        for (uri, expected) in [
            ("file:///home/me/a.txt", "attachment:a.txt"),
            ("file:a.txt", "attachment:a.txt"),
            ("a.txt", "attachment:a.txt"),
            ("https://example.com/a", "https://example.com/a"),
        ] {
            assert_eq!(chat(document(uri)).unwrap(), document(expected), "{uri}");
        }
        let unknown = Content::Other { kind: "hologram".into(), body: gembridge_core::model::Opaque("{}".into()) };
        let refused = chat(unknown).unwrap_err();
        assert!(refused.kind == FailureKind::Unsupported && refused.message.contains("hologram"), "{refused:?}");
    }

    #[test]
    fn f2_in_a_workspace_links_to_files_outside_it_become_text() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("workspace");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/a b.txt"), "x").unwrap();
        std::fs::write(temp.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(temp.path().join("secret"), root.join("link")).unwrap();
        let jail = Jail::open(&root, JailLimits::default()).unwrap();
        let (at, beside) = (root.display(), temp.path().display());
        for inside in [
            format!("file://{at}/sub/a%20b.txt"),
            format!("file://localhost{at}/sub/a%20b.txt#L3"),
            format!("file://{at}/sub"),
            format!("file://{at}"),
            "sub/a b.txt".to_owned(),
            "https://example.com/x".to_owned(),
        ] {
            assert!(may_be_opened(&inside, &jail), "{inside}");
        }
        for outside in [
            format!("file://{beside}/secret"),
            format!("file://{at}/../secret"),
            format!("file://{at}/%2e%2e/secret"),
            format!("file://{at}/link"),
            format!("file://other.host{at}/sub"),
            format!("{beside}/secret"),
            "FILE:///etc/passwd".to_owned(),
            "file:/etc/passwd".to_owned(),
            "file:".to_owned(),
        ] {
            assert!(!may_be_opened(&outside, &jail), "{outside}");
        }
    }

    #[test]
    fn f13_a_text_that_begins_like_a_command_reaches_the_model_as_text() {
        for text in ["/context", " /x", "\u{feff}/x", "\n\t$x"] {
            let Content::Text(filtered) = chat(Content::text(text)).unwrap() else { panic!("{text}") };
            assert_eq!(filtered.to_str(), format!("\u{200b}{text}"));
        }
        assert_eq!(chat(Content::text("what is /etc?")).unwrap(), Content::text("what is /etc?"));
        let prompt = Prompt::text("/context");
        let own = filtered(&prompt, &Files::None, SlashCommands::Run).unwrap();
        assert!(matches!(own, Cow::Borrowed(_)), "an operator's own command runs");
    }
}
