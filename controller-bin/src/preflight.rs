//! What is looked at before NGINX is started, since NGINX would fail at it again and again.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, TcpListener},
    path::{Path, PathBuf},
};

use nginx_render::{Capabilities, Module};
use rustix::fs::getxattr;

/// Why NGINX need not be started.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// NGINX cannot be told of endpoints and certificates.
    #[error(
        "{} has no Lua module; on Debian, apt-get install libnginx-mod-http-lua lua-cjson lua-resty-core",
        binary.display()
    )]
    NoLua {
        /// The program.
        binary: PathBuf,
    },
    /// A port is taken.
    #[error("port {port} of flag {flag} is in use")]
    PortInUse {
        /// The flag.
        flag: &'static str,
        /// The port.
        port: u16,
    },
    /// A port is kept from us.
    #[error(
        "port {port} of flag {flag} is not for this user; choose a higher one, run as root, or grant CAP_NET_BIND_SERVICE"
    )]
    PortForbidden {
        /// The flag.
        flag: &'static str,
        /// The port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
}

/// Sees that the program has the module without which nothing works here.
///
/// # Errors
///
/// When it has not.
pub fn check_modules(binary: &Path, capabilities: &Capabilities) -> Result<(), PreflightError> {
    if capabilities.has(Module::Lua) {
        Ok(())
    } else {
        Err(PreflightError::NoLua {
            binary: binary.to_owned(),
        })
    }
}

/// Sees that the program can listen at these ports, each named with its flag.
///
/// # Errors
///
/// The first port at which it cannot, because somebody else does or because it may not.
pub fn check_ports(
    binary: &Path,
    ports: impl IntoIterator<Item = (&'static str, u16)>,
) -> Result<(), PreflightError> {
    for (flag, port) in ports {
        let bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
            .map(drop)
            .and_then(|()| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)));
        if let Err(error) = bound {
            refuse(flag, port, error, || has_capabilities(binary))?;
        }
    }
    Ok(())
}

/// What an address at which we cannot listen means for NGINX. A machine may lack IPv6, and NGINX's program may have
/// rights that we have not.
fn refuse(
    flag: &'static str,
    port: u16,
    source: io::Error,
    may_more: impl FnOnce() -> bool,
) -> Result<(), PreflightError> {
    let kind = source.kind();
    if kind == io::ErrorKind::AddrInUse {
        Err(PreflightError::PortInUse { flag, port })
    } else if kind == io::ErrorKind::PermissionDenied && !may_more() {
        Err(PreflightError::PortForbidden { flag, port, source })
    } else {
        Ok(())
    }
}

/// Whether a program gets rights of its own when it is run (capabilities(7), "File capabilities").
fn has_capabilities(program: &Path) -> bool {
    let mut value = [0_u8; 64];
    getxattr(program, "security.capability", &mut value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAG: &str = "--http-port";

    fn check(port: u16) -> Result<(), String> {
        check_ports(Path::new("/bin/true"), [(FLAG, port)]).map_err(|error| error.to_string())
    }

    #[test]
    fn ports_are_taken_by_whoever_listens_at_one_of_their_addresses() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let other = match TcpListener::bind(address) {
                Ok(other) => other,
                // A machine without IPv6 has no such ports.
                Err(_) if address.starts_with('[') => continue,
                Err(error) => panic!("{address}: {error}"),
            };
            let port = other.local_addr().unwrap().port();
            let said = check(port).unwrap_err();
            assert_eq!(said, format!("port {port} of flag --http-port is in use"));
            drop(other);
            assert_eq!(check(port), Ok(()), "{address}");
        }
    }

    #[test]
    fn a_port_that_is_kept_from_us_is_one_that_nginx_may_have() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let error = refuse(FLAG, 80, denied(), || false).unwrap_err();
        assert!(matches!(
            error,
            PreflightError::PortForbidden { port: 80, .. }
        ));
        assert!(refuse(FLAG, 80, denied(), || true).is_ok());
        let no_ipv6 = io::Error::from(io::ErrorKind::AddrNotAvailable);
        assert!(refuse(FLAG, 80, no_ipv6, || false).is_ok());
    }

    #[test]
    fn an_nginx_without_lua_is_named_with_the_package_that_it_lacks() {
        let bare = Capabilities::parse("nginx version: nginx/1.22.1\n", []);
        let error = check_modules(Path::new("/usr/sbin/nginx"), &bare).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with("/usr/sbin/nginx has no Lua module"),
            "{said}"
        );
        assert!(said.contains("libnginx-mod-http-lua"), "{said}");
    }
}
