//! Why NGINX could not be told or asked something.

use std::{fmt, io, time::Duration};

use thiserror::Error;

use crate::revision::Revision;

/// Which request failed. Queries are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
}

/// Why a request to NGINX's configuration server failed.
///
/// No variant holds what was sent, and an answer is quoted only in part and never when it shows key material.
#[derive(Debug, Error)]
pub enum Error {
    /// Nothing listens there, or it does not take the connection. The request was not sent.
    #[error("connect to nginx at {endpoint}")]
    Connect {
        /// The address or socket.
        endpoint: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No whole answer came in time. Whether the request took effect is unknown.
    #[error("wait for nginx's answer to {call} for {} ms", after.as_millis())]
    Timeout {
        /// The request.
        call: Call,
        /// How long an answer may take.
        after: Duration,
    },
    /// The connection broke before the answer was whole. Whether the request took effect is unknown.
    #[error("read nginx's answer to {call}")]
    Interrupted {
        /// The request.
        call: Call,
        /// What became of the connection.
        #[source]
        source: hyper::Error,
    },
    /// The answer has a status that the request does not have on success.
    #[error("nginx answered {call} with status {code}: {excerpt:?}")]
    Status {
        /// The request.
        call: Call,
        /// The status.
        code: u16,
        /// The beginning of the answer's body.
        excerpt: String,
    },
    /// NGINX's state is not the one that the change was made for. Nothing changed; it has to be told everything.
    #[error("nginx refused {call}: it has revision {have}, not the one the change is based on")]
    Stale {
        /// The request.
        call: Call,
        /// The revision that NGINX has.
        have: Revision,
    },
    /// The change does not fit into a shared dictionary. NGINX changed nothing; trying again is of no use.
    #[error(
        "dictionary {dictionary} is too small: {needed} bytes are needed, it has {capacity}; raise it with the \
         ConfigMap key lua-shared-dicts"
    )]
    DictionaryFull {
        /// The dictionary (NGINX directive `lua_shared_dict`).
        dictionary: String,
        /// Bytes that NGINX needs to make the change, about; old and new texts are there side by side for a moment.
        needed: u64,
        /// Bytes that the dictionary has.
        capacity: u64,
    },
    /// The answer is not the JSON that it has to be.
    #[error("decode nginx's answer to {call}")]
    Decode {
        /// The request.
        call: Call,
        /// Where it is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The answer is larger than the client takes.
    #[error("nginx's answer to {call} has more than {limit} bytes")]
    TooLarge {
        /// The request.
        call: Call,
        /// Bytes that an answer may have.
        limit: usize,
    },
    /// The request could not be put together.
    #[error("build the request {call}")]
    Request {
        /// The request.
        call: Call,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Call {
    pub(crate) const fn new(method: &'static str, path: &'static str) -> Self {
        Self { method, path }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Error {
    /// Whether the same request may succeed a moment later: no connection, no answer, or a status of 500 and above.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Timeout { .. } | Self::Interrupted { .. } => true,
            Self::Status { code, .. } => *code >= 500 && *code != INSUFFICIENT_STORAGE,
            Self::Stale { .. }
            | Self::DictionaryFull { .. }
            | Self::Decode { .. }
            | Self::TooLarge { .. }
            | Self::Request { .. } => false,
        }
    }

    /// Whether NGINX certainly kept the state it had: it refused, or the request was never sent.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Stale { .. } | Self::DictionaryFull { .. } | Self::Request { .. } => true,
            Self::Status { code, .. } => (400..500).contains(code) || *code == INSUFFICIENT_STORAGE,
            // A connection that fails is an NGINX that is gone, and its state with it.
            Self::Connect { .. }
            | Self::Timeout { .. }
            | Self::Interrupted { .. }
            | Self::Decode { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// Whether a smaller change may succeed: it did not fit into a dictionary or into a request.
    pub(crate) fn is_misfit(&self) -> bool {
        match self {
            Self::DictionaryFull { .. } => true,
            Self::Status { code, .. } => [CONTENT_TOO_LARGE, INSUFFICIENT_STORAGE].contains(code),
            Self::Connect { .. }
            | Self::Timeout { .. }
            | Self::Interrupted { .. }
            | Self::Stale { .. }
            | Self::Decode { .. }
            | Self::TooLarge { .. }
            | Self::Request { .. } => false,
        }
    }
}

/// The beginning of an answer's body, for an error's text.
pub(crate) fn excerpt(body: &[u8]) -> String {
    const LONGEST: usize = 200;
    const PEM: &[u8] = b"-----BEGIN";

    if body.windows(PEM.len()).any(|part| part == PEM) {
        return "(withheld: it holds PEM)".to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

const CONTENT_TOO_LARGE: u16 = 413;
const INSUFFICIENT_STORAGE: u16 = 507;

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call::new("PATCH", "/configuration/backends");

    fn status(code: u16) -> Error {
        Error::Status {
            call: CALL,
            code,
            excerpt: String::new(),
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (error, transient, refusal) in [
            (status(500), true, false),
            (status(503), true, false),
            (status(507), false, true),
            (status(400), false, true),
            (status(413), false, true),
            (status(200), false, false),
            (
                Error::Stale {
                    call: CALL,
                    have: Revision::new(1),
                },
                false,
                true,
            ),
            (
                Error::Timeout {
                    call: CALL,
                    after: Duration::from_secs(1),
                },
                true,
                false,
            ),
            (
                Error::Connect {
                    endpoint: "127.0.0.1:1".to_owned(),
                    source: io::Error::from(io::ErrorKind::ConnectionRefused),
                },
                true,
                false,
            ),
        ] {
            assert_eq!(
                (error.is_transient(), error.is_refusal()),
                (transient, refusal),
                "{error}"
            );
        }
    }

    #[test]
    fn a_full_dictionary_names_the_setting_to_raise() {
        let error = Error::DictionaryFull {
            dictionary: "configuration_data".to_owned(),
            needed: 31,
            capacity: 20,
        };
        assert_eq!(
            error.to_string(),
            "dictionary configuration_data is too small: 31 bytes are needed, it has 20; raise it with the ConfigMap \
             key lua-shared-dicts"
        );
        assert!(!error.is_transient() && error.is_refusal());
    }

    #[test]
    fn excerpts_are_short_and_show_no_key() {
        assert_eq!(excerpt(b" a text\n"), "a text");
        assert_eq!(excerpt(&[b'x'; 1000]).chars().count(), 201);
        assert_eq!(
            excerpt(b"cannot store -----BEGIN PRIVATE KEY-----\nMIIE"),
            "(withheld: it holds PEM)"
        );
        // Not even when it lies behind what would be quoted.
        let mut late = vec![b'x'; 1000];
        late.extend_from_slice(b"-----BEGIN EC PRIVATE KEY-----");
        assert_eq!(excerpt(&late), "(withheld: it holds PEM)");
        assert_eq!(excerpt(&[0xff, b'a']), "\u{fffd}a");
    }
}
