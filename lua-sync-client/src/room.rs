//! How much of NGINX's shared dictionaries a state takes, so that they can be made large enough before it is told.

use std::io::{self, Write};

use ingress_model::live::Live;

use crate::{error::Error, wire::Backend};

const CONFIGURATION_DATA: &str = "configuration_data";
const CERTIFICATE_DATA: &str = "certificate_data";
const CERTIFICATE_SERVERS: &str = "certificate_servers";

/// Bytes of a dictionary's node beside key and value.
const NODE: usize = 68;

/// Bytes of the numbers that the Lua side adds to the keys of texts.
const GENERATION: usize = 16;

/// The largest piece of memory that NGINX's slab allocator cuts from a page.
const LARGEST_SLOT: usize = PAGE / 2;

const PAGE: usize = 4096;

/// Bytes of each dictionary (NGINX directive `lua_shared_dict`) that a state takes, about.
///
/// A change needs room for old and new texts side by side, so that a dictionary is comfortable with twice as much.
///
/// ```
/// use ingress_model::live::Live;
/// use lua_sync_client::Room;
///
/// assert_eq!(Room::of(&Live::default()), Room::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Of `configuration_data`.
    pub backends: u64,
    /// Of `certificate_data`.
    pub certificates: u64,
    /// Of `certificate_servers`.
    pub servers: u64,
}

impl Room {
    /// What `live` takes.
    #[must_use]
    pub fn of(live: &Live) -> Self {
        let backends = live
            .backends
            .values()
            .map(|backend| versioned("b/".len() + backend.name.as_str().len(), length(backend)));
        let certificates = live
            .certificates
            .values()
            .map(|certificate| versioned(certificate.id.as_str().len(), certificate.pem.len()));
        let servers = live
            .servers
            .iter()
            .map(|(host, id)| node("=".len() + host.as_str().len(), id.as_str().len()));
        Self {
            backends: sum(backends),
            certificates: sum(certificates),
            servers: sum(servers),
        }
    }

    /// The larger of both, for each dictionary.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            backends: self.backends.max(other.backends),
            certificates: self.certificates.max(other.certificates),
            servers: self.servers.max(other.servers),
        }
    }

    /// The same with what the Lua side said that it needs, if that is why it refused an update.
    #[must_use]
    pub fn and_missing(mut self, error: &Error) -> Self {
        if let Error::DictionaryFull {
            dictionary, needed, ..
        } = error
        {
            let least = |room: &mut u64| *room = (*room).max(*needed);
            match dictionary.as_str() {
                CONFIGURATION_DATA => least(&mut self.backends),
                CERTIFICATE_DATA => least(&mut self.certificates),
                CERTIFICATE_SERVERS => least(&mut self.servers),
                _ => {}
            }
        }
        self
    }

    /// The dictionaries' names and what each takes.
    #[must_use]
    pub const fn dictionaries(self) -> [(&'static str, u64); 3] {
        [
            (CONFIGURATION_DATA, self.backends),
            (CERTIFICATE_DATA, self.certificates),
            (CERTIFICATE_SERVERS, self.servers),
        ]
    }
}

fn sum(sizes: impl Iterator<Item = usize>) -> u64 {
    sizes.map(|size| size as u64).sum()
}

/// An entry whose text has a key for each generation: the text, and which generation it has.
fn versioned(id: usize, text: usize) -> usize {
    let id = id + "t/".len();
    node(id + GENERATION, text) + node(id, size_of::<f64>())
}

fn node(key: usize, value: usize) -> usize {
    allocated(NODE + key + value)
}

/// What NGINX's slab allocator takes for so many bytes: a power of two, or whole pages.
fn allocated(bytes: usize) -> usize {
    if bytes <= LARGEST_SLOT {
        bytes.next_power_of_two()
    } else {
        bytes.next_multiple_of(PAGE)
    }
}

/// Bytes of the text that the Lua side keeps of a backend.
fn length(backend: &ingress_model::Backend) -> usize {
    let mut count = Count(0);
    // Counting cannot fail, and the payload has no keys that are not texts.
    let _counted = serde_json::to_writer(&mut count, &Backend::from(backend));
    count.0
}

/// Counts what is written.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ingress_model::{
        Backend, Host,
        live::{Certificate, CertificateId, Endpoint, UpstreamName},
    };

    use super::*;

    #[test]
    fn memory_comes_in_slots_and_pages() {
        for (bytes, taken) in [(1, 1), (65, 128), (2048, 2048), (2049, 4096), (4097, 8192)] {
            assert_eq!(allocated(bytes), taken, "{bytes} bytes");
        }
    }

    #[test]
    fn each_half_has_dictionaries_of_its_own() {
        let mut live = Live::default();
        let mut backend = Backend::new(UpstreamName::new("default-shop-80"));
        backend.endpoints = vec![Endpoint {
            address: "10.0.0.1".into(),
            port: 80,
        }];
        live.backends
            .insert(backend.name.clone(), Arc::new(backend));
        let room = Room::of(&live);
        assert!((256..=2048).contains(&room.backends), "{room:?}");
        assert_eq!((room.certificates, room.servers), (0, 0));

        let id = CertificateId::new("1");
        live.certificates.insert(
            id.clone(),
            Certificate {
                id: id.clone(),
                pem: "x".repeat(5000).into(),
            },
        );
        live.servers.insert(Host::parse("shop.test").unwrap(), id);
        let with_certificate = Room::of(&live);
        assert_eq!(with_certificate.backends, room.backends);
        assert_eq!(with_certificate.certificates, 8192 + 128);
        assert_eq!(with_certificate.servers, 128);
    }

    #[test]
    fn what_was_missing_counts() {
        let error = Error::DictionaryFull {
            dictionary: CERTIFICATE_DATA.to_owned(),
            needed: 700,
            capacity: 500,
        };
        let room = Room {
            backends: 1,
            certificates: 2,
            servers: 3,
        };
        assert_eq!(
            room.and_missing(&error),
            Room {
                certificates: 700,
                ..room
            }
        );
    }

    #[test]
    fn the_larger_one_is_taken_dictionary_by_dictionary() {
        let (left, right) = (
            Room {
                backends: 1,
                certificates: 5,
                servers: 0,
            },
            Room {
                backends: 3,
                certificates: 2,
                servers: 0,
            },
        );
        assert_eq!(
            left.max(right),
            Room {
                backends: 3,
                certificates: 5,
                servers: 0
            }
        );
    }
}
