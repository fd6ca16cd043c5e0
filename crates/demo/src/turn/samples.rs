//! The fixed texts that the demo shows.

/// A chequered square of 16 by 16 pixels.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAIklEQVR42mP4jwScWr/AES5xhkGogRhFyOKDUcNoPAwKDQDANFwfdCM8EwAAAABJRU5ErkJggg==";

pub(super) const MARKDOWN: &str = r#"# A heading

Text with **bold**, *italic*, ~~struck~~, `code` and a [link](https://example.com/).

| left | right |
|:-----|------:|
| a    |     1 |
| b \| c |   22 |

1. first
   - nested
   - [x] done
2. second

> a quote
> of two lines

```rust
fn main() {
    println!("hello, <world> & \"all\"");
}
```

A line without an end of block: 2 < 3 && 4 > 1.
"#;

/// Must reach a page as text: nothing here may run, load or style.
pub(super) const HOSTILE: &str = "<script>document.title = \"hostile\"</script>

<img src=\"x\" onerror=\"document.title='hostile'\">

[a link](javascript:document.title='hostile') and ![an image](https://example.invalid/pixel.png)

<iframe src=\"https://example.invalid/\"></iframe><style>body { display: none }</style>

<svg><a xlink:href=\"javascript:document.title='hostile'\"><text>svg</text></a></svg>

```html
<script>document.title = \"hostile in code\"</script>
```

\u{1b}[2J\u{1b}[31mterminal escapes\u{1b}]0;hostile\u{7}

<details open ontoggle=\"document.title='hostile'\"><summary>details</summary></details>
";

pub(super) const UNICODE: &str = "Chinese 你好，世界。 Japanese 日本語のテキスト。 Korean 안녕하세요. \
    Arabic مرحبا بالعالم and Hebrew שלום עולם between. \
    Emoji 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇯🇵. Combining e\u{301} n\u{303} Z\u{351}\u{36b}\u{343}. \
    Astral 𝒟𝑒𝓂𝑜 𠮷. Separators \u{2028}\u{2029} and a byte order mark \u{feff} end it.";

/// Line `number` of the endless story.
pub(super) fn story_line(number: u64) -> String {
    const WHO: [&str; 7] = [
        "The lighthouse keeper",
        "A grey cat",
        "The baker",
        "An old map",
        "The ferry",
        "A tin robot",
        "The north wind",
    ];
    const DOES: [&str; 5] = ["waits for", "talks to", "forgets", "finds", "follows"];
    const WHAT: [&str; 11] = [
        "the morning tide",
        "a copper kettle",
        "the last lamp",
        "a paper boat",
        "the empty square",
        "a borrowed key",
        "the long bridge",
        "a second moon",
        "the quiet bell",
        "a letter without a name",
        "the way home",
    ];
    // The counts are coprime, so a line repeats only after 385 others.
    format!("{number}. {} {} {}.\n", pick(&WHO, number), pick(&DOES, number), pick(&WHAT, number))
}

fn pick<'a>(from: &[&'a str], number: u64) -> &'a str {
    let index = number % from.len() as u64;
    from.get(usize::try_from(index).unwrap_or_default()).copied().unwrap_or_default()
}
