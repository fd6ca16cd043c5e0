//! An agent that serves as a model, working in folders of its operator besides: processes of their own for each folder, in
//! which it has its tools and asks before it uses them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gembridge_core::model::{Failure, FailureKind};
use gembridge_drivers::profile::Execution;
use gembridge_drivers::setup::{DriverSetup, ManagedDriver, Spares};

/// Folders that one agent works in, for as long as the gateway runs.
const MOST: usize = 32;

pub struct FolderDrivers {
    /// `None` where the agent works in a workspace anyway.
    setup: Option<DriverSetup>,
    drivers: Mutex<Vec<(PathBuf, Arc<dyn ManagedDriver>)>>,
}

impl FolderDrivers {
    pub fn new(setup: &DriverSetup) -> Self {
        let setup = (setup.execution == Execution::Chat).then(|| setup.clone());
        Self { setup, drivers: Mutex::default() }
    }

    /// The driver for a session that works there; `None`: the usual one.
    pub fn driver_for(&self, workspace: Option<&Path>) -> Result<Option<Arc<dyn ManagedDriver>>, Failure> {
        let (Some(setup), Some(folder)) = (&self.setup, workspace) else { return Ok(None) };
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, driver)) = drivers.iter().find(|(known, _)| known == folder) {
            return Ok(Some(Arc::clone(driver)));
        }
        if drivers.len() >= MOST {
            let message =
                format!("this agent has worked in {MOST} folders since the gateway began; restart the gateway");
            return Err(Failure::new(FailureKind::LimitReached, message));
        }
        let in_folder =
            DriverSetup { execution: Execution::Agent, workspace: Some(folder.to_owned()), ..setup.clone() };
        let driver = in_folder.start(Spares::None);
        drivers.push((folder.to_owned(), Arc::clone(&driver)));
        Ok(Some(driver))
    }

    pub fn all(&self) -> Vec<Arc<dyn ManagedDriver>> {
        let drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        drivers.iter().map(|(_, driver)| Arc::clone(driver)).collect()
    }
}
