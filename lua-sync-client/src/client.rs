//! Requests to NGINX's configuration server.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use ingress_model::live::{Live, LiveDelta};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    connection::{self, Answer},
    error::{Call, Error, excerpt},
    half::Half,
    retry::Retry,
    revision::{Revision, Revisions},
    wire::{self, BackendsPatch, FullDictionary, RevisionAnswer, Servers, ServersPatch, Status},
};

/// Where NGINX's configuration server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// At an address of this machine, usually 127.0.0.1 and `--status-port`.
    Tcp(SocketAddr),
    /// At a socket of the file system.
    Unix(PathBuf),
}

/// Limits of a [`LuaSyncClient`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long one request may take, from connecting to the answer's last byte.
    pub timeout: Duration,
    /// Bytes that the body of an answer may have.
    pub max_answer: usize,
    /// When a failed update is tried again. Questions are not.
    pub retry: Retry,
}

/// Makes requests to one NGINX, each on a connection of its own.
///
/// It has no memory; see [`Synchronizer`](crate::Synchronizer) for one that has. Updates are tried again as
/// [`Settings::retry`] says; since each carries a revision, an update whose answer was lost is not made twice.
#[derive(Clone, Debug)]
pub struct LuaSyncClient {
    endpoint: Endpoint,
    settings: Settings,
}

impl Default for Settings {
    /// 10 s a request, answers up to 64 MiB, retries as in [`Retry::default`].
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            max_answer: 64 << 20,
            retry: Retry::default(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl LuaSyncClient {
    /// A client for the NGINX at `endpoint`. Nothing is connected yet.
    #[must_use]
    pub const fn new(endpoint: Endpoint, settings: Settings) -> Self {
        Self { endpoint, settings }
    }

    /// Where the NGINX is.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Tells NGINX all of `live`, in place of whatever it has. TCP and UDP services are not part of it.
    ///
    /// # Errors
    /// As for [`replace_backends`](Self::replace_backends). When the second half fails, the first is already in effect.
    pub async fn replace(&self, live: &Live, revision: Revision) -> Result<Revisions, Error> {
        self.replace_servers(live, revision).await?;
        self.replace_backends(live, revision).await?;
        Ok(Revisions {
            backends: revision,
            servers: revision,
        })
    }

    /// Tells NGINX what changed since `base`. A half of which nothing changed is not sent and keeps its revision.
    ///
    /// # Errors
    /// [`Error::Stale`] when NGINX has another revision than `base`, otherwise as for
    /// [`replace_backends`](Self::replace_backends). When the second half fails, the first is already in effect.
    pub async fn push(
        &self,
        delta: &LiveDelta,
        base: Revisions,
        revision: Revision,
    ) -> Result<Revisions, Error> {
        let mut now = base;
        if Half::Servers.is_touched_by(delta) {
            self.push_servers(delta, base.servers, revision).await?;
            now.servers = revision;
        }
        if Half::Backends.is_touched_by(delta) {
            self.push_backends(delta, base.backends, revision).await?;
            now.backends = revision;
        }
        Ok(now)
    }

    /// Tells NGINX all backends of `live`, in place of those it has.
    ///
    /// # Errors
    /// [`Error::DictionaryFull`] when they do not fit, else whatever kept the request from succeeding; whether it took
    /// effect all the same is unknown unless [`Error::is_refusal`] says that it did not.
    pub async fn replace_backends(&self, live: &Live, revision: Revision) -> Result<(), Error> {
        let body = encode(BACKENDS_POST, &wire::backends(live))?;
        self.update(BACKENDS_POST, body, Some(revision), 201)
            .await
            .map(drop)
    }

    /// Tells NGINX all servers and certificates of `live`, in place of those it has.
    ///
    /// # Errors
    /// As for [`replace_backends`](Self::replace_backends).
    pub async fn replace_servers(&self, live: &Live, revision: Revision) -> Result<(), Error> {
        self.patch(
            SERVERS_PATCH,
            &ServersPatch::replacing(live, revision),
            revision,
        )
        .await
    }

    /// Tells NGINX which backends changed since `base`.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub async fn push_backends(
        &self,
        delta: &LiveDelta,
        base: Revision,
        revision: Revision,
    ) -> Result<(), Error> {
        self.patch(
            BACKENDS_PATCH,
            &BackendsPatch::new(delta, base, revision),
            revision,
        )
        .await
    }

    /// Tells NGINX which servers and certificates changed since `base`.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub async fn push_servers(
        &self,
        delta: &LiveDelta,
        base: Revision,
        revision: Revision,
    ) -> Result<(), Error> {
        self.patch(
            SERVERS_PATCH,
            &ServersPatch::new(delta, base, revision),
            revision,
        )
        .await
    }

    /// Adds and changes servers and certificates the way ingress-nginx does: nothing is removed, no revision is set.
    ///
    /// # Errors
    /// Whatever kept the request from succeeding.
    pub async fn post_servers(&self, servers: &Servers) -> Result<(), Error> {
        let body = encode(SERVERS_POST, servers)?;
        self.update(SERVERS_POST, body, None, 201).await.map(drop)
    }

    /// Stores a text that NGINX keeps for whoever asks ([`general`](Self::general)).
    ///
    /// # Errors
    /// Whatever kept the request from succeeding.
    pub async fn set_general(&self, text: &str) -> Result<(), Error> {
        self.update(GENERAL_POST, text.to_owned().into_bytes(), None, 201)
            .await
            .map(drop)
    }

