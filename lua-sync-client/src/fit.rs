//! Cutting a change that is too large for a shared dictionary, so that as much of it as possible gets through.
//!
//! NGINX takes a change as a whole or not at all, and needs room for old and new texts at once. Without this, one new
//! backend too many would keep every endpoint change away, and so would a change of all backends that fits in the end
//! but not side by side with what it replaces.

use std::{collections::BTreeMap, ops::Range};

use ingress_model::live::{CertificateId, Live, LiveDelta, UpstreamName};

use crate::half::Half;

/// A change in parts, each of which leaves NGINX in a state that serves.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// What goes away without harm, which makes room.
    pub(crate) first: LiveDelta,
    /// What is set: first what NGINX has in another form, then what is new. Each may be left out.
    pub(crate) then: Vec<LiveDelta>,
    /// What goes away only when all of the above is there.
    pub(crate) last: LiveDelta,
}

/// Finds the parts that fit, by halving what does not.
#[derive(Debug)]
pub(crate) struct Search {
    /// Ranges to be tried, the next one last.
    pending: Vec<Range<usize>>,
    misfits: usize,
}

impl Steps {
    /// Cuts this half of `delta`, which is to be applied to `told`. `known` are backends that NGINX may have otherwise.
    pub(crate) fn new(
        half: Half,
        delta: &LiveDelta,
        told: &Live,
        known: impl Fn(&UpstreamName) -> bool,
    ) -> Self {
        match half {
            Half::Backends => Self::backends(delta, known),
            Half::Servers => Self::servers(delta, told),
        }
    }

    fn backends(delta: &LiveDelta, known: impl Fn(&UpstreamName) -> bool) -> Self {
        let (changed, new): (Vec<_>, Vec<_>) = delta
            .set_backends
            .iter()
            .cloned()
            .partition(|backend| known(&backend.name));
        Self {
            first: LiveDelta {
                remove_backends: delta.remove_backends.clone(),
                ..LiveDelta::default()
            },
            then: changed
                .into_iter()
                .chain(new)
                .map(|backend| LiveDelta {
                    set_backends: vec![backend],
                    ..LiveDelta::default()
                })
                .collect(),
            last: LiveDelta::default(),
        }
    }

    /// A certificate and the hosts that are to have it stay together: a host must not name one that is not there.
    fn servers(delta: &LiveDelta, told: &Live) -> Self {
        let mut by_certificate: BTreeMap<&CertificateId, LiveDelta> = BTreeMap::new();
        for certificate in &delta.set_certificates {
            let step = by_certificate.entry(&certificate.id).or_default();
            step.set_certificates.push(certificate.clone());
        }
        for (host, id) in &delta.set_servers {
            let step = by_certificate.entry(id).or_default();
            step.set_servers.push((host.clone(), id.clone()));
        }
        let (changed, new): (Vec<_>, Vec<_>) = by_certificate
            .into_iter()
            .partition(|(id, _)| told.certificates.contains_key(*id));

        let in_use = |id: &CertificateId| {
            told.servers
                .iter()
                .any(|(host, used)| used == id && !delta.remove_servers.contains(host))
        };
        let (last, first) = delta.remove_certificates.iter().cloned().partition(in_use);
        Self {
            first: LiveDelta {
                remove_servers: delta.remove_servers.clone(),
                remove_certificates: first,
                ..LiveDelta::default()
            },
            then: changed
                .into_iter()
                .chain(new)
                .map(|(_, step)| step)
                .collect(),
            last: LiveDelta {
                remove_certificates: last,
                ..LiveDelta::default()
            },
        }
    }

    /// The parts `range` of [`Steps::then`] as one change.
    pub(crate) fn joined(&self, range: Range<usize>) -> LiveDelta {
        let mut joined = LiveDelta::default();
        for step in self.then.get(range).unwrap_or_default() {
            joined.set_backends.extend_from_slice(&step.set_backends);
            joined
                .set_certificates
                .extend_from_slice(&step.set_certificates);
            joined.set_servers.extend_from_slice(&step.set_servers);
        }
        joined
    }
}

impl Search {
    /// Single parts that did not fit, after which the rest is left out: each costs a request.
    const MOST_MISFITS: usize = 32;

    /// A search over this many parts.
    pub(crate) fn over(parts: usize) -> Self {
        Self {
            pending: if parts == 0 {
                Vec::new()
            } else {
                std::iter::once(0..parts).collect()
            },
            misfits: 0,
        }
    }

    /// The parts to be tried together next.
    pub(crate) fn next(&mut self) -> Option<Range<usize>> {
        if self.misfits >= Self::MOST_MISFITS {
            return None;
        }
        self.pending.pop()
    }

