//! One field of one object changes at a time, in any kind that the rules read; or an object comes, or goes. Of every such
//! change these laws are tried:
//!
//! * the layout is another one exactly where the files are, and `plan` has reasons exactly then. What may differ in the
//!   layout without a trace in the files is a closed list ([`is_unseen`]): a controller that compares files does not
//!   reload for it;
//! * the live half is another one exactly where something is told, and what is told makes the old one the new one;
//! * a merger with a memory gives what one without gives, and so does a renderer;
//! * what the outcome does not name as a dependency changes nothing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "these are tests"
)]

mod cluster;
#[path = "../../../ingress-model/tests/laws/dice.rs"]
#[allow(dead_code, reason = "these tests need a part of it")]
mod dice;
mod edit;
#[path = "../support/annotations.rs"]
#[allow(dead_code, reason = "these tests need a part of it")]
mod rows;
#[path = "../support/mod.rs"]
mod support;

use std::{collections::BTreeMap, fmt::Debug, path::Path};

use ingress_model::{
    ConflictPolicy, Host, Merger, Model, ObjectKind, ObjectName, ObjectRef, Options, Outcome,
    ReloadReason, Snapshot,
    layout::StreamServer,
    live::{Certificate, CertificateId, Live},
    merge, plan,
    selector::LabelSelector,
};
use jiff::Timestamp;
use nginx_render::{Capabilities, Environment, Rendered, Renderer};
use serde_json::Value;

use cluster::{START, put};
use dice::Dice;
use edit::Pools;

/// How many stories are told under each policy, and how many changes each has.
const STORIES: u64 = 60;
const CHANGES: usize = 25;

/// Every so many changes, all files are rendered anew.
const ANEW: usize = 5;

/// Settings of a location in which layouts may differ although NGINX is given the same files, and when that is so.
const UNSEEN: &[(&str, &str)] = &[
    ("denied", "other words for why it is closed"),
    (
        "force_ssl_redirect",
        "of a host with TLS, whose ssl-redirect does the same",
    ),
    (
        "path_type",
        "on a host of regular expressions, all of which match alike",
    ),
    (
        "ssl_redirect",
        "of a host without TLS, or where force-ssl-redirect does the same",
    ),
    ("tracing", "without a collector"),
];

type Law = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($fault:tt)+) => {
        if !$holds {
            return Err(format!($($fault)+));
        }
    };
}

/// A cluster that changes, and those who remember it.
struct Story {
    objects: BTreeMap<ObjectRef, Value>,
    snapshot: Snapshot,
    options: Options,
    merger: Merger,
    renderer: Renderer,
    outcome: Outcome,
    rendered: Rendered,
}

impl Story {
    fn new(policy: ConflictPolicy, dice: &mut Dice) -> Self {
        let (objects, snapshot) = &*START;
        let options = options(policy, dice);
        let mut merger = Merger::default();
        let mut renderer = renderer();
        let outcome = merger.merge(snapshot, &options, now());
        let rendered = renderer.render(&outcome.model.layout).unwrap();
        Self {
            objects: objects.iter().cloned().collect(),
            snapshot: snapshot.clone(),
            options,
            merger,
            renderer,
            outcome,
            rendered,
        }
    }

    /// Makes a change: `None` takes the object away.
    fn change(&mut self, object: &ObjectRef, value: Option<Value>, anew: bool) -> Law {
        let mut snapshot = self.snapshot.clone();
        snapshot.last_good = self.outcome.last_good.clone();
        if !put(&mut snapshot, object, value.as_ref()) {
            return Ok(());
        }
        let slices = [&self.snapshot, &snapshot].map(|snapshot| service_of(object, snapshot));
        self.snapshot = snapshot;
        match value {
            Some(value) => self.objects.insert(object.clone(), value),
            None => self.objects.remove(object),
        };
        let outcome = self.merger.merge(&self.snapshot, &self.options, now());
        let rendered = self.renderer.render(&outcome.model.layout).unwrap();
        let before = std::mem::replace(&mut self.outcome, outcome);
        let files = std::mem::replace(&mut self.rendered, rendered);
        self.check_memory(anew)?;
        check_layouts(&before.model, &self.outcome.model, &files, &self.rendered)?;
        check_live(&before.model.live, &self.outcome.model.live)?;
        let matters = [&before, &self.outcome]
            .iter()
            .any(|outcome| match object.kind {
                ObjectKind::Service | ObjectKind::Secret | ObjectKind::ConfigMap => {
                    outcome.dependencies.contains(object)
                }
                ObjectKind::EndpointSlice => slices
                    .iter()
                    .flatten()
                    .any(|service| outcome.dependencies.contains(service)),
                _ => true,
            });
        ensure!(
            matters || before == self.outcome,
            "it is no dependency, but the outcome is another one"
        );
        Ok(())
    }

