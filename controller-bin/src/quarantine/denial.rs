//! What a layout is like without the paths of an Ingress that NGINX refuses.

use std::sync::Arc;

use ingress_model::{
    Layout, ObjectName, Server,
    layout::{LocationSettings, Modifier},
};

use super::{Level, Levels};

/// The layout in which the paths of [denied](Level::Denied) Ingresses answer 503.
#[must_use]
pub fn deny(layout: &Layout, levels: &Levels) -> Layout {
    let mut layout = layout.clone();
    let denied = levels.iter().filter(|(_, level)| **level == Level::Denied);
    for (name, _) in denied {
        layout
            .stream_snippets
            .retain(|snippet| snippet.ingress != *name);
        for server in layout.servers.values_mut() {
            if is_touched(server, name) {
                take_out(Arc::make_mut(server), name);
            }
        }
    }
    layout
}

fn is_touched(server: &Server, name: &ObjectName) -> bool {
    server
        .locations
        .iter()
        .any(|location| location.ingress.as_ref() == Some(name))
        || server
            .snippet
            .as_ref()
            .is_some_and(|snippet| snippet.ingress == *name)
        || server
            .client_auth
            .as_ref()
            .is_some_and(|auth| auth.ingress == *name)
}

fn take_out(server: &mut Server, name: &ObjectName) {
    const WHY: &str = "nginx refuses the configuration of this Ingress";

    if server
        .snippet
        .as_ref()
        .is_some_and(|snippet| snippet.ingress == *name)
    {
        server.snippet = None;
    }
    if let Some(auth) = server
        .client_auth
        .as_mut()
        .filter(|auth| auth.ingress == *name)
    {
        // The host stays closed: who asked for client certificates would not want it open.
        auth.value.denied = Some(WHY.to_owned());
        auth.value.authority = None;
    }
    let denied = Arc::new(LocationSettings {
        denied: Some(WHY.to_owned()),
        ..LocationSettings::default()
    });
    for location in &mut server.locations {
        if location.ingress.as_ref() == Some(name) {
            location.settings = Arc::clone(&denied);
            if location.modifier == Modifier::Regex {
                // The expression may be what is wrong.
                location.modifier = Modifier::Prefix;
            }
        }
    }
}
