//! What tokens cost, by the price table of the settings. Nothing is fetched and nothing is guessed.

use std::collections::BTreeMap;

use gembridge_transcripts::Tokens;

use crate::config::settings::PriceSettings;

pub struct Prices<'a> {
    table: &'a BTreeMap<String, PriceSettings>,
}

const MILLION: f64 = 1_000_000.0;

impl<'a> Prices<'a> {
    pub fn of(table: &'a BTreeMap<String, PriceSettings>) -> Self {
        Self { table }
    }

    pub fn has_any(&self) -> bool {
        !self.table.is_empty()
    }

    /// The price of a model: of its own name, else of the longest name that it goes on from, as `opus-5-20261101` does from
    /// `opus-5`.
    pub fn of_model(&self, model: &str) -> Option<&'a PriceSettings> {
        let goes_on = |name: &str| {
            let rest = model.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with(['-', '@', ':'])).then_some(name.len())
        };
        let named = self.table.iter().filter_map(|(name, price)| Some((goes_on(name)?, price)));
        named.max_by_key(|(length, _)| *length).map(|(_, price)| price)
    }
}

impl PriceSettings {
    /// What is read from a cache costs as input, and thoughts as output, unless the table has a price of their own.
    pub fn cost(&self, tokens: &Tokens) -> f64 {
        let cache_read = self.cache_read.unwrap_or(self.input);
        let cache_write = self.cache_write.unwrap_or(self.input);
        let parts = [
            (tokens.input.saturating_add(tokens.other), self.input),
            (tokens.output.saturating_add(tokens.thoughts), self.output),
            (tokens.cache_read, cache_read),
            (tokens.cache_write, cache_write),
        ];
        parts.iter().map(|(count, price)| as_float(*count) * price.0 / MILLION).sum()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a cost needs no more than 52 bits of a count")]
fn as_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::value::Price;

    fn price(input: f64) -> PriceSettings {
        PriceSettings { input: Price(input), output: Price(10.0), cache_read: Some(Price(0.5)), cache_write: None }
    }

    #[test]
    fn a_model_has_the_price_of_its_name_or_of_the_name_that_it_goes_on_from() {
        let table = BTreeMap::from([("opus".to_owned(), price(1.0)), ("opus-5".to_owned(), price(2.0))]);
        let prices = Prices::of(&table);
        let input = |model: &str| prices.of_model(model).map(|price| price.input.0);
        assert_eq!(input("opus"), Some(1.0));
        assert_eq!(input("opus-5"), Some(2.0));
        assert_eq!(input("opus-5-20261101"), Some(2.0));
        assert_eq!(input("opus-4"), Some(1.0));
        assert_eq!(input("opusculum"), None);
        assert_eq!(input("sonnet"), None);
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let tokens = Tokens {
            input: 1_000_000,
            output: 100_000,
            thoughts: 100_000,
            cache_read: 2_000_000,
            cache_write: 500_000,
            other: 0,
        };
        assert!((price(2.0).cost(&tokens) - (2.0 + 2.0 + 1.0 + 1.0)).abs() < 1e-9);
    }
}
