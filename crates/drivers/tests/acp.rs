//! The ACP driver under the session core, against agents that are real processes.

mod acp {
    mod basics;
    mod stage;
}
