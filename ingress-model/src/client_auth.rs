//! Who asks the clients of a host for certificates.

use std::sync::Arc;

use crate::{
    annotation::ClientAuthSettings,
    definition::Definition,
    diagnostic::{Reason, Severity},
    layout::{Authority, ClientAuth, Location, Owned, VerifyClient},
    provenance::Ledger,
    secrets::Secrets,
    server,
};

/// The annotation that asks for them.
const NAME: &str = "auth-tls-secret";

/// Client certificates are asked for as the first definition that asks for them says. If its Secret cannot be used, the
/// whole server refuses: whoever guards a host must not find it open.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default().and_ingress("shop/a", &[("auth-tls-secret", "shop/ca")], &["a.test/ web:80"]).merge();
/// let auth = &served.server("a.test").unwrap().client_auth.as_ref().unwrap().value;
/// assert_eq!(auth.denied.as_deref(), Some("Secret shop/ca does not exist"));
/// ```
pub(crate) fn settle(
    definitions: &[&Arc<Definition>],
    secrets: &mut Secrets,
    ledger: &mut Ledger<'_>,
) -> Option<Box<Owned<ClientAuth>>> {
    let (definition, settings) = server::settle(definitions, NAME, ledger, |settings| {
        settings.client_auth.as_ref()
    })?;
    let authority = match &settings.secret {
        Err(fault) => Err((None, fault.clone())),
        Ok(name) => match secrets.authority(name) {
            Some(Ok(authority)) => Ok(authority),
            Some(Err(error)) => {
                let fault = format!("Secret {name} cannot be used: {error}");
                Err((Some(Reason::InvalidSecret), fault))
            }
            None => {
                let fault = format!("Secret {name} does not exist");
                Err((Some(Reason::MissingSecret), fault))
            }
        },
    };
    // What is wrong with the annotation itself was said when it was read.
    if let Err((Some(reason), fault)) = &authority {
        let message = format!("{fault}; host {} refuses every request", ledger.host);
        ledger.tell(
            definition,
            Severity::Error,
            *reason,
            Some(NAME.to_owned()),
            message,
        );
    }
    let value = with_authority(settings, authority.map_err(|(_, fault)| fault));
    Some(Box::new(Owned {
        ingress: definition.name.clone(),
        value,
    }))
}

/// Closes the paths of Ingresses that ask for certificates themselves, where the host lets in clients that they do not
/// mean to let in: the host can ask in one way only, and whoever guards a path must not find it open to those of another
/// authority, or to everybody.
pub(crate) fn close_unguarded(
    auth: &Owned<ClientAuth>,
    definitions: &[&Arc<Definition>],
    locations: &mut [Location],
    ledger: &mut Ledger<'_>,
) {
    if auth.value.denied.is_some() {
        return;
    }
    let holder = definitions.iter().find(|it| it.name == auth.ingress);
    let Some(held) = holder.and_then(|it| it.settings.server.client_auth.as_ref()) else {
        return;
    };
    for definition in definitions {
        let own = definition.settings.server.client_auth.as_ref();
        if own.is_none_or(|own| lets_in_no_others(held, own)) {
            continue;
        }
        let fault = format!(
            "host {} asks for client certificates as Ingress {} says, which lets in others than this Ingress means to",
            ledger.host, auth.ingress
        );
        let is_own = |location: &&mut Location| location.ingress.as_ref() == Some(&definition.name);
        for location in locations.iter_mut().filter(is_own) {
            let settings = Arc::make_mut(&mut location.settings);
            settings.denied.get_or_insert_with(|| fault.clone());
        }
        ledger.tell(
            definition,
            Severity::Error,
            Reason::ServerSettingConflict,
            Some(NAME.to_owned()),
            format!("{fault}; its paths answer 503"),
        );
    }
}

/// Whether whoever gets past the first settings gets past the second ones, and nobody is vouched for by a strange
/// authority.
fn lets_in_no_others(held: &ClientAuthSettings, own: &ClientAuthSettings) -> bool {
    let is_same = held.secret.is_ok()
        && held.secret == own.secret
        && (own.match_cn.is_none() || own.match_cn == held.match_cn);
    match own.verify {
        VerifyClient::On => is_same && held.verify == VerifyClient::On,
        VerifyClient::Optional => is_same || held.verify == VerifyClient::Off,
        VerifyClient::Off | VerifyClient::OptionalNoCa => own.match_cn.is_none() || is_same,
    }
}

