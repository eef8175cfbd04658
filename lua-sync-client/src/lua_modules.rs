//! The Lua modules that run inside NGINX, carried in the binary.
//!
//! They have to be in a directory that `lua_package_path` names, as in `lua_package_path "/etc/nginx/lua/?.lua;;";`.
//! Each release of this crate speaks to its own modules only, so a controller writes them at start.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// A Lua module as it is to lie on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuaModule {
    /// Path below the directory of `lua_package_path`, with `/`: `ingress/balancer.lua`.
    pub path: &'static str,
    /// The source text.
    pub source: &'static str,
}

/// What [`write_modules`] has changed; nothing when all was as it has to be. NGINX takes changes at its next reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files that were missing or different.
    pub written: usize,
    /// Files of earlier releases that are gone now.
    pub removed: usize,
}

/// Why the modules could not be written.
#[derive(Debug, Error)]
#[error("{act} {}", path.display())]
pub struct WriteError {
    act: &'static str,
    path: PathBuf,
    source: io::Error,
}

macro_rules! modules {
    ($($path:literal),* $(,)?) => {
        &[$(LuaModule { path: $path, source: include_str!(concat!("../lua/", $path)) }),*]
    };
}

/// All modules, sorted by path.
pub const MODULES: &[LuaModule] = modules![
    "ingress/address.lua",
    "ingress/backend_list.lua",
    "ingress/backends.lua",
    "ingress/balancer.lua",
    "ingress/balancer/affinity_cookie.lua",
    "ingress/balancer/algorithm.lua",
    "ingress/balancer/chash.lua",
    "ingress/balancer/chashsubset.lua",
    "ingress/balancer/ewma.lua",
    "ingress/balancer/hash_key.lua",
    "ingress/balancer/hash_ring.lua",
    "ingress/balancer/round_robin.lua",
    "ingress/balancer/sticky.lua",
    "ingress/balancer/sticky_balanced.lua",
    "ingress/balancer/sticky_persistent.lua",
    "ingress/canary.lua",
    "ingress/certificate.lua",
    "ingress/config.lua",
    "ingress/configuration.lua",
    "ingress/configuration/backends.lua",
    "ingress/configuration/general.lua",
    "ingress/configuration/reply.lua",
    "ingress/configuration/request.lua",
    "ingress/configuration/revision.lua",
    "ingress/configuration/servers.lua",
    "ingress/dns/client.lua",
    "ingress/dns/message.lua",
    "ingress/dns/resolv_conf.lua",
    "ingress/dns/resolver.lua",
    "ingress/external_auth.lua",
    "ingress/external_name.lua",
    "ingress/json_text.lua",
    "ingress/monitor.lua",
    "ingress/ocsp.lua",
    "ingress/ocsp/responder.lua",
    "ingress/ocsp/validity.lua",
    "ingress/peers.lua",
    "ingress/random.lua",
    "ingress/request_id.lua",
    "ingress/routed.lua",
    "ingress/router.lua",
    "ingress/server_list.lua",
    "ingress/servers.lua",
    "ingress/small_store.lua",
    "ingress/store.lua",
    "ingress/transaction.lua",
    "ingress/variants.lua",
    "ingress/worker.lua",
    "ingress/write_lock.lua",
];

/// Writes all modules below `dir`, creating it if need be.
///
/// Only files that differ are written, each in one step, so that an NGINX that loads its configuration meanwhile finds
/// every module whole. `dir/ingress` belongs to this crate: other `.lua` files in it are removed. The rest of `dir` may
/// hold modules of others.
///
/// # Errors
/// When a file or directory cannot be read, written or removed; what was done before stays done.
pub fn write_modules(dir: &Path) -> Result<Written, WriteError> {
    let mut done = Written::default();
    for module in MODULES {
        let path = dir.join(module.path);
        if fs::read(&path).is_ok_and(|text| text == module.source.as_bytes()) {
            continue;
        }
        write_whole(&path, module.source)?;
        done.written += 1;
    }
    let wanted: BTreeSet<PathBuf> = MODULES.iter().map(|m| dir.join(m.path)).collect();
    remove_others(&dir.join(NAMESPACE), &wanted, &mut done)?;
    Ok(done)
}

