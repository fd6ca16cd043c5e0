//! The command line of the demo agent.

use std::time::Duration;

pub(crate) enum Command {
    Serve(Flags),
    Help,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Flags {
    /// How long the start takes before anything is answered.
    pub start_delay: Duration,
    /// The pause before each word of a streamed answer.
    pub token_delay: Duration,
}

pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut flags = Flags::default();
    while let Some(arg) = args.next() {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (arg.as_str(), None),
        };
        let target = match name {
            "--help" | "-h" => return Ok(Command::Help),
            "--start-delay-ms" => &mut flags.start_delay,
            "--token-delay-ms" => &mut flags.token_delay,
            other => return Err(format!("unknown argument `{other}`; run with `--help`")),
        };
        let value = inline.or_else(|| args.next()).unwrap_or_default();
        let millis = value
            .parse()
            .map_err(|_| format!("`{name}` wants whole milliseconds, not `{value}`; for example `{name} 200`"))?;
        *target = Duration::from_millis(millis);
    }
    Ok(Command::Serve(flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn delays_are_read_in_both_spellings() {
        let Ok(Command::Serve(flags)) = parsed("--start-delay-ms 20 --token-delay-ms=7") else { panic!("not read") };
        assert_eq!((flags.start_delay.as_millis(), flags.token_delay.as_millis()), (20, 7));
    }

    #[test]
    fn a_bad_argument_is_named_with_the_way_out() {
        assert_eq!(parsed("--fast").err().unwrap(), "unknown argument `--fast`; run with `--help`");
        assert!(parsed("--token-delay-ms soon").err().unwrap().contains("not `soon`"));
        assert!(parsed("--token-delay-ms").is_err());
    }
}
