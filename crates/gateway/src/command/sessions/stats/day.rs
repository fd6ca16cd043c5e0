//! Which day a moment belongs to, in the time zone of this machine.

use std::collections::HashMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::cli::args::sessions::StatsArgs;
use crate::exit::CommandError;

/// No time zone changes its day within a quarter of an hour.
const QUARTER: u64 = 15 * 60 * 1_000;

/// The days that are counted.
#[derive(Clone, Debug)]
pub struct Days {
    zone: TimeZone,
    since: Option<Date>,
    until: Option<Date>,
    /// By the quarter of an hour: most answers come close to others.
    known: HashMap<u64, Option<String>>,
}

impl Days {
    pub fn of(args: &StatsArgs) -> Result<Self, CommandError> {
        let (since, until) = (args.since, args.until);
        if let (Some(since), Some(until)) = (since, until)
            && since > until
        {
            return Err(CommandError::usage(format!("`--since {since}` is after `--until {until}`; swap them")));
        }
        Ok(Self { zone: TimeZone::system(), since, until, known: HashMap::new() })
    }

    /// The day of a moment, if it is counted.
    pub fn name(&mut self, at: u64) -> Option<String> {
        let quarter = at / QUARTER;
        if let Some(known) = self.known.get(&quarter) {
            return known.clone();
        }
        let name = self.counted(at).map(|date| date.to_string());
        self.known.insert(quarter, name.clone());
        name
    }

    fn counted(&self, at: u64) -> Option<Date> {
        let time = jiff::Timestamp::from_millisecond(i64::try_from(at).ok()?).ok()?;
        let date = time.to_zoned(self.zone.clone()).date();
        let is_counted = self.since.is_none_or(|since| date >= since) && self.until.is_none_or(|until| date <= until);
        is_counted.then_some(date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_on_another_day_elsewhere_and_days_outside_are_not_counted() {
        let days = |hours: i8, since: Option<Date>| Days {
            zone: TimeZone::fixed(jiff::tz::offset(hours)),
            since,
            until: None,
            known: HashMap::new(),
        };
        let noon = 1_794_830_400_000; // 2026-11-16T12:00:00Z
        for (hours, day) in [(0, "2026-11-16"), (13, "2026-11-17"), (-13, "2026-11-15")] {
            let mut days = days(hours, None);
            assert_eq!([days.name(noon), days.name(noon + 1)], [Some(day.to_owned()), Some(day.to_owned())]);
        }
        assert_eq!(days(0, Some(jiff::civil::date(2026, 11, 17))).name(noon), None);
    }
}
