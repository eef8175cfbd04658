//! Topology-aware routing: endpoints of the controller's own zone, where a Service asks for that.

use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointSlice},
};

/// The annotation by which a Service asks for zones.
const MODE: &str = "service.kubernetes.io/topology-mode";

/// How a Service asks for endpoints of the zone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// Annotation `topology-mode: auto`.
    Auto,
    /// `spec.trafficDistribution: PreferClose`.
    PreferClose,
}

/// The endpoints of a slice that are to be used.
///
/// All of them, unless the controller's zone is known, the Service asks for endpoints of the zone, and every endpoint
/// of the slice has hints: then those with a hint for the zone. With PreferClose there has to be at least one such;
/// with `topology-mode` there may be none.
pub(crate) fn endpoints<'a>(
    service: &Service,
    slice: &'a EndpointSlice,
    zone: Option<&str>,
) -> Vec<&'a Endpoint> {
    let all = || slice.endpoints.iter().collect();
    let (Some(zone), Some(wish)) = (zone, wish(service)) else {
        return all();
    };
    let is_hinted = |endpoint: &Endpoint| {
        let zones = endpoint
            .hints
            .as_ref()
            .and_then(|hints| hints.for_zones.as_ref());
        zones.is_some_and(|zones| !zones.is_empty())
    };
    if !slice.endpoints.iter().all(is_hinted) {
        return all();
    }
    let near: Vec<_> = slice
        .endpoints
        .iter()
        .filter(|endpoint| {
            let hints = endpoint.hints.iter();
            let mut zones = hints.filter_map(|hints| hints.for_zones.as_ref()).flatten();
            zones.any(|hint| hint.name == zone)
        })
        .collect();
    if near.is_empty() && wish == Wish::PreferClose {
        return all();
    }
    near
}

fn wish(service: &Service) -> Option<Wish> {
    let annotations = service.metadata.annotations.as_ref();
    let mode = annotations.and_then(|annotations| annotations.get(MODE));
    if mode.is_some_and(|mode| mode.eq_ignore_ascii_case("auto")) {
        return Some(Wish::Auto);
    }
    let spec = service.spec.as_ref();
    let distribution = spec.and_then(|spec| spec.traffic_distribution.as_deref());
    (distribution == Some("PreferClose")).then_some(Wish::PreferClose)
}
