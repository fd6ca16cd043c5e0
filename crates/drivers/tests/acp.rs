//! The ACP driver under the session core, against agents that are real processes.

mod acp {
    mod basics;
    mod calls;
    mod crashes;
    mod fence;
    mod flow;
    mod guests;
    mod hangs;
    mod noise;
    mod own_tools;
    mod permissions;
    mod pool;
    mod quirks;
    mod races;
    mod stage;
    mod trees;
    mod updates;
    mod workspace;
}
