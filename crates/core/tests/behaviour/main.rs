//! How the core behaves, from the pure turn machine to sessions with scripted agents. No processes, no files, and
//! time is moved by the tests.

mod support;

mod conversation;
mod admission;
mod log_attach;
mod log_pace;
mod r24_call_races;
mod r24_session_races;
mod r24_turn_races;
mod session_admission;
mod session_asks;
mod session_calls;
mod session_faults;
mod session_footing;
mod session_memory;
mod session_offers;
mod session_overview;
mod session_reader;
mod session_registry;
mod session_store;
mod session_turns;
mod turn_asks;
mod turn_calls;
mod turn_ends;