fn write_whole(path: &Path, text: &str) -> Result<(), WriteError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed("create directory", parent))?;
    }
    let unfinished = path.with_extension("lua.new");
    fs::write(&unfinished, text).map_err(failed("write", &unfinished))?;
    fs::rename(&unfinished, path).map_err(failed("put in place", path))
}

fn remove_others(
    dir: &Path,
    wanted: &BTreeSet<PathBuf>,
    done: &mut Written,
) -> Result<(), WriteError> {
    let list = failed("list", dir);
    for entry in fs::read_dir(dir).map_err(&list)? {
        let entry = entry.map_err(&list)?;
        let path = entry.path();
        if entry
            .file_type()
            .map_err(failed("inspect", &path))?
            .is_dir()
        {
            remove_others(&path, wanted, done)?;
        } else if path.extension().is_some_and(|extension| extension == "lua")
            && !wanted.contains(&path)
        {
            fs::remove_file(&path).map_err(failed("remove", &path))?;
            done.removed += 1;
        }
    }
    Ok(())
}

fn failed(act: &'static str, path: &Path) -> impl Fn(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError {
        act,
        path: path.clone(),
        source,
    }
}

/// The directory, and prefix of module names, that only this crate's modules have.
const NAMESPACE: &str = "ingress";

#[cfg(test)]
mod tests {
    use super::*;

    fn lua_files(dir: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files.extend(lua_files(&path));
            } else if path.extension().is_some_and(|extension| extension == "lua") {
                files.push(path);
            }
        }
        files.sort();
        files
    }

    #[test]
    fn every_module_is_embedded() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
        let on_disk: Vec<String> = lua_files(&dir)
            .iter()
            .map(|path| {
                path.strip_prefix(&dir)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let mut embedded: Vec<&str> = MODULES.iter().map(|module| module.path).collect();
        embedded.sort_unstable_by_key(|path| dir.join(path));
        assert_eq!(embedded, on_disk);
        assert!(MODULES.is_sorted_by_key(|module| module.path));
        assert!(
            MODULES
                .iter()
                .all(|module| module.path.starts_with("ingress/"))
        );
    }

    #[test]
    fn only_what_differs_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("nginx/lua");
        let all = Written {
            written: MODULES.len(),
            removed: 0,
        };
        assert_eq!(write_modules(&dir).unwrap(), all);
        for module in MODULES {
            assert_eq!(
                fs::read_to_string(dir.join(module.path)).unwrap(),
                module.source
            );
        }
        assert_eq!(write_modules(&dir).unwrap(), Written::default());

        let changed = dir.join(MODULES[0].path);
        fs::write(&changed, "return nil").unwrap();
        let one = Written {
            written: 1,
            removed: 0,
        };
        assert_eq!(write_modules(&dir).unwrap(), one);
        assert_eq!(fs::read_to_string(&changed).unwrap(), MODULES[0].source);
        assert_eq!(lua_files(&dir).len(), MODULES.len());
    }

    #[test]
    fn modules_of_earlier_releases_go_and_those_of_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        write_modules(dir.path()).unwrap();
        let stale = dir.path().join("ingress/old/deep.lua");
        let theirs = dir.path().join("plugins/hello.lua");
        let note = dir.path().join("ingress/note.txt");
        for path in [&stale, &theirs, &note] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "return {}").unwrap();
        }
        let one = Written {
            written: 0,
            removed: 1,
        };
        assert_eq!(write_modules(dir.path()).unwrap(), one);
        assert!(!stale.exists() && theirs.exists() && note.exists());
    }

    #[test]
    fn failures_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("taken");
        fs::write(&file, "").unwrap();
        let error = write_modules(&file).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("create directory {}/ingress", file.display())
        );
        assert!(std::error::Error::source(&error).is_some());
    }
}
