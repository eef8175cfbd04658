//! MaxMind's databases, fetched before NGINX starts (`--maxmind-license-key`, `--maxmind-mirror`).
//!
//! What cannot be fetched is logged, and a database that is there already is used.

use std::{
    io::{self, Read},
    path::Path,
    time::Duration,
};

use flate2::read::GzDecoder;
use hyper::body::Bytes;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::{
    args::NginxArgs,
    chain::chain,
    download::{DownloadError, Downloads},
    nginx::files::{self, Access, WriteError},
};

/// Where databases are fetched unless a mirror is named.
const MAXMIND: &str = "https://download.maxmind.com/app/geoip_download";

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// How many bytes an archive and the database in it may have.
const LARGEST: usize = 1 << 30;

/// By how much each wait is longer than the one before.
const GROWTH: f64 = 1.5;

/// Why a database could not be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    /// It does not come.
    #[error("cannot get the database")]
    Get(#[from] DownloadError),
    /// It takes too long.
    #[error("the database does not come within {} s", PATIENCE.as_secs())]
    Slow,
    /// The answer is no archive.
    #[error("cannot unpack the archive with the database")]
    Unpack(#[source] io::Error),
    /// The archive holds something else.
    #[error("there is no file {0} in the archive")]
    Missing(String),
    /// There is no place for the database.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Fetches the databases that flags name into a directory, if flags say where from.
pub(crate) async fn fetch(flags: &NginxArgs, directory: &Path) {
    let key = flags.maxmind_license_key.as_deref();
    let mirror = flags.maxmind_mirror.as_deref();
    if key.is_none() && mirror.is_none() {
        return;
    }
    let client = match Downloads::new() {
        Ok(client) => client,
        Err(error) => {
            warn!(error = chain(&error), "cannot fetch MaxMind databases");
            return;
        }
    };
    for edition in flags.maxmind_editions() {
        let address = address(edition, key, mirror);
        match fetch_one(&client, flags, &address, edition, directory).await {
            Ok(()) => info!(edition, "fetched the MaxMind database"),
            Err(error) => warn!(
                edition,
                error = chain(&error),
                "cannot fetch the MaxMind database"
            ),
        }
    }
}

/// Where a database is.
fn address(edition: &str, key: Option<&str>, mirror: Option<&str>) -> String {
    match (mirror, key) {
        (Some(mirror), _) => format!("{}/{edition}.tar.gz", mirror.trim_end_matches('/')),
        (None, key) => {
            let key = key.unwrap_or_default();
            format!("{MAXMIND}?license_key={key}&edition_id={edition}&suffix=tar.gz")
        }
    }
}

async fn fetch_one(
    client: &Downloads,
    flags: &NginxArgs,
    address: &str,
    edition: &str,
    directory: &Path,
) -> Result<(), FetchError> {
    let archive = with_retries(client, flags, address).await?;
    let name = format!("{edition}.mmdb");
    let file = unpack(&archive, &name)?;
    files::write(&directory.join(name), &file, Access::Public)?;
    Ok(())
}

/// Asks again as long as nobody listens there, if flags say how long to wait.
async fn with_retries(
    client: &Downloads,
    flags: &NginxArgs,
    address: &str,
) -> Result<Bytes, FetchError> {
    let mut wait = flags.maxmind_retries_timeout;
    let mut left = flags.maxmind_retries_count;
    loop {
        left = left.saturating_sub(1);
        let asked = timeout(PATIENCE, client.get(address, LARGEST)).await;
        let asked = asked.map_or(Err(FetchError::Slow), |asked| {
            asked.map_err(FetchError::from)
        });
        match asked {
            Err(error) if left > 0 && !wait.is_zero() && is_refused(&error) => {
                info!(
                    error = chain(&error),
                    ?wait,
                    "trying again to fetch a MaxMind database"
                );
                sleep(wait).await;
                wait = wait.mul_f64(GROWTH);
            }
            asked => return asked,
        }
    }
}

/// Whether nobody listens.
fn is_refused(error: &FetchError) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        let kind = error.downcast_ref().map(io::Error::kind);
        if kind == Some(io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = error.source();
    }
    false
}

/// The file of that name in a compressed archive, in whatever directory.
fn unpack(archive: &[u8], name: &str) -> Result<Vec<u8>, FetchError> {
    let limit = u64::try_from(LARGEST).unwrap_or(u64::MAX);
    let mut archive = tar::Archive::new(GzDecoder::new(archive).take(limit));
    for entry in archive.entries().map_err(FetchError::Unpack)? {
        let mut entry = entry.map_err(FetchError::Unpack)?;
        let path = entry.path().map_err(FetchError::Unpack)?;
        if entry.header().entry_type().is_file() && path.file_name() == Some(name.as_ref()) {
            let mut file = Vec::new();
            entry.read_to_end(&mut file).map_err(FetchError::Unpack)?;
            return Ok(file);
        }
    }
    Err(FetchError::Missing(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use axum::{Router, extract::Path as Parameter, response::Redirect, routing::get};
    use clap::Parser;
    use flate2::{Compression, write::GzEncoder};
    use tokio::net::TcpListener;

    use super::*;
    use crate::args::Args;

    fn archive(name: &str, content: &[u8]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut add = |path: &str, content: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(u64::try_from(content.len()).unwrap());
            header.set_mode(0o644);
            builder.append_data(&mut header, path, content).unwrap();
        };
        add("Edition_20261130/LICENSE.txt", b"mine");
        add(&format!("Edition_20261130/{name}"), content);
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&builder.into_inner().unwrap()).unwrap();
        packed.finish().unwrap()
    }

    fn flags(words: &[&str]) -> NginxArgs {
        let words = ["controller"].iter().chain(words);
        Args::parse_from(words).nginx
    }

    #[tokio::test]
    async fn databases_come_from_a_mirror_and_stay_where_it_fails() {
        let router = Router::new()
            .route(
                "/old/{file}",
                get(async |Parameter(file): Parameter<String>| {
                    Redirect::temporary(&format!("/new/{file}"))
                }),
            )
            .route(
                "/new/GeoLite2-City.tar.gz",
                get(async || archive("GeoLite2-City.mmdb", b"city")),
            )
            .route(
                "/new/GeoLite2-ASN.tar.gz",
                get(async || archive("README", b"nothing")),
            );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mirror = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        std::fs::write(file("GeoLite2-ASN.mmdb"), "old").unwrap();
        fetch(
            &flags(&[&format!("--maxmind-mirror=http://{mirror}/old/")]),
            directory.path(),
        )
        .await;
        assert_eq!(std::fs::read(file("GeoLite2-City.mmdb")).unwrap(), b"city");
        assert_eq!(std::fs::read(file("GeoLite2-ASN.mmdb")).unwrap(), b"old");
        fetch(&flags(&[]), &file("none")).await;
        assert!(!file("none").exists(), "nobody has said where from");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_listen_is_asked_again() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/x.tar.gz", free.local_addr().unwrap());
        drop(free);
        let began = tokio::time::Instant::now();
        for (words, waited) in [
            (&["--maxmind-retries-count=3"][..], 0.0),
            (
                &["--maxmind-retries-count=3", "--maxmind-retries-timeout=10s"],
                25.0,
            ),
        ] {
            let error = with_retries(&Downloads::new().unwrap(), &flags(words), &address).await;
            assert!(is_refused(&error.unwrap_err()));
            assert!(
                (began.elapsed().as_secs_f64() - waited).abs() < 1.0,
                "{words:?}"
            );
        }
    }

    #[test]
    fn addresses_are_those_of_ingress_nginx() {
        assert_eq!(
            address("GeoLite2-City", Some("k"), None),
            "https://download.maxmind.com/app/geoip_download?license_key=k&edition_id=GeoLite2-City&suffix=tar.gz"
        );
        let mirror = Some("http://mirror.test/geoip/");
        let want = "http://mirror.test/geoip/GeoLite2-City.tar.gz";
        assert_eq!(address("GeoLite2-City", Some("k"), mirror), want);
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        assert!(matches!(
            unpack(b"<html>", "a.mmdb"),
            Err(FetchError::Unpack(_))
        ));
    }
}
