//! Who is let in: addresses, passwords, limits.

use std::collections::BTreeMap;

use ingress_model::{
    Location, ObjectName,
    layout::{AuthScheme, BasicAuth, Limits, LocationSettings},
};
use ipnet::IpNet;

use crate::{
    capabilities::Module,
    rendered::{FileContent, Fingerprint, RelativePath},
    value::{self, Printed, Unprintable, constant, literal, plain, template, word},
};

use super::{
    Context,
    directive::{Directive, directive},
};

/// `deny` and `allow`, in the order in which NGINX asks them.
pub(crate) fn addresses(settings: &LocationSettings) -> Vec<Directive> {
    let rule = |name| move |network: &IpNet| directive(name, [value::network(network)]);
    let mut rules: Vec<_> = settings.deny.iter().map(rule("deny")).collect();
    rules.extend(settings.allow.iter().map(rule("allow")));
    if !settings.allow.is_empty() {
        rules.push(directive("deny", [word("all")]));
    }
    rules
}

/// The question for a password, and the file with the users.
///
/// # Errors
/// When it cannot be asked: the location must not be served then.
pub(crate) fn password(
    auth: &BasicAuth,
    location: &Location,
    context: &Context<'_>,
) -> Result<(Vec<Directive>, RelativePath, FileContent), Unprintable> {
    let (question, file) = match auth.scheme {
        AuthScheme::Basic => ("auth_basic", "auth_basic_user_file"),
        AuthScheme::Digest if context.capabilities.has(Module::AuthDigest) => {
            ("auth_digest", "auth_digest_user_file")
        }
        AuthScheme::Digest => return Err(Unprintable::Missing(Module::AuthDigest)),
    };
    // Named after the Ingress: two of them may read one Secret in different ways.
    let ingress = location.ingress.as_ref().unwrap_or(&auth.secret);
    let path = format!("auth/{}_{}.passwd", ingress.namespace(), ingress.name());
    let path = RelativePath::new(&path).ok_or(Unprintable::FileName)?;
    let absolute = literal(&format!("{}/{path}", context.environment.nginx_dir))?;
    let directives = vec![
        directive(question, [literal(&quoted_string(auth.realm.as_str()))?]),
        directive(file, [absolute]),
    ];
    let content = FileContent {
        workers: true,
        ..FileContent::private(auth.users.reveal())
    };
    Ok((directives, path, content))
}

/// A text within the quotes of a header, which NGINX puts around it without a look at it (RFC 9110 §5.6.4).
fn quoted_string(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"")
}

/// Counters of one Ingress's requests, shared by its locations on all hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zones {
    exempt: Vec<IpNet>,
    connections: bool,
    per_second: u32,
    per_minute: u32,
}

/// Zones by their name's number.
pub(crate) type ZoneMap = BTreeMap<u64, Zones>;

/// What the http block says about zones.
pub(crate) struct ZonesView {
    /// The number in names, as hexadecimal digits.
    pub(crate) id: Printed,
    /// Networks without limits.
    pub(crate) exempt: Vec<Printed>,
    /// What tells clients apart.
    pub(crate) key: Printed,
    pub(crate) zones: Vec<Directive>,
}

/// The limits of a location; notes the zones that they need.
pub(crate) fn limits(
    limits: &Limits,
    ingress: Option<&ObjectName>,
    context: &Context<'_>,
    zones: &mut ZoneMap,
) -> Vec<Directive> {
    // NGINX keeps zones over reloads, and refuses one whose key has changed: everything in the key is in the name.
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(&ingress.map(ToString::to_string).unwrap_or_default());
    fingerprint.add(context.config.limit_conn_zone_variable.as_str());
    fingerprint.add(&limits.exempt.is_empty().to_string());
    let id = fingerprint.get();
    let mut directives = Vec::new();
    if limits.connections > 0 {
        directives.push(directive(
            "limit_conn",
            [word(zone_name(id, "conn")), word(limits.connections)],
        ));
    }
    for (rate, unit) in [(limits.per_second, "rps"), (limits.per_minute, "rpm")] {
        if rate > 0 {
            let burst = rate.saturating_mul(limits.burst_multiplier.max(1));
            directives.push(directive(
                "limit_req",
                [
                    word(format_args!("zone={}", zone_name(id, unit))),
                    word(format_args!("burst={burst}")),
                    word("nodelay"),
                ],
            ));
        }
    }
    if !directives.is_empty() {
        zones.insert(
            id,
            Zones {
                exempt: limits.exempt.clone(),
                connections: limits.connections > 0,
                per_second: limits.per_second,
                per_minute: limits.per_minute,
            },
        );
    }
    directives
}

/// How fast responses are sent.
pub(crate) fn rates(settings: &LocationSettings, context: &Context<'_>) -> Vec<Directive> {
    let kilobytes = |count: u32| {
        if count == 0 {
            word(0)
        } else {
            word(format_args!("{count}k"))
        }
    };
    let config = context.config;
    [
        (
            "limit_rate_after",
            settings.limit_rate_after,
            config.limit_rate_after,
        ),
        ("limit_rate", settings.limit_rate, config.limit_rate),
    ]
    .into_iter()
    .filter_map(|(name, own, inherited)| {
        own.filter(|own| *own != inherited)
            .map(|own| directive(name, [kilobytes(own)]))
    })
    .collect()
}

impl ZonesView {
    pub(crate) fn new(id: u64, zones: &Zones, context: &Context<'_>) -> Result<Self, Unprintable> {
        const SIZE: &str = "5m";
        let key = || {
            if zones.exempt.is_empty() {
                template(context.config.limit_conn_zone_variable.as_str())
            } else {
                Ok(constant(format!("$limit_key_{id:016x}")))
            }
        };
        let zone = |unit| word(format_args!("zone={}:{SIZE}", zone_name(id, unit)));
        let mut directives = Vec::new();
        if zones.connections {
            directives.push(directive("limit_conn_zone", [key()?, zone("conn")]));
        }
        for (rate, unit, per) in [
            (zones.per_second, "rps", "s"),
            (zones.per_minute, "rpm", "m"),
        ] {
            if rate > 0 {
                let rate = word(format_args!("rate={rate}r/{per}"));
                directives.push(directive("limit_req_zone", [key()?, zone(unit), rate]));
            }
        }
        Ok(Self {
            id: word(format_args!("{id:016x}")),
            exempt: zones.exempt.iter().map(value::network).collect(),
            key: template(context.config.limit_conn_zone_variable.as_str())?,
            zones: directives,
        })
    }
}

fn zone_name(id: u64, unit: &str) -> String {
    format!("limit_{id:016x}_{unit}")
}

/// The header by which a password would reach the endpoints: they are not meant to see it.
pub(crate) fn no_authorization() -> Result<(Printed, Printed), Unprintable> {
    Ok((word("Authorization"), plain("")?))
}
