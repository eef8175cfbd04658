//! Sizes of NGINX's hash tables, so that no name makes NGINX refuse to start.

use ingress_model::{Layout, config::RenderConfig};

use super::extras::Shared;

/// Sizes of the hash tables that depend on the layout.
pub(crate) struct Hashes {
    pub(crate) names_max: u32,
    pub(crate) names_bucket: u32,
    pub(crate) map_bucket: u32,
    pub(crate) headers_bucket: u32,
}

impl Hashes {
    /// Large enough for all host names, for all names of headers for and of endpoints, and for map keys of `longest_key`
    /// bytes.
    pub(crate) fn new(layout: &Layout, shared: &Shared, longest_key: usize) -> Self {
        let config: &RenderConfig = &layout.config;
        let names = || {
            layout
                .servers
                .values()
                .flat_map(|server| std::iter::once(&server.host).chain(&server.aliases))
        };
        let set = config.proxy_set_headers.iter().map(|(name, _)| name);
        let longest_header = set
            .chain(&config.hide_headers)
            .map(|name| name.as_str().len())
            .fold(shared.longest_header, usize::max);
        let longest = names().map(|host| host.as_str().len()).max().unwrap_or(0);
        let count = u32::try_from(names().count()).unwrap_or(u32::MAX / 4);
        Self {
            names_max: config
                .server_name_hash_max_size
                .max(count.saturating_mul(2).next_power_of_two()),
            names_bucket: config.server_name_hash_bucket_size.max(bucket(longest)),
            map_bucket: config.map_hash_bucket_size.max(bucket(longest_key)),
            headers_bucket: config
                .proxy_headers_hash_bucket_size
                .max(bucket(longest_header)),
        }
    }
}

/// The bucket that a name of `length` bytes needs: two pointers, the name, its length in two bytes, rounded up to
/// pointers. At least a line of the processor's cache.
fn bucket(length: usize) -> u32 {
    let bytes = (length + 2).next_multiple_of(8) + 16;
    u32::try_from(bytes.next_power_of_two())
        .unwrap_or(u32::MAX)
        .max(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_longest_name() {
        for (length, want) in [
            (0, 64),
            (46, 64),
            (47, 128),
            (110, 128),
            (111, 256),
            (253, 512),
        ] {
            assert_eq!(bucket(length), want, "{length}");
        }
    }
}
