//! What every store promises, run on each; and what only a disk can do to it.

mod suite {
    pub mod contract;
    pub mod disk;
    pub mod import;
    pub mod properties;
    pub mod retention;
    pub mod samples;
    pub mod torture;
}
