//! For agents that take no tool servers over HTTP: their standard streams, relayed.
