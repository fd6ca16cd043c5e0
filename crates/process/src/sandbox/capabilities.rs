//! A confined child has no capabilities. With them root could read the environment and the memory maps of other processes
//! (`CAP_PERFMON` passes the kernel's check of who may trace whom) and listen to the loopback interface (`CAP_NET_RAW`).

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

/// Drops every capability of the calling thread, and the way to get one back by executing a program.
pub(super) fn drop_all() -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // A user without capabilities has none to drop, and a fenced process gains none by exec. An older kernel does
            // not know the newest ones.
            Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    // A service that has none may be forbidden to ask for a change.
    if [effective, permitted, inheritable] != [none; 3] {
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    }
    Ok(())
}
