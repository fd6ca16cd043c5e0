//! The values that settings are made of. Each reads what a person writes and says what it expected otherwise.

mod amount;
mod list;
mod name;
mod price;
mod secret;

pub use amount::{Count, Nice, Port, Size, Span, Tally};
pub use list::{HostName, Listed, Switch};
pub use name::{AbsolutePath, ModelName};
pub use price::Price;
pub use secret::Secret;
