//! What runs on this machine: NGINX, which answers at its status port, and the controller, which answers at the port of its
//! health check.

use std::{collections::BTreeMap, net::IpAddr};

use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, StatusCode, body::Bytes, http};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use lua_sync_client::{Endpoint, LuaSyncClient, Settings, wire::Backend};

use super::{CommandError, source::block_on};
use crate::{args::Args, debug, quarantine::Record};

/// The longest answer of a controller that is read, in bytes.
const LONGEST: usize = 1 << 30;

/// Why the running controller does not tell something.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers.
    #[error("it does not answer")]
    Silent(#[source] hyper_util::client::legacy::Error),
    /// Its address cannot be used.
    #[error("the address cannot be used")]
    Address(#[source] http::Error),
    /// It refuses to tell.
    #[error("it answers {status}: {text}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// What it says.
        text: String,
    },
    /// Its answer breaks off, or is too long.
    #[error("its answer cannot be read")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Its answer is not what this release understands.
    #[error("its answer is not understood")]
    Understand(#[source] serde_json::Error),
}

/// What the running controller keeps apart since NGINX refuses it.
pub(super) fn isolated(args: &Args) -> Result<Record, CommandError> {
    let read = |text: Bytes| serde_json::from_slice(&text).map_err(AskError::Understand);
    let told = block_on(get(args, debug::ISOLATED))?.and_then(read);
    told.map_err(|source| silent(args, source))
}

/// What its NGINX runs with, as JSON for people.
pub(super) fn model(args: &Args) -> Result<String, CommandError> {
    let told = block_on(get(args, debug::MODEL))?;
    let told = told.map_err(|source| silent(args, source))?;
    Ok(String::from_utf8_lossy(&told).into_owned())
}

/// The values of its flags; none of a release that does not tell them.
pub(super) fn flags(args: &Args) -> Result<BTreeMap<String, String>, CommandError> {
    let told = match block_on(get(args, debug::FLAGS))? {
        Err(AskError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {
            return Ok(BTreeMap::new());
        }
        told => told,
    };
    let read = |text: Bytes| serde_json::from_slice(&text).map_err(AskError::Understand);
    told.and_then(read).map_err(|source| silent(args, source))
}

fn silent(args: &Args, source: AskError) -> CommandError {
    CommandError::Controller {
        port: args.ports.healthz_port,
        source,
    }
}

async fn get(args: &Args, path: &str) -> Result<Bytes, AskError> {
    let address = format!("http://{}{path}", address(args));
    let request = Request::get(address).body(Empty::<Bytes>::new());
    let request = request.map_err(AskError::Address)?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.map_err(AskError::Silent)?;
    let status = response.status();
    let text = Limited::new(response.into_body(), LONGEST).collect().await;
    let text = text.map_err(AskError::Read)?.to_bytes();
    if status == StatusCode::OK {
        return Ok(text);
    }
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    Err(AskError::Refused { status, text })
}

/// Where the controller with these flags answers its own machine.
fn address(args: &Args) -> String {
    let port = args.ports.healthz_port;
    let host = args.ports.healthz_host.as_deref();
    let ip = host.and_then(|host| host.parse::<IpAddr>().ok());
    let host = match (ip, host) {
        (Some(IpAddr::V6(ip)), _) if !ip.is_unspecified() => format!("[{ip}]"),
        (Some(IpAddr::V4(ip)), _) if !ip.is_unspecified() => ip.to_string(),
        (None, Some(host)) => host.to_owned(),
        (Some(_) | None, _) => "127.0.0.1".to_owned(),
    };
    format!("{host}:{port}")
}

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
    fn a_controller_that_listens_everywhere_is_asked_at_this_machine() {
        for (flags, want) in [
            (&[][..], "127.0.0.1:10254"),
            (&["--healthz-host=0.0.0.0"], "127.0.0.1:10254"),
            (&["--healthz-host=::"], "127.0.0.1:10254"),
            (&["--healthz-host=::1", "--healthz-port=9"], "[::1]:9"),
            (&["--healthz-host=127.0.0.2"], "127.0.0.2:10254"),
            (&["--healthz-host=localhost"], "localhost:10254"),
        ] {
            let args = Args::try_parse_from([&["test"], flags].concat()).unwrap();
            assert_eq!(address(&args), want);
        }
    }

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
