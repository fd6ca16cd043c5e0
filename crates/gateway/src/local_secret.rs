//! The secret by which a gateway proves to its user's own programs that it is the gateway: a file in the private state
//! folder, new at each start.

use std::path::PathBuf;

use gembridge_api::acp::proof::LocalSecret;

use crate::config::{ConfigError, Folders, private_file};

pub fn path(folders: &Folders) -> PathBuf {
    folders.state.join("local-secret")
}

/// Called by the one gateway that holds the state folder, before it answers anybody.
pub fn renew(folders: &Folders) -> Result<LocalSecret, ConfigError> {
    let path = path(folders);
    let secret = LocalSecret::generate().map_err(|error| ConfigError::Unwritable { path: path.clone(), error })?;
    private_file::write(&path, &format!("{}\n", secret.to_hex()))?;
    Ok(secret)
}
