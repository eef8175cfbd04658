//! What the NGINX that runs on this machine answers at its status port.

use lua_sync_client::{Endpoint, LuaSyncClient, Settings, wire::Backend};

use super::{CommandError, source::block_on};
use crate::args::Args;

/// The backends that it was told.
pub(super) fn backends(args: &Args) -> Result<Vec<Backend>, CommandError> {
    ask(args, async |client| client.backends().await)
}

/// The text that it keeps for whoever asks; `None`: it keeps none.
pub(super) fn general(args: &Args) -> Result<Option<String>, CommandError> {
    ask(args, async |client| client.general().await)
}

/// The certificates of exactly this name, as PEM, leaf first; `None`: it has none. Its private key is left out.
pub(super) fn certificates(args: &Args, name: &str) -> Result<Option<String>, CommandError> {
    let pem = ask(args, async |client| client.certificate(name).await)?;
    Ok(pem.map(|pem| without_keys(&pem.0)))
}

fn ask<T>(
    args: &Args,
    question: impl AsyncFnOnce(&LuaSyncClient) -> Result<T, lua_sync_client::Error>,
) -> Result<T, CommandError> {
    let address = ([127, 0, 0, 1], args.ports.status_port).into();
    let client = LuaSyncClient::new(Endpoint::Tcp(address), Settings::default());
    let answer = block_on(question(&client))?;
    answer.map_err(|source| CommandError::Nginx {
        port: args.ports.status_port,
        source,
    })
}

/// Only the certificates of a PEM text.
fn without_keys(pem: &str) -> String {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let mut certificates = String::new();
    let mut is_inside = false;
    for line in pem.lines().map(str::trim_end) {
        is_inside |= line == BEGIN;
        if is_inside {
            certificates += line;
            certificates.push('\n');
        }
        is_inside &= line != END;
    }
    certificates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_left_out() {
        let pem = "x\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n\
            -----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n\
            -----BEGIN CERTIFICATE-----\r\nCCCC\r\n-----END CERTIFICATE-----\r\n";
        assert_eq!(
            without_keys(pem),
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n\
             -----BEGIN CERTIFICATE-----\nCCCC\n-----END CERTIFICATE-----\n"
        );
        assert_eq!(without_keys("-----BEGIN EC PRIVATE KEY-----\nB"), "");
    }
}
