//! Every key of the ConfigMap, once: its name, what it takes, and how it is read.

use std::{collections::BTreeMap, fmt, fmt::Write, sync::LazyLock};

use crate::{annotation::cell, spelling, value::ValueError};

use super::{Draft, RenderConfig};

/// Where the effect of a key lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// NGINX's main block.
    Main,
    /// The events block.
    Events,
    /// The http block.
    Http,
    /// Every server.
    Server,
    /// Every location.
    Location,
    /// The stream block.
    Stream,
    /// The controller itself.
    Controller,
}

/// Whether this version acts on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It does.
    Supported,
    /// It says that it does not.
    NotYet,
}

/// One key of the ConfigMap.
#[derive(Clone, Copy, Debug)]
pub struct KeyInfo {
    /// Its name.
    pub name: &'static str,
    /// What its value may be, in words.
    pub value: &'static str,
    /// What holds without it, in words.
    pub default: &'static str,
    /// Where its effect lands.
    pub context: Context,
    /// Whether this version acts on it.
    pub status: Status,
    /// A value that differs from the default.
    pub example: &'static str,
    /// A value that cannot be used; `None` where any text can.
    pub bad: Option<&'static str>,
    /// What it does, in Markdown.
    pub doc: &'static str,
    /// How it is read.
    action: Option<Action>,
    /// What holds when its value cannot be used.
    pub(super) instead: Instead,
}

/// What holds when the value of a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    /// The default.
    Default,
    /// An empty list: the default would trust more than the author of the value wants.
    Nobody,
    /// Nothing is served of what the key protects: the default would open it.
    Closed,
    /// The lowest level: the default would allow more than the author of the value may want.
    Lowest,
}

/// How a key is read and compared.
#[derive(Clone, Copy, Debug)]
struct Action {
    set: fn(&mut Draft, &str) -> Result<(), ValueError>,
    differs: fn(&RenderConfig, &RenderConfig) -> bool,
}

/// What most keys have in common; the tables name what differs.
const KEY: KeyInfo = KeyInfo {
    name: "",
    value: "",
    default: "",
    context: Context::Http,
    status: Status::Supported,
    example: "",
    bad: None,
    doc: "",
    action: None,
    instead: Instead::Default,
};

impl KeyInfo {
    /// Whether its value is looked at.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.action.is_some()
    }

    /// Whether nobody but NGINX may see its value.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        self.name == "ssl-session-ticket-key"
    }

    /// Reads the key's trimmed text into the draft.
    pub(super) fn set(&self, draft: &mut Draft, text: &str) -> Result<(), ValueError> {
        self.action
            .map_or(Ok(()), |action| (action.set)(draft, text))
    }

    /// Whether what the key shows in the configuration files differs.
    pub(super) fn differs(&self, one: &RenderConfig, other: &RenderConfig) -> bool {
        self.action
            .is_some_and(|action| (action.differs)(one, other))
    }
}

/// A key that is one field of [`RenderConfig`]: the field, and what reads the text.
macro_rules! render {
    ($($field:ident).+, $read:expr) => {
        Some($crate::config::keys::Action {
            set: |draft, text| {
                draft.render.$($field).+ = ($read)(text)?;
                Ok(())
            },
            differs: |one, other| one.$($field).+ != other.$($field).+,
        })
    };
}

/// A key that is a list in one field of [`RenderConfig`]: the field, and what reads an item.
macro_rules! render_list {
    ($field:ident, $read:expr) => {
        Some($crate::config::keys::Action {
            set: |draft, text| {
                draft.render.$field = draft.items(text, $read)?;
                Ok(())
            },
            differs: |one, other| one.$field != other.$field,
        })
    };
}

/// A key that is a list in one field of [`Policy`](super::Policy).
macro_rules! policy_list {
    ($field:ident, $read:expr) => {
        Some($crate::config::keys::Action {
            set: |draft, text| {
                draft.policy.$field = draft.items(text, $read)?;
                Ok(())
            },
            differs: |_, _| false,
        })
    };
}

/// A key that is one field of [`Policy`](super::Policy).
macro_rules! policy {
    ($field:ident, $read:expr) => {
        Some($crate::config::keys::Action {
            set: |draft, text| {
                draft.policy.$field = ($read)(text)?;
                Ok(())
            },
            differs: |_, _| false,
        })
    };
}

/// A key that names an object whose content goes into a field of [`RenderConfig`] of the same name.
macro_rules! reference {
    ($field:ident) => {
        Some($crate::config::keys::Action {
            set: |draft, text| {
                draft.policy.references.$field =
                    $crate::config::keys::read::optional(text, $crate::scalar::object_name)?;
                Ok(())
            },
            differs: |one, other| one.$field != other.$field,
        })
    };
}

/// A key that is one part of the ConfigMap's external authentication.
macro_rules! auth {
    ($field:ident, $read:expr) => {
        Some($crate::config::keys::Action {
            set: |draft, text| {
                draft.auth.$field = ($read)(text)?;
                Ok(())
            },
            differs: |_, _| false,
        })
    };
}

