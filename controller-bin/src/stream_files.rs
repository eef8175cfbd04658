//! Endpoints of TCP and UDP services, and of hosts whose TLS is passed through, for an NGINX whose stream module reads
//! them from files.
//!
//! One file a port or host, `stream/tcp-5432`, `stream/udp-53` or `stream/tls/shop.test` below NGINX's directory, replaced
//! as a whole ([`nginx_render::endpoint_files`]); an empty file means that there is no endpoint. The file of a host whose
//! TLS ends at NGINX says `here`. `stream/groups.conf` is for the next load.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use ingress_model::{Backend, Live};
use nginx_render::endpoint_files::{self, StreamPort};

use crate::nginx::files::{self, Access, WriteError};

/// What the file of a host says whose TLS ends at NGINX, although that of the wildcard host above it does not.
const HERE: &str = "here\n";

/// The files, and what they hold.
#[derive(Debug)]
pub struct StreamFiles {
    /// Where they are; `None` where NGINX does not read any.
    directory: Option<PathBuf>,
    /// Whether NGINX knows no other endpoints than those of the files when it has loaded them last.
    have_to_be_loaded: bool,
    /// What was written, by name.
    written: BTreeMap<String, Option<Arc<Backend>>>,
}

impl StreamFiles {
    /// Files below that directory. `have_to_be_loaded`: NGINX does not read them whenever a connection comes.
    #[must_use]
    pub fn below(directory: &Path, have_to_be_loaded: bool) -> Self {
        Self {
            directory: Some(directory.to_owned()),
            have_to_be_loaded,
            written: BTreeMap::new(),
        }
    }

    /// For an NGINX that reads none.
    #[must_use]
    pub fn none() -> Self {
        Self {
            directory: None,
            have_to_be_loaded: false,
            written: BTreeMap::new(),
        }
    }

    /// Makes the files show these services. Answers whether NGINX has to load them.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or removed. What was done before stays done.
    pub fn write(&mut self, live: &Live) -> Result<bool, WriteError> {
        let Some(directory) = &self.directory else {
            return Ok(false);
        };
        let ports = || {
            let tcp = live
                .tcp
                .iter()
                .map(|(port, it)| (StreamPort::Tcp(*port), it));
            let udp = live
                .udp
                .iter()
                .map(|(port, it)| (StreamPort::Udp(*port), it));
            tcp.chain(udp)
        };
        // Before the files that name the groups: who loads them does so after both.
        let groups = ports().map(|(port, backend)| (port, &*backend.endpoints));
        let groups = endpoint_files::groups(groups);
        let changed = files::write(
            &directory.join(endpoint_files::GROUPS),
            groups.as_bytes(),
            Access::Public,
        )?;
        let mut wanted = BTreeMap::new();
        for (port, backend) in ports() {
            wanted.insert(port.to_string(), (Some(port), Some(Arc::clone(backend))));
        }
        for (host, backend) in &live.passthrough {
            wanted.insert(format!("tls/{host}"), (None, backend.clone()));
        }
        for (name, (port, backend)) in &wanted {
            if self.written.get(name) != Some(backend) {
                let text = match (backend, port) {
                    (None, _) => HERE.to_owned(),
                    (Some(backend), Some(port)) => {
                        endpoint_files::endpoints(*port, &backend.endpoints)
                    }
                    (Some(backend), None) => endpoint_files::addresses(&backend.endpoints),
                };
                files::write(&directory.join(name), text.as_bytes(), Access::Public)?;
                self.written.insert(name.clone(), backend.clone());
            }
        }
        let gone: Vec<_> = self
            .written
            .keys()
            .filter(|name| !wanted.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            files::remove(&directory.join(&name))?;
            self.written.remove(&name);
        }
        Ok(changed && self.have_to_be_loaded)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ingress_model::{
        Host,
        live::{Endpoint, UpstreamName},
    };

    use super::*;

    fn backend(addresses: &[&str]) -> Arc<Backend> {
        let mut backend = Backend::new(UpstreamName::new("tcp-a-b-1"));
        backend.endpoints = addresses
            .iter()
            .map(|address| Endpoint {
                address: (*address).into(),
                port: 53,
            })
            .collect();
        Arc::new(backend)
    }

    #[test]
    fn files_follow_the_services() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = StreamFiles::below(directory.path(), false);
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).ok();
        let mut live = Live::default();
        live.tcp.insert(9000, backend(&["10.0.0.1", "fd00::1"]));
        live.udp.insert(53, backend(&[]));
        let host = |name: &str| Host::parse(name).unwrap();
        live.passthrough
            .insert(host("*.a.test"), Some(backend(&["10.0.0.3"])));
        live.passthrough.insert(host("own.a.test"), None);
        files.write(&live).unwrap();
        let both = read("tcp-9000").unwrap();
        let (group, addresses) = both.split_once('\n').unwrap();
        assert_eq!(addresses, "10.0.0.1:53\n[fd00::1]:53\n");
        let group = group.strip_prefix("group ").unwrap();
        assert!(
            read("groups.conf")
                .unwrap()
                .contains(&format!("upstream {group} {{"))
        );
        assert_eq!(read("udp-53").as_deref(), Some(""));
        assert_eq!(read("tls/*.a.test").as_deref(), Some("10.0.0.3:53\n"));
        assert_eq!(read("tls/own.a.test").as_deref(), Some("here\n"));

        live.tcp.insert(9000, backend(&["10.0.0.2"]));
        live.udp.clear();
        live.passthrough.remove(&host("own.a.test"));
        files.write(&live).unwrap();
        assert!(read("tcp-9000").unwrap().ends_with("\n10.0.0.2:53\n"));
        assert_eq!(read("groups.conf").unwrap().matches("upstream").count(), 1);
        assert_eq!(read("udp-53"), None);
        assert_eq!(read("tls/own.a.test"), None);
        assert!(read("tls/*.a.test").is_some());

        let mut loaded = StreamFiles::below(directory.path(), true);
        assert!(!loaded.write(&live).unwrap(), "they are the same");
        live.tcp.insert(9000, backend(&["10.0.0.3"]));
        assert!(loaded.write(&live).unwrap());
        live.tcp.insert(9000, backend(&["10.0.0.4"]));
        assert!(!files.write(&live).unwrap());
    }

    #[test]
    fn nothing_is_written_where_nothing_is_read() {
        let mut live = Live::default();
        live.tcp.insert(1, backend(&["10.0.0.1"]));
        assert!(StreamFiles::none().write(&live).is_ok());
    }
}
