//! What is out, as a running controller tells it to whoever looks into it, and as that is taken over.

use std::{fmt, sync::Arc};

use k8s_openapi::api::networking::v1::Ingress;
use serde::{Deserialize, Serialize};

use super::{DISPENSABLE, Kept, Level, OnInvalid, Quarantine, State};
use crate::stored::Stored;

/// What is out, and why. It holds what objects say, and nothing of Secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Ingresses.
    pub ingresses: Vec<IngressRecord>,
    /// Keys of the ConfigMap.
    pub keys: Vec<KeyRecord>,
}

/// An Ingress that is out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IngressRecord {
    /// How far.
    pub level: LevelRecord,
    /// What NGINX says.
    pub reason: String,
    /// The version that it refuses.
    pub refused: Ingress,
    /// The version that is served in its place, if one is.
    pub served: Option<Ingress>,
}

/// A key of the ConfigMap that is out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The key.
    pub key: String,
    /// The value that NGINX refuses.
    pub value: String,
    /// What NGINX says.
    pub reason: String,
}

/// [`Level`], as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelRecord {
    /// [`Level::Earlier`].
    Earlier,
    /// [`Level::Without`].
    Without(String),
    /// [`Level::Denied`].
    Denied,
    /// [`Level::Removed`].
    Removed,
}

impl From<Level> for LevelRecord {
    fn from(level: Level) -> Self {
        match level {
            Level::Earlier => Self::Earlier,
            Level::Without(annotation) => Self::Without(annotation.to_owned()),
            Level::Denied => Self::Denied,
            Level::Removed => Self::Removed,
        }
    }
}

impl LevelRecord {
    /// The level, if there is such a one here: another release may know of other annotations.
    fn level(&self) -> Option<Level> {
        match self {
            Self::Earlier => Some(Level::Earlier),
            Self::Without(annotation) => {
                let mut known = DISPENSABLE.iter();
                known
                    .find(|known| *known == annotation)
                    .map(|known| Level::Without(known))
            }
            Self::Denied => Some(Level::Denied),
            Self::Removed => Some(Level::Removed),
        }
    }
}

impl fmt::Display for Level {
    /// What becomes of the Ingress.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earlier => f.write_str("its version before is served"),
            Self::Without(annotation) => write!(f, "it is served without {annotation}"),
            Self::Denied => f.write_str("its paths answer 503"),
            Self::Removed => f.write_str("it is left out"),
        }
    }
}

impl Quarantine {
    /// What is out now.
    #[must_use]
    pub fn record(&self) -> Record {
        let kept = self.kept();
        let ingresses = kept.ingresses.values().filter_map(|kept| {
            Some(IngressRecord {
                level: kept.level?.into(),
                reason: kept.reason.clone(),
                refused: Ingress::clone(&kept.refused),
                served: kept.served.as_deref().cloned(),
            })
        });
        let keys = kept.keys.iter().filter(|(_, kept)| kept.level.is_some());
        let keys = keys.map(|(key, kept)| KeyRecord {
            key: key.clone(),
            value: kept.refused.clone(),
            reason: kept.reason.clone(),
        });
        Record {
            ingresses: ingresses.collect(),
            keys: keys.collect(),
        }
    }

    /// A quarantine in which is what another one has told.
    #[must_use]
    pub fn of_record(policy: OnInvalid, record: Record) -> Self {
        let mut state = State::default();
        for told in record.ingresses {
            let Some((name, level)) = told.refused.object_name().zip(told.level.level()) else {
                continue;
            };
            let served = told.served.map(Arc::new);
            let kept = Kept::new(Arc::new(told.refused), level, &told.reason, served, None);
            state.ingresses.insert(name, kept);
        }
        for told in record.keys {
            let kept = Kept::new(told.value, Level::Removed, &told.reason, None, None);
            state.keys.insert(told.key, kept);
        }
        Self {
            policy,
            kept: state.into(),
        }
    }
}