    /// The text that [`set_general`](Self::set_general) stored; `None` when there is none.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn general(&self) -> Result<Option<String>, Error> {
        let body = self.question(GENERAL_GET, None).await?.ok(GENERAL_GET)?;
        Ok((body != NOTHING).then(|| String::from_utf8_lossy(&body).into_owned()))
    }

    /// Which state NGINX has, and which NGINX it is.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn revision(&self) -> Result<Status, Error> {
        let body = self.question(REVISION_GET, None).await?.ok(REVISION_GET)?;
        decode(REVISION_GET, &body)
    }

    /// The backends that NGINX has; none when it was told nothing.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn backends(&self) -> Result<Vec<wire::Backend>, Error> {
        let body = self.question(BACKENDS_GET, None).await?.ok(BACKENDS_GET)?;
        if body == NOTHING {
            return Ok(Vec::new());
        }
        decode(BACKENDS_GET, &body)
    }

    /// Certificate and private key of exactly this host, PEM; `None` when it has none of its own.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn certificate(&self, host: &str) -> Result<Option<wire::Pem>, Error> {
        let query = format!("hostname={}", percent_encoded(host));
        let answer = self.question(CERTS_GET, Some(&query)).await?;
        if answer.status == 404 {
            return Ok(None);
        }
        let body = answer.ok(CERTS_GET)?;
        Ok(Some(wire::Pem(String::from_utf8_lossy(&body).into())))
    }

    /// Whether NGINX was told any list of backends since it started.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn initialized(&self) -> Result<bool, Error> {
        let answer = self.question(INITIALIZED_GET, None).await?;
        if answer.status == 500 {
            return Ok(false);
        }
        answer.ok(INITIALIZED_GET).map(|_| true)
    }

    async fn question(&self, call: Call, query: Option<&str>) -> Result<Answer, Error> {
        let request = connection::Request {
            call,
            query,
            revision: None,
            body: Vec::new().into(),
        };
        connection::exchange(&self.endpoint, &self.settings, &request).await
    }

    async fn patch(
        &self,
        call: Call,
        body: &impl Serialize,
        revision: Revision,
    ) -> Result<(), Error> {
        let answer = match self.update(call, encode(call, body)?, None, 200).await {
            // An earlier attempt, whose answer was lost, had taken effect.
            Err(Error::Stale { have, .. }) if have == revision => return Ok(()),
            answer => answer?,
        };
        let RevisionAnswer { revision: have } = decode(call, &answer)?;
        if have == revision {
            Ok(())
        } else {
            Err(Error::Stale { call, have })
        }
    }

    /// Sends `body`, again if need be, and gives the body of an answer with status `success`.
    async fn update(
        &self,
        call: Call,
        body: Vec<u8>,
        revision: Option<Revision>,
        success: u16,
    ) -> Result<hyper::body::Bytes, Error> {
        let request = connection::Request {
            call,
            query: None,
            revision,
            body: body.into(),
        };
        self.settings
            .retry
            .run(|| async {
                let answer = connection::exchange(&self.endpoint, &self.settings, &request).await?;
                answer.expect(call, success)
            })
            .await
    }
}

impl Answer {
    fn ok(self, call: Call) -> Result<hyper::body::Bytes, Error> {
        self.expect(call, 200)
    }

    /// The body, if the status is `success`; else what the status means.
    fn expect(self, call: Call, success: u16) -> Result<hyper::body::Bytes, Error> {
        if self.status == success {
            return Ok(self.body);
        }
        if self.status == 409 {
            let RevisionAnswer { revision: have } = decode(call, &self.body)?;
            return Err(Error::Stale { call, have });
        }
        if self.status == 507
            && let Ok(full) = serde_json::from_slice::<FullDictionary>(&self.body)
        {
            return Err(Error::DictionaryFull {
                dictionary: full.dictionary,
                needed: full.needed,
                capacity: full.capacity,
            });
        }
        Err(Error::Status {
            call,
            code: self.status,
            excerpt: excerpt(&self.body),
        })
    }
}

fn encode(call: Call, body: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(body).map_err(|error| Error::Request {
        call,
        source: error.into(),
    })
}

fn decode<T: DeserializeOwned>(call: Call, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|source| Error::Decode { call, source })
}

/// `text` for use in a query (RFC 3986, unreserved characters stay).
fn percent_encoded(text: &str) -> String {
    use std::fmt::Write;

    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            write!(encoded, "%{byte:02X}").ok();
        }
    }
    encoded
}

/// What NGINX answers when nothing was stored.
const NOTHING: &[u8] = b"nil";

const BACKENDS_GET: Call = Call::new("GET", "/configuration/backends");
const BACKENDS_POST: Call = Call::new("POST", "/configuration/backends");
const BACKENDS_PATCH: Call = Call::new("PATCH", "/configuration/backends");
const SERVERS_POST: Call = Call::new("POST", "/configuration/servers");
const SERVERS_PATCH: Call = Call::new("PATCH", "/configuration/servers");
const GENERAL_GET: Call = Call::new("GET", "/configuration/general");
const GENERAL_POST: Call = Call::new("POST", "/configuration/general");
const CERTS_GET: Call = Call::new("GET", "/configuration/certs");
const REVISION_GET: Call = Call::new("GET", "/configuration/revision");
const INITIALIZED_GET: Call = Call::new("GET", "/is-dynamic-lb-initialized");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_encoded_for_the_query() {
        assert_eq!(percent_encoded("shop-1.test_~"), "shop-1.test_~");
        assert_eq!(
            percent_encoded("*.a b&c=\r\nü"),
            "%2A.a%20b%26c%3D%0D%0A%C3%BC"
        );
    }
}