    fn check_memory(&self, anew: bool) -> Law {
        let fresh = merge(&self.snapshot, &self.options, now());
        same("layout", &self.outcome.model.layout, &fresh.model.layout)?;
        same("live half", &self.outcome.model.live, &fresh.model.live)?;
        same("diagnostics", &self.outcome.diagnostics, &fresh.diagnostics)?;
        same("provenance", &self.outcome.provenance, &fresh.provenance)?;
        same(
            "dependencies",
            &self.outcome.dependencies,
            &fresh.dependencies,
        )?;
        same(
            "last good versions",
            &self.outcome.last_good,
            &fresh.last_good,
        )?;
        if anew {
            let rendered = renderer().render(&fresh.model.layout).unwrap();
            ensure!(
                self.rendered == rendered,
                "a renderer that remembers gives other files"
            );
        }
        Ok(())
    }
}

fn same<T: PartialEq + Debug>(what: &str, remembered: &T, fresh: &T) -> Law {
    ensure!(
        remembered == fresh,
        "with a memory, the {what} is another: {}",
        difference(&format!("{remembered:#?}"), &format!("{fresh:#?}"))
    );
    Ok(())
}

/// The first lines in which texts differ.
fn difference(one: &str, other: &str) -> String {
    let lines = one.lines().zip(other.lines());
    let differing = lines.filter(|(one, other)| one != other);
    let shown: Vec<_> = differing
        .take(4)
        .map(|(one, other)| format!("{one} / {other}"))
        .collect();
    shown.join("; ")
}

fn check_layouts(before: &Model, after: &Model, old: &Rendered, new: &Rendered) -> Law {
    let reasons = plan(Some(&before.layout), &after.layout);
    let is_same = before.layout == after.layout;
    ensure!(
        reasons.is_empty() == is_same,
        "reasons: {reasons:?}, but same layout: {is_same}"
    );
    let same_files = old.checksum == new.checksum;
    ensure!(
        same_files == (files(old) == files(new)),
        "the checksum tells otherwise than the files"
    );
    ensure!(
        !is_same || old == new,
        "the layout is the same, the files are not"
    );
    for reason in reasons.iter().filter(|_| same_files) {
        ensure!(
            is_unseen(reason, before, after),
            "no file differs, although {reason}"
        );
    }
    Ok(())
}

/// Whether layouts may differ in this although NGINX is given the same files.
fn is_unseen(reason: &ReloadReason, before: &Model, after: &Model) -> bool {
    let layouts = [&before.layout, &after.layout];
    // All that a closed host or path says is that it is closed.
    let is_closed_host = |host: &Host| {
        let auth = layouts.map(|layout| layout.servers[host].client_auth.as_ref());
        auth.iter()
            .all(|auth| auth.is_some_and(|auth| auth.value.denied.is_some()))
    };
    let is_closed_path = |host: &Host, path: &str| {
        layouts.iter().all(|layout| {
            let mut locations = layout.servers[host].locations.iter();
            let location = locations.find(|location| location.path == path);
            location.is_some_and(|location| location.settings.denied.is_some())
        })
    };
    match reason {
        ReloadReason::TlsAdded { host } | ReloadReason::TlsRemoved { host } => is_closed_host(host),
        ReloadReason::ServerChanged { host, setting } => {
            *setting == "client_auth" && is_closed_host(host)
        }
        ReloadReason::LocationChanged {
            host,
            path,
            setting,
        } => {
            let is_known = UNSEEN.iter().any(|(known, _)| known == setting);
            is_known || is_closed_host(host) || is_closed_path(host, path)
        }
        // Peers of a port are found by the port, whatever their upstream is called.
        ReloadReason::StreamChanged { port, .. } => {
            let flags =
                |server: &StreamServer| (server.proxy_protocol_in, server.proxy_protocol_out);
            let ports = layouts.map(|layout| {
                [layout.tcp.get(port), layout.udp.get(port)].map(|port| port.map(flags))
            });
            ports[0] == ports[1]
        }
        _ => false,
    }
}

/// Everything that NGINX reads but the number that stands for it.
fn files(rendered: &Rendered) -> (&str, Vec<(&str, &[u8])>) {
    let main = rendered.main.split_once('\n').map_or("", |(_, rest)| rest);
    let files = rendered
        .files
        .iter()
        .filter(|(path, _)| path.as_str() != "lua.json");
    let files = files.map(|(path, file)| (path.as_str(), file.bytes.as_slice()));
    (main, files.collect())
}

fn check_live(before: &Live, after: &Live) -> Law {
    let delta = before.diff(after);
    let is_same = before == after;
    ensure!(
        delta.is_empty() == is_same,
        "told: {delta:?}, but same: {is_same}"
    );
    ensure!(
        (told(before) == told(after)) == is_same,
        "told the same: {}",
        !is_same
    );
    let mut applied = before.clone();
    applied.apply(&delta);
    ensure!(applied == *after, "what is told leads elsewhere: {delta:?}");
    let (set, removed) = delta.split();
    let mut applied = before.clone();
    applied.apply(&set);
    applied.apply(&removed);
    ensure!(applied == *after, "told in two steps, it leads elsewhere");
    Ok(())
}