mod access;
mod address;
mod auth;
mod client;
mod compression;
mod errors;
mod headers;
mod listen;
mod logs;
mod memory;
mod modules;
mod process;
mod read;
mod redirects;
mod snippets;
mod stream;
mod tls;
mod upstream;

/// The groups, in the order of the documentation. Within a group a general key comes before the special ones that
/// override it.
const GROUPS: &[(&str, &[KeyInfo])] = &[
    ("What is allowed", access::KEYS),
    ("Process", process::KEYS),
    ("Listening", listen::KEYS),
    ("Requests", client::KEYS),
    ("Who the client is", address::KEYS),
    ("TLS", tls::KEYS),
    ("Redirects", redirects::KEYS),
    ("Endpoints", upstream::KEYS),
    ("Headers", headers::KEYS),
    ("Error pages", errors::KEYS),
    ("Authentication", auth::KEYS),
    ("Logs", logs::KEYS),
    ("Compression", compression::KEYS),
    ("Tables and shared memory", memory::KEYS),
    ("TCP and UDP services", stream::KEYS),
    ("Raw configuration", snippets::KEYS),
    ("Optional modules", modules::KEYS),
];

/// Lower-case name → key.
static BY_NAME: LazyLock<BTreeMap<&'static str, &'static KeyInfo>> =
    LazyLock::new(|| keys().map(|key| (key.name, key)).collect());

/// Every key, by group.
pub fn keys() -> impl Iterator<Item = &'static KeyInfo> {
    GROUPS.iter().flat_map(|(_, keys)| *keys)
}

/// The key of that name, in any case.
#[must_use]
pub fn find_key(name: &str) -> Option<&'static KeyInfo> {
    BY_NAME
        .get(name)
        .or_else(|| BY_NAME.get(&*name.to_ascii_lowercase()))
        .copied()
}

/// The key that somebody who wrote `name` most likely meant.
pub(super) fn suggestion(name: &str) -> Option<&'static str> {
    spelling::nearest(&name.to_ascii_lowercase(), BY_NAME.keys().copied())
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Supported => "yes",
            Self::NotYet => "not yet",
        })
    }
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "the default holds",
            Self::Nobody => "nobody is trusted",
            Self::Closed => "what it would protect answers 503",
            Self::Lowest => "the level Low holds",
        })
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Main => "main",
            Self::Events => "events",
            Self::Http => "http",
            Self::Server => "server",
            Self::Location => "location",
            Self::Stream => "stream",
            Self::Controller => "controller",
        })
    }
}

const INTRODUCTION: &str = "\
# ConfigMap

Keys of the ConfigMap that the flag `--configmap` names. This page is generated from the registry of the crate
`ingress-model`; a test keeps the two equal.

Unknown keys and values that cannot be used are reported, by an event on the ConfigMap and in the log; the default holds
for them, and everything else is taken. Of a list, the items that can be used hold. Where the default would let in or
trust more than the author of the value wants, it does not hold: see `whitelist-source-range`, `global-auth-url`,
`annotations-risk-level` and `proxy-real-ip-cidr`. Keys that nothing acts on are reported when used. Any change of what
the configuration files show reloads NGINX. Without the ConfigMap, all defaults hold.

## What can be customised

Templates are compiled into the program: there is no template file to replace, and ingress-nginx's `nginx.tmpl` is not
read. What keys and annotations cannot say, raw configuration can: for everything, `main-snippet`, `http-snippet`,
`server-snippet`, `location-snippet` and `stream-snippet` below; for one Ingress, the annotations `server-snippet`,
`configuration-snippet`, `auth-snippet`, `modsecurity-snippet` and `stream-snippet`, where `allow-snippet-annotations` and
`annotations-risk-level` let them. Beyond that, there are the templates of the crate `nginx-render`, and building anew.
";

/// The documentation of all keys, in Markdown.
#[must_use]
pub fn config_keys_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (title, keys) in GROUPS {
        page.push_str("\n## ");
        page.push_str(title);
        page.push_str(
            "\n\n| key | value | default | where | acted on | meaning |\n|---|---|---|---|---|---|\n",
        );
        for key in *keys {
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                page,
                "| `{}` | {} | {} | {} | {} | {} |",
                key.name,
                cell(key.value),
                cell(key.default),
                key.context,
                if key.is_read() {
                    key.status.to_string()
                } else {
                    "no".to_owned()
                },
                cell(key.doc),
            );
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_registered_once() {
        assert_eq!(keys().count(), 197);
        assert_eq!(BY_NAME.len(), 197);
    }

    #[test]
    fn every_key_is_described() {
        for key in keys() {
            assert!(!key.value.is_empty(), "{}", key.name);
            assert!(!key.default.is_empty(), "{}", key.name);
            assert!(!key.example.is_empty(), "{}", key.name);
            assert!(key.doc.ends_with('.'), "{}", key.name);
            assert_eq!(key.name, key.name.to_ascii_lowercase());
            assert!(
                key.is_read() || key.status == Status::NotYet,
                "{}",
                key.name
            );
        }
    }
}
