//! What an agent may touch: files inside a jail, commands in terminals, private folders that go away with their owner.

mod jail;
mod paths;
mod private;
mod terminal;

pub use jail::{Jail, JailError, JailLimits};
pub use private::{InnerDir, PrivateDir, sweep_private_dirs};
pub use terminal::{
    TerminalCommand, TerminalError, TerminalExit, TerminalId, TerminalLimits, TerminalOutput, Terminals,
};
