//! Rendered files in a directory of their own.

use std::{fs, path::Path};

use jiff::Timestamp;
use lua_sync_client::lua_modules;
use nginx_render::Rendered;

use super::{CommandError, MAIN};
use crate::{
    certificate,
    command::nginx::STAND_IN_CERTIFICATE,
    nginx::files::{self, Access},
};

/// The start of each `nginx.conf` that is ours.
const OURS: &str = "# Configuration checksum:";

/// Writes all files below a directory, with the Lua modules and a certificate for hosts without one, so that NGINX can
/// be run or tested with them.
///
/// # Errors
///
/// When they cannot be written, a controller uses the directory, or it holds the `nginx.conf` of somebody else.
pub(super) fn write(directory: &Path, rendered: &Rendered) -> Result<(), CommandError> {
    if directory.join("run/controller.lock").exists() {
        return Err(CommandError::InUse(directory.to_owned()));
    }
    let main = directory.join(MAIN);
    let is_ours = |text: Vec<u8>| text.is_empty() || text.starts_with(OURS.as_bytes());
    if fs::read(&main).is_ok_and(|text| !is_ours(text)) {
        return Err(CommandError::Foreign(main));
    }
    for below in ["run", "logs"] {
        let path = directory.join(below);
        fs::create_dir_all(&path).map_err(|source| CommandError::MakeDirectory { path, source })?;
    }
    lua_modules::write_modules(&directory.join("lua"))?;
    let made = certificate::generate(Timestamp::now())?;
    for (path, file) in &rendered.files {
        let bytes = if file.bytes == STAND_IN_CERTIFICATE.as_bytes() {
            made.pem.as_bytes()
        } else {
            &file.bytes
        };
        let access = if file.private {
            Access::Private
        } else {
            Access::Public
        };
        files::write(&directory.join(path.as_str()), bytes, access)?;
    }
    files::write(&main, rendered.main.as_bytes(), Access::Public)?;
    Ok(())
}
