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

/// The zone for which endpoints of a slice have to be hinted; `None`: all are used.
///
/// All of them, unless the controller's zone is known, the Service asks for endpoints of the zone, and every endpoint
/// of the slice has hints: then those with a hint for the zone. With PreferClose there has to be at least one such;
/// with `topology-mode` there may be none.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "
/// {apiVersion: v1, kind: Node, metadata: {name: here, labels: {topology.kubernetes.io/zone: a}}}
/// ---
/// {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {trafficDistribution: PreferClose, ports: [{port: 80}]}}
/// ---
/// {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, ports: [{port: 80}],
///  metadata: {name: any, namespace: shop, labels: {kubernetes.io/service-name: web}},
///  endpoints: [{addresses: [10.0.0.1], hints: {forZones: [{name: a}]}}, {addresses: [10.0.0.2], hints: {forZones: [{name: b}]}}]}";
/// let fixture = Fixture::from_yaml(text)?.and_ingress("shop/a", &[], &["a.test/ web:80"]);
/// fixture.merge().assert_endpoints("a.test/", ["10.0.0.1:80", "10.0.0.2:80"]);
/// let options = ingress_model::Options { node: Some("here".into()), ..Default::default() };
/// fixture.with_options(options).merge().assert_endpoints("a.test/", ["10.0.0.1:80"]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
pub(crate) fn zone<'a>(
    service: &Service,
    slice: &EndpointSlice,
    zone: Option<&'a str>,
) -> Option<&'a str> {
    let zone = zone?;
    let wish = wish(service)?;
    let is_hinted = |endpoint: &Endpoint| zones(endpoint).next().is_some();
    let is_near = |endpoint: &Endpoint| is_near(endpoint, zone);
    let endpoints = &slice.endpoints;
    let usable =
        endpoints.iter().all(is_hinted) && (wish == Wish::Auto || endpoints.iter().any(is_near));
    usable.then_some(zone)
}

/// Whether an endpoint is hinted for a zone.
pub(crate) fn is_near(endpoint: &Endpoint, zone: &str) -> bool {
    zones(endpoint).any(|hinted| hinted == zone)
}

fn zones(endpoint: &Endpoint) -> impl Iterator<Item = &str> {
    let hints = endpoint.hints.iter();
    let zones = hints.filter_map(|hints| hints.for_zones.as_ref()).flatten();
    zones.map(|zone| zone.name.as_str())
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
