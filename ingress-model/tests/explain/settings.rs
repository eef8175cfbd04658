//! Settings and who sets them.

use ingress_model::{
    ObjectName,
    annotation::{Scope, annotations, find},
    explain::SettingSource,
    testing::Served,
};

use crate::{config, explain, ingress, rule, served, setting};

#[test]
fn settings_come_from_annotations_then_the_configmap_then_defaults() {
    let served = served(&[
        ingress(
            "a",
            &[
                ("proxy-body-size", "8m"),
                ("proxy-read-timeout", "soon"),
                ("proxy-send-timeout", "-"),
                ("ssl-ciphers", "HIGH"),
            ],
            &rule("a.test", "/", "one"),
        ),
        ingress("b", &[("ssl-ciphers", "LOW")], &rule("a.test", "/b", "one")),
        config(&[
            ("proxy-body-size", "2m"),
            ("Proxy-Read-Timeout", "120"),
            ("proxy-send-timeout", "never"),
            ("proxy-connect-timeout", "7"),
        ]),
    ]);
    let settings = explain(&served, "a.test", "/").settings;
    let annotation = |ingress: &str, name: &str| SettingSource::Annotation {
        ingress: ObjectName::new("shop", ingress),
        key: format!("nginx.ingress.kubernetes.io/{name}"),
    };
    let key = |key: &str| SettingSource::ConfigMap {
        config_map: ObjectName::new("ingress", "config"),
        key: key.to_owned(),
    };
    for (name, value, source, notes) in [
        (
            "proxy-body-size",
            "8m",
            annotation("a", "proxy-body-size"),
            0,
        ),
        ("proxy-read-timeout", "120", key("Proxy-Read-Timeout"), 1),
        ("proxy-send-timeout", "60", SettingSource::Default, 1),
        (
            "proxy-connect-timeout",
            "7",
            key("proxy-connect-timeout"),
            0,
        ),
        // A setting of the server is held by the newest Ingress, also for the paths of another one.
        ("ssl-ciphers", "LOW", annotation("b", "ssl-ciphers"), 0),
        ("enable-cors", "false", SettingSource::Default, 0),
    ] {
        let setting = setting(&settings, name);
        assert_eq!(setting.value.as_deref(), Some(value), "{name}");
        assert_eq!(setting.source, source, "{name}");
        assert_eq!(setting.notes.len(), notes, "{name}: {:?}", setting.notes);
    }
}

/// An annotation with those without which it means nothing.
fn annotated(name: &'static str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut all = vec![(name, value)];
    let mut next = find(name).and_then(|info| info.needs.first());
    while let Some((need, needed)) = next.and_then(|need| Some((need, find(need.name)?))) {
        all.push((need.name, need.value().unwrap_or(needed.example)));
        next = needed.needs.first();
    }
    let more = match name {
        "proxy-redirect-from" => ("proxy-redirect-to", "http://x.test/"),
        "proxy-redirect-to" => ("proxy-redirect-from", "http://x.test/"),
        "proxy-busy-buffers-size" => ("proxy-buffer-size", "8k"),
        name if name.starts_with("auth-") && all.iter().any(|(name, _)| *name == "auth-type") => {
            ("auth-secret", "users")
        }
        _ => return all,
    };
    if name != more.0 {
        all.push(more);
    }
    all
}

#[test]
fn every_annotation_that_holds_is_told_as_a_setting() {
    let allowing = config(&[
        ("allow-snippet-annotations", "true"),
        ("annotations-risk-level", "Critical"),
    ]);
    for info in annotations().filter(|info| info.scope != Scope::Ingress) {
        for (value, holds) in [(info.example, true), ("\u{1}", false)] {
            let written = ingress(
                "a",
                &annotated(info.name, value),
                &rule("a.test", "/", "one"),
            );
            let served = served(&[allowing.clone(), written]);
            let explanation = explain(&served, "a.test", "/");
            if explanation
                .location
                .as_ref()
                .unwrap()
                .location
                .ingress
                .is_none()
            {
                assert_eq!(explanation.ignored.len(), 1, "{}", info.name);
                continue;
            }
            let setting = setting(&explanation.settings, info.name);
            let annotated = matches!(setting.source, SettingSource::Annotation { .. });
            // Some take any text, and of a list the items that cannot be used are left out.
            let left_out = |note: &String| note.contains("left out");
            let any_text = !holds && annotated && setting.notes.iter().all(left_out);
            assert!(
                annotated == holds || any_text,
                "{} {value:?}: {setting:?}",
                info.name
            );
        }
    }
}

#[test]
fn what_is_not_for_strangers_is_left_out() {
    let backend = "  defaultBackend: {service: {name: rest, port: {number: 80}}}\n";
    let of = |annotations: &[(&str, &str)]| served(&[ingress("a", annotations, backend)]);
    let plain = of(&[]);
    let root = |served: &Served| served.server("").unwrap().locations[0].settings.clone();
    let locations = annotations().filter(|info| {
        info.scope == Scope::Location
            && info.needs.is_empty()
            && info.risk < ingress_model::config::Risk::Critical
    });
    let mut left_out = 0;
    for info in locations {
        let served = of(&[(info.name, info.example)]);
        let explanation = explain(&served, "x.test", "/");
        let setting = setting(&explanation.settings, info.name);
        let is_told = setting
            .notes
            .iter()
            .any(|note| note.starts_with("not for requests"));
        if is_told {
            left_out += 1;
            assert_eq!(root(&served), root(&plain), "{}", info.name);
            assert!(
                !matches!(setting.source, SettingSource::Annotation { .. }),
                "{}",
                info.name
            );
        }
    }
    assert!(left_out >= 6, "{left_out}");
}
