//! Real children under a real guard.

mod flow;
mod marked;
mod start;
mod tree;
