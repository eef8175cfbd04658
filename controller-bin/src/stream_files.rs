//! Endpoints of TCP and UDP services, and of hosts whose TLS is passed through, for an NGINX whose stream module reads
//! them from files.
//!
//! One file a port or host, `stream/tcp-5432`, `stream/udp-53` or `stream/tls/shop.test` below NGINX's directory, replaced
//! as a whole. Each line is an endpoint as `address:port`; an empty file means that there is none. The file of a host
//! whose TLS ends at NGINX says `HERE`.

use std::{
    collections::BTreeMap,
    fmt::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use ingress_model::{Backend, Live};

use crate::nginx::files::{self, Access, WriteError};

/// What the file of a host says whose TLS ends at NGINX, although that of the wildcard host above it does not.
const HERE: &str = "here\n";

/// The files, and what they hold.
#[derive(Debug)]
pub struct StreamFiles {
    /// Where they are; `None` where NGINX does not read any.
    directory: Option<PathBuf>,
    /// What was written, by name.
    written: BTreeMap<String, Option<Arc<Backend>>>,
}

impl StreamFiles {
    /// Files below that directory.
    #[must_use]
    pub fn below(directory: &Path) -> Self {
        Self {
            directory: Some(directory.to_owned()),
            written: BTreeMap::new(),
        }
    }

    /// For an NGINX that reads none.
    #[must_use]
    pub fn none() -> Self {
        Self {
            directory: None,
            written: BTreeMap::new(),
        }
    }

    /// Makes the files show these services.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or removed. What was done before stays done.
    pub fn write(&mut self, live: &Live) -> Result<(), WriteError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let named = |protocol: &'static str, services: &BTreeMap<u16, Arc<Backend>>| {
            let named = services.iter().map(move |(port, backend)| {
                (format!("{protocol}-{port}"), Some(Arc::clone(backend)))
            });
            named.collect::<BTreeMap<_, _>>()
        };
        let mut wanted = named("tcp", &live.tcp);
        wanted.extend(named("udp", &live.udp));
        let hosts = live.passthrough.iter();
        wanted.extend(hosts.map(|(host, backend)| (format!("tls/{host}"), backend.clone())));
        for (name, backend) in &wanted {
            if self.written.get(name) != Some(backend) {
                let text = backend
                    .as_deref()
                    .map_or_else(|| HERE.to_owned(), endpoints);
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
        Ok(())
    }
}

fn endpoints(backend: &Backend) -> String {
    let mut text = String::new();
    for endpoint in &backend.endpoints {
        let (address, port) = (&endpoint.address, endpoint.port);
        // Writing to a text cannot fail.
        let _written = if address.contains(':') {
            writeln!(text, "[{address}]:{port}")
        } else {
            writeln!(text, "{address}:{port}")
        };
    }
    text
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
        let mut files = StreamFiles::below(directory.path());
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).ok();
        let mut live = Live::default();
        live.tcp.insert(9000, backend(&["10.0.0.1", "fd00::1"]));
        live.udp.insert(53, backend(&[]));
        let host = |name: &str| Host::parse(name).unwrap();
        live.passthrough
            .insert(host("*.a.test"), Some(backend(&["10.0.0.3"])));
        live.passthrough.insert(host("own.a.test"), None);
        files.write(&live).unwrap();
        assert_eq!(
            read("tcp-9000").as_deref(),
            Some("10.0.0.1:53\n[fd00::1]:53\n")
        );
        assert_eq!(read("udp-53").as_deref(), Some(""));
        assert_eq!(read("tls/*.a.test").as_deref(), Some("10.0.0.3:53\n"));
        assert_eq!(read("tls/own.a.test").as_deref(), Some("here\n"));

        live.tcp.insert(9000, backend(&["10.0.0.2"]));
        live.udp.clear();
        live.passthrough.remove(&host("own.a.test"));
        files.write(&live).unwrap();
        assert_eq!(read("tcp-9000").as_deref(), Some("10.0.0.2:53\n"));
        assert_eq!(read("udp-53"), None);
        assert_eq!(read("tls/own.a.test"), None);
        assert!(read("tls/*.a.test").is_some());
    }

    #[test]
    fn nothing_is_written_where_nothing_is_read() {
        let mut live = Live::default();
        live.tcp.insert(1, backend(&["10.0.0.1"]));
        assert!(StreamFiles::none().write(&live).is_ok());
    }
}