/// Reports that a host without `spec.tls` asks for certificates: what comes by plain HTTP is answered without one, unless
/// all of it is redirected.
pub(crate) fn report_plain(
    auth: &Owned<ClientAuth>,
    definitions: &[&Arc<Definition>],
    locations: &[Location],
    ledger: &mut Ledger<'_>,
) {
    let is_required = auth.value.denied.is_none() && auth.value.verify == VerifyClient::On;
    let is_answered =
        |location: &Location| location.ingress.is_some() && !location.settings.force_ssl_redirect;
    let asking = definitions.iter().find(|it| it.name == auth.ingress);
    let Some(asking) = asking.filter(|_| is_required && locations.iter().any(is_answered)) else {
        return;
    };
    let message = format!(
        "no spec.tls is for host {}: what comes by plain HTTP is answered without a certificate, which only HTTPS \
         asks for; spec.tls or force-ssl-redirect leads clients there",
        ledger.host
    );
    let key = Some(NAME.to_owned());
    ledger.tell(
        asking,
        Severity::Warning,
        Reason::InvalidAnnotation,
        key,
        message,
    );
}

fn with_authority(
    settings: &ClientAuthSettings,
    authority: Result<Arc<Authority>, String>,
) -> ClientAuth {
    let (authority, denied) = match authority {
        Ok(authority) => (Some(authority.as_ref().clone()), None),
        Err(fault) => (None, Some(fault)),
    };
    ClientAuth {
        denied,
        authority,
        verify: settings.verify,
        depth: settings.depth,
        error_page: settings.error_page.clone(),
        match_cn: settings.match_cn.clone(),
        pass_certificate: settings.pass_certificate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{object::ObjectName, testing::Fixture, value::Literal};

    /// Whether the path of an Ingress is closed, where a later one of the host asks for certificates in another way.
    fn closes(held: &[(&str, &str)], own: &[(&str, &str)]) -> bool {
        let pair = rcgen::generate_simple_self_signed(["ca.test".to_owned()]).unwrap();
        let pem = pair.cert.pem().replace('\n', "\n    ");
        let served = Fixture::from_yaml(&format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: ca, namespace: shop}}\nstringData:\n  ca.crt: |\n    {pem}\n"
        ))
        .unwrap()
        .and_ingress("shop/own", own, &["a.test/own web:80"])
        .and_ingress("shop/held", held, &["a.test/held web:80"])
        .merge();
        let server = served.server("a.test").unwrap();
        let denied = |path: &str| {
            let location = server.locations.iter().find(|it| it.path == path);
            location.unwrap().settings.denied.is_some()
        };
        let said = served.outcome().diagnostics.iter();
        let told = said.filter(|said| said.to_string().contains("its paths answer 503"));
        assert_eq!(told.count(), usize::from(denied("/own")));
        assert!(!denied("/held"));
        denied("/own")
    }

    fn asked(secret: &str, verify: VerifyClient, match_cn: Option<&str>) -> ClientAuthSettings {
        ClientAuthSettings {
            secret: Ok(ObjectName::new("shop", secret)),
            verify,
            depth: 1,
            error_page: None,
            match_cn: match_cn.map(|text| Literal::parse(text).unwrap()),
            pass_certificate: false,
        }
    }

    #[test]
    fn whoever_asks_for_certificates_gets_no_other_requests() {
        use VerifyClient::{Off, On, Optional, OptionalNoCa};
        for (held, own, is_kept) in [
            (("ca", On, None), ("ca", On, None), true),
            (("ca", On, Some("CN=a")), ("ca", On, None), true),
            (("ca", Optional, None), ("ca", Optional, None), true),
            (("ca", On, None), ("ca", Optional, None), true),
            (("other", Off, None), ("ca", Optional, None), true),
            (("other", On, None), ("ca", Off, None), true),
            (("other", On, None), ("ca", OptionalNoCa, None), true),
            (("ca", Off, None), ("ca", On, None), false),
            (("ca", Optional, None), ("ca", On, None), false),
            (("ca", OptionalNoCa, None), ("ca", On, None), false),
            (("other", On, None), ("ca", On, None), false),
            (("other", Optional, None), ("ca", Optional, None), false),
            (("ca", On, None), ("ca", On, Some("CN=a")), false),
            (("ca", Off, None), ("ca", Off, Some("CN=a")), false),
        ] {
            let settings = |(secret, verify, cn)| asked(secret, verify, cn);
            let is_so = lets_in_no_others(&settings(held), &settings(own));
            assert_eq!(is_so, is_kept, "{held:?} {own:?}");
        }
        let closed = ClientAuthSettings {
            secret: Err("odd".to_owned()),
            ..asked("ca", On, None)
        };
        assert!(!lets_in_no_others(&asked("ca", On, None), &closed));
    }

    #[test]
    fn paths_of_an_ingress_whose_guard_does_not_hold_are_closed() {
        let on = ("auth-tls-secret", "shop/ca");
        let off = ("auth-tls-verify-client", "off");
        assert!(closes(&[on, off], &[on]));
        assert!(!closes(&[on], &[on]));
        assert!(!closes(&[], &[on]));
        assert!(!closes(&[on, off], &[]));
    }
}