    /// Takes note that the parts `range` do not fit.
    pub(crate) fn does_not_fit(&mut self, range: &Range<usize>) {
        if range.len() <= 1 {
            self.misfits += 1;
            return;
        }
        let middle = range.start + range.len() / 2;
        self.pending.push(middle..range.end);
        self.pending.push(range.start..middle);
    }

    /// Whether every part has fitted so far.
    pub(crate) fn all_fit(&self) -> bool {
        self.misfits == 0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ingress_model::{
        Host,
        live::{Backend, Certificate},
    };

    use super::*;

    /// Runs the search where each part has a size and `room` is what they share.
    fn fitting(sizes: &[usize], mut room: usize) -> (Vec<usize>, usize) {
        let (mut fitted, mut tries) = (Vec::new(), 0);
        let mut search = Search::over(sizes.len());
        while let Some(range) = search.next() {
            tries += 1;
            let size: usize = sizes[range.clone()].iter().sum();
            if size <= room {
                room -= size;
                fitted.extend(range);
            } else {
                search.does_not_fit(&range);
            }
        }
        assert_eq!(search.all_fit(), fitted.len() == sizes.len());
        (fitted, tries)
    }

    #[test]
    fn what_fits_gets_through_in_order() {
        assert_eq!(fitting(&[], 5), (vec![], 0));
        assert_eq!(fitting(&[1, 1, 1], 3), (vec![0, 1, 2], 1));
        assert_eq!(fitting(&[1, 9, 1, 1], 4).0, [0, 2, 3]);
        assert_eq!(fitting(&[9], 4), (vec![], 1));
    }

    #[test]
    fn one_part_too_large_costs_few_tries() {
        let mut sizes = vec![1; 4096];
        sizes[1000] = 1_000_000;
        let (fitted, tries) = fitting(&sizes, 10_000);
        assert_eq!(fitted.len(), 4095);
        assert_eq!(tries, 1 + 2 * 12);
    }

    #[test]
    fn the_search_gives_up_when_nearly_nothing_fits() {
        let (fitted, tries) = fitting(&vec![10; 5000], 5);
        assert_eq!(fitted, [] as [usize; 0]);
        assert!(tries < 200, "{tries}");
    }

    fn backend(name: &str) -> Arc<Backend> {
        Arc::new(Backend::new(UpstreamName::new(name)))
    }

    #[test]
    fn backends_that_go_make_room_and_known_ones_come_before_new_ones() {
        let delta = LiveDelta {
            set_backends: vec![backend("a-new"), backend("b-known")],
            remove_backends: vec![UpstreamName::new("gone")],
            ..LiveDelta::default()
        };
        let steps = Steps::new(Half::Backends, &delta, &Live::default(), |name| {
            name.as_str() == "b-known"
        });
        assert_eq!(steps.first.remove_backends, delta.remove_backends);
        assert_eq!(
            steps.joined(0..2).set_backends,
            [backend("b-known"), backend("a-new")]
        );
        assert!(steps.last.is_empty());
    }

    #[test]
    fn a_certificate_goes_only_when_no_host_needs_it() {
        let host = |name: &str| Host::parse(name).unwrap();
        let id = CertificateId::new;
        let certificate = |name: &str| Certificate {
            id: id(name),
            pem: "PEM".into(),
        };
        let mut told = Live::default();
        for (name, certificate_id) in [("a.test", "old"), ("b.test", "unused"), ("c.test", "kept")]
        {
            told.servers.insert(host(name), id(certificate_id));
            told.certificates
                .insert(id(certificate_id), certificate(certificate_id));
        }
        let delta = LiveDelta {
            set_certificates: vec![certificate("another"), certificate("kept")],
            remove_certificates: vec![id("old"), id("unused")],
            set_servers: vec![(host("a.test"), id("another"))],
            remove_servers: vec![host("b.test")],
            ..LiveDelta::default()
        };
        let steps = Steps::new(Half::Servers, &delta, &told, |_| false);
        assert_eq!(steps.first.remove_servers, [host("b.test")]);
        assert_eq!(steps.first.remove_certificates, [id("unused")]);
        assert_eq!(steps.then.len(), 2);
        assert_eq!(steps.joined(0..1).set_certificates, [certificate("kept")]);
        let switch = steps.joined(1..2);
        assert_eq!(switch.set_certificates, [certificate("another")]);
        assert_eq!(switch.set_servers, [(host("a.test"), id("another"))]);
        assert_eq!(steps.last.remove_certificates, [id("old")]);
    }
}
