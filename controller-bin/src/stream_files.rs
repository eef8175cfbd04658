//! Endpoints of TCP and UDP services for an NGINX whose stream module reads them from files.
//!
//! One file a port, `stream/tcp-5432` or `stream/udp-53` below NGINX's directory, replaced as a whole. Each line is an
//! endpoint as `address:port`; an empty file means that there is none.

use std::{
    collections::BTreeMap,
    fmt::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use ingress_model::{Backend, Live};

use crate::nginx::files::{self, Access, WriteError};

/// The files, and what they hold.
#[derive(Debug)]
pub struct StreamFiles {
    /// Where they are; `None` where NGINX does not read any.
    directory: Option<PathBuf>,
    /// What was written, by name.
    written: BTreeMap<String, Arc<Backend>>,
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
            let named = services
                .iter()
                .map(move |(port, backend)| (format!("{protocol}-{port}"), Arc::clone(backend)));
            named.collect::<BTreeMap<_, _>>()
        };
        let mut wanted = named("tcp", &live.tcp);
        wanted.extend(named("udp", &live.udp));
        for (name, backend) in &wanted {
            if self.written.get(name) != Some(backend) {
                files::write(
                    &directory.join(name),
                    endpoints(backend).as_bytes(),
                    Access::Public,
                )?;
                self.written.insert(name.clone(), Arc::clone(backend));
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

    use ingress_model::live::{Endpoint, UpstreamName};

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
        files.write(&live).unwrap();
        assert_eq!(
            read("tcp-9000").as_deref(),
            Some("10.0.0.1:53\n[fd00::1]:53\n")
        );
        assert_eq!(read("udp-53").as_deref(), Some(""));

        live.tcp.insert(9000, backend(&["10.0.0.2"]));
        live.udp.clear();
        files.write(&live).unwrap();
        assert_eq!(read("tcp-9000").as_deref(), Some("10.0.0.2:53\n"));
        assert_eq!(read("udp-53"), None);
    }

    #[test]
    fn nothing_is_written_where_nothing_is_read() {
        let mut live = Live::default();
        live.tcp.insert(1, backend(&["10.0.0.1"]));
        assert!(StreamFiles::none().write(&live).is_ok());
    }
}
