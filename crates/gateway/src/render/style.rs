//! How things look: with colours, or with marks where there are none.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Coloured,
}

impl Style {
    pub fn of(stream: crate::terminal::Stream) -> Self {
        if stream.is_coloured { Self::Coloured } else { Self::Plain }
    }

    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Stands before a thought where it cannot be dimmed.
    pub fn thought_mark(self) -> &'static str {
        match self {
            Self::Plain => "(thinking) ",
            Self::Coloured => "",
        }
    }

    fn paint(self, colour: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
        }
    }
}
