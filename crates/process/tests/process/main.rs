//! Real children under a real guard.

mod fence;
mod flow;
mod marked;
mod start;
mod tree;