/// All that is told, as text.
fn told(live: &Live) -> String {
    let backends = serde_json::to_string(&(
        &live.backends,
        &live.servers,
        &live.tcp,
        &live.udp,
        &live.passthrough,
    ));
    let certificates = live
        .certificates
        .values()
        .map(|one| format!("{:?} {}", one.id, one.pem));
    backends.unwrap() + &certificates.collect::<String>()
}

/// The Service that a slice belongs to.
fn service_of(object: &ObjectRef, snapshot: &Snapshot) -> Option<ObjectRef> {
    let slice = snapshot.endpoint_slices.get(&object.name)?;
    let service = slice
        .metadata
        .labels
        .as_ref()?
        .get("kubernetes.io/service-name")?;
    Some(ObjectRef::new(
        ObjectKind::Service,
        object.name.sibling(service),
    ))
}

fn now() -> Timestamp {
    Timestamp::from_second(1_780_000_000).unwrap()
}

fn options(policy: ConflictPolicy, dice: &mut Dice) -> Options {
    let generated = Certificate {
        id: CertificateId::new(CertificateId::GENERATED),
        pem: "generated".into(),
    };
    let one_of =
        |dice: &mut Dice, name: &str| dice.percent(50).then(|| ObjectName::parse(name)).flatten();
    Options {
        conflict_policy: policy,
        watch_ingress_without_class: dice.percent(50),
        ingress_class_by_name: dice.percent(30),
        ingress_classes_readable: dice.percent(80),
        namespace_selector: dice
            .percent(30)
            .then(|| LabelSelector::parse("watched").unwrap()),
        node: dice.percent(50).then(|| "n1".to_owned()),
        disable_catch_all: dice.percent(10),
        ssl_passthrough: dice.percent(60),
        config_map: ObjectName::parse("ingress/config"),
        tcp_services: ObjectName::parse("ingress/tcp"),
        udp_services: ObjectName::parse("ingress/udp"),
        default_backend_service: one_of(dice, "shop/next"),
        default_ssl_certificate: one_of(dice, "shop/two"),
        generated_certificate: Some(generated),
        ..Options::default()
    }
}

/// For an NGINX with every module that a setting needs.
fn renderer() -> Renderer {
    let text = "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=/m --with-threads \
        --with-http_v2_module --with-http_realip_module --with-http_auth_request_module \
        --with-http_stub_status_module --with-stream=dynamic --with-stream_ssl_preread_module \
        --with-stream_realip_module";
    let modules = [
        "ndk_http_module.so",
        "ngx_http_lua_module.so",
        "ngx_http_headers_more_filter_module.so",
        "ngx_http_modsecurity_module.so",
        "otel_ngx_module.so",
        "ngx_stream_module.so",
        "ngx_stream_js_module.so",
    ];
    let environment: Environment = support::environment(Path::new("/etc/nginx"));
    Renderer::new(Capabilities::parse(text, modules), environment)
}

/// A change of one object: mostly of a field, sometimes that it goes, comes back, or is as in the beginning.
fn choose(story: &Story, pools: &Pools, dice: &mut Dice) -> Option<(ObjectRef, Option<Value>)> {
    let (start, _) = &*START;
    let (object, first) = dice.pick(start);
    let now = story.objects.get(object);
    match (now, dice.below(20)) {
        (None, _) => Some((object.clone(), Some(first.clone()))),
        (Some(_), 0) => Some((object.clone(), None)),
        (Some(now), 1..3) => (now != first).then(|| (object.clone(), Some(first.clone()))),
        (Some(now), _) => Some((object.clone(), Some(pools.edit(object.kind, now, dice)?))),
    }
}

fn tell_stories(policy: ConflictPolicy) {
    let mut pools = Pools::default();
    for (object, value) in &START.0 {
        pools.learn(object.kind.as_str(), value);
    }
    let mut faults = Vec::new();
    let mut changed = 0;
    for seed in 0..STORIES {
        let mut dice = Dice::new(seed);
        let mut story = Story::new(policy, &mut dice);
        for turn in 0..CHANGES {
            let Some((object, value)) = choose(&story, &pools, &mut dice) else {
                continue;
            };
            let before = story.objects.get(&object).cloned();
            let model = story.outcome.model.clone();
            let law = story.change(&object, value.clone(), turn % ANEW == 0);
            changed += usize::from(model != story.outcome.model);
            if let Err(fault) = law {
                let before = before.map_or_else(String::new, |value| format!("{value:#}"));
                let value = value.map_or_else(String::new, |value| format!("{value:#}"));
                faults.push(format!(
                    "{seed}: {object}: {}: {fault}",
                    difference(&before, &value)
                ));
            }
        }
    }
    // A law about changes says nothing where nothing changes.
    assert!(changed > 300, "only {changed} changes changed the model");
    assert!(
        faults.is_empty(),
        "{policy:?}: {} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn where_the_last_definition_holds() {
    tell_stories(ConflictPolicy::LastDefinitionWins);
}

#[test]
fn where_the_oldest_definition_holds() {
    tell_stories(ConflictPolicy::OldestWins);
}
