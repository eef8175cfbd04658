//! Where clients come from, by MaxMind's databases (`use-geoip2`).

use crate::{
    capabilities::Module,
    source_map::Note,
    value::{Printed, Unprintable, plain, word},
};

use super::{
    Context,
    directive::{Directive, directive},
    note,
};

/// The variables of one database.
pub(crate) struct DatabaseView {
    pub(crate) path: Printed,
    pub(crate) variables: Vec<Directive>,
}

/// A variable: its name, its default if that is not empty, and where the database has its value.
type Variable = (&'static str, Option<u8>, &'static [&'static str]);

const COUNTRY: &[Variable] = &[
    ("$geoip2_country_code", None, &["country", "iso_code"]),
    ("$geoip2_country_name", None, &["country", "names", "en"]),
    (
        "$geoip2_country_geoname_id",
        None,
        &["country", "geoname_id"],
    ),
    ("$geoip2_continent_code", None, &["continent", "code"]),
    (
        "$geoip2_continent_name",
        None,
        &["continent", "names", "en"],
    ),
    (
        "$geoip2_continent_geoname_id",
        None,
        &["continent", "geoname_id"],
    ),
];

const CITY: &[Variable] = &[
    ("$geoip2_city_country_code", None, &["country", "iso_code"]),
    (
        "$geoip2_city_country_name",
        None,
        &["country", "names", "en"],
    ),
    (
        "$geoip2_city_country_geoname_id",
        None,
        &["country", "geoname_id"],
    ),
    ("$geoip2_city", None, &["city", "names", "en"]),
    ("$geoip2_city_geoname_id", None, &["city", "geoname_id"]),
    ("$geoip2_postal_code", None, &["postal", "code"]),
    ("$geoip2_dma_code", None, &["location", "metro_code"]),
    ("$geoip2_latitude", None, &["location", "latitude"]),
    ("$geoip2_longitude", None, &["location", "longitude"]),
    ("$geoip2_time_zone", None, &["location", "time_zone"]),
    (
        "$geoip2_region_code",
        None,
        &["subdivisions", "0", "iso_code"],
    ),
    (
        "$geoip2_region_name",
        None,
        &["subdivisions", "0", "names", "en"],
    ),
    (
        "$geoip2_region_geoname_id",
        None,
        &["subdivisions", "0", "geoname_id"],
    ),
    (
        "$geoip2_subregion_code",
        None,
        &["subdivisions", "1", "iso_code"],
    ),
    (
        "$geoip2_subregion_name",
        None,
        &["subdivisions", "1", "names", "en"],
    ),
    (
        "$geoip2_subregion_geoname_id",
        None,
        &["subdivisions", "1", "geoname_id"],
    ),
    ("$geoip2_city_continent_code", None, &["continent", "code"]),
    (
        "$geoip2_city_continent_name",
        None,
        &["continent", "names", "en"],
    ),
];

const ASN: &[Variable] = &[
    ("$geoip2_asn", None, &["autonomous_system_number"]),
    ("$geoip2_org", None, &["autonomous_system_organization"]),
];

const ISP: &[Variable] = &[
    ("$geoip2_isp", None, &["isp"]),
    ("$geoip2_isp_org", None, &["organization"]),
    ("$geoip2_asn", Some(0), &["autonomous_system_number"]),
];

const CONNECTION_TYPE: &[Variable] = &[("$geoip2_connection_type", None, &["connection_type"])];

const ANONYMOUS: &[Variable] = &[
    ("$geoip2_is_anon", None, &["is_anonymous"]),
    ("$geoip2_is_anonymous", Some(0), &["is_anonymous"]),
    ("$geoip2_is_anonymous_vpn", Some(0), &["is_anonymous_vpn"]),
    (
        "$geoip2_is_hosting_provider",
        Some(0),
        &["is_hosting_provider"],
    ),
    ("$geoip2_is_public_proxy", Some(0), &["is_public_proxy"]),
    ("$geoip2_is_tor_exit_node", Some(0), &["is_tor_exit_node"]),
];

/// What an edition tells. Both vendors' editions of one kind have the same variables: one of them is to be chosen.
fn variables(edition: &str) -> &'static [Variable] {
    match edition {
        "GeoLite2-Country" | "GeoIP2-Country" => COUNTRY,
        "GeoLite2-City" | "GeoIP2-City" => CITY,
        "GeoLite2-ASN" | "GeoIP2-ASN" => ASN,
        "GeoIP2-ISP" => ISP,
        "GeoIP2-Connection-Type" => CONNECTION_TYPE,
        "GeoIP2-Anonymous-IP" => ANONYMOUS,
        _ => &[],
    }
}

/// The databases that are used: none unless all of those that are wanted are there.
///
/// # Errors
/// When a path cannot stand in the configuration.
pub(crate) fn databases(
    context: &Context<'_>,
    notes: &mut Vec<Note>,
) -> Result<Vec<DatabaseView>, Unprintable> {
    let (config, wanted) = (context.config, &context.environment.geoip_databases);
    if !config.use_geoip2 {
        return Ok(Vec::new());
    }
    let mut off = |why: &str| {
        notes.push(note("use-geoip2", format!("GeoIP2 is off: {why}")));
        Ok(Vec::new())
    };
    if !context.capabilities.has(Module::GeoIp2) {
        return off("NGINX has no module for it");
    }
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|(_, path)| path.is_none())
        .map(|(edition, _)| edition.as_str())
        .collect();
    if !missing.is_empty() {
        return off(&format!("there is no database {}", missing.join(", ")));
    }
    let views = wanted
        .iter()
        .filter_map(|(edition, path)| Some((variables(edition), edition, path.as_ref()?)))
        .filter(|(variables, ..)| !variables.is_empty());
    views
        .map(|(variables, edition, path)| {
            Ok(DatabaseView {
                path: plain(path)?,
                variables: directives(variables, edition, config.geoip2_autoreload_in_minutes),
            })
        })
        .collect()
}

fn directives(variables: &'static [Variable], edition: &str, reload: u32) -> Vec<Directive> {
    // Its values change with no address, and NGINX looks them up for the connection's own.
    let is_connection = edition == "GeoIP2-Connection-Type";
    let reload = (reload > 0 && !is_connection)
        .then(|| directive("auto_reload", [word(format_args!("{reload}m"))]));
    let variables = variables.iter().map(|(name, default, place)| {
        let default = default.map(|default| word(format_args!("default={default}")));
        let source = (!is_connection).then(|| word("source=$remote_addr"));
        let place = place.iter().map(word);
        directive(name, default.into_iter().chain(source).chain(place))
    });
    reload.into_iter().chain(variables).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_reloaded_where_its_addresses_matter() {
        let text = |edition: &str, reload| -> Vec<String> {
            directives(variables(edition), edition, reload)
                .iter()
                .map(|directive| directive.0.to_string())
                .collect()
        };
        assert_eq!(
            text("GeoLite2-ASN", 5),
            [
                "auto_reload 5m;",
                "$geoip2_asn source=$remote_addr autonomous_system_number;",
                "$geoip2_org source=$remote_addr autonomous_system_organization;",
            ]
        );
        assert_eq!(
            text("GeoIP2-Connection-Type", 5),
            ["$geoip2_connection_type connection_type;"]
        );
        assert_eq!(
            text("GeoIP2-ISP", 0).last().map(String::as_str),
            Some("$geoip2_asn default=0 source=$remote_addr autonomous_system_number;")
        );
        assert!(text("GeoIP2-Domain", 5).len() == 1);
    }
}
