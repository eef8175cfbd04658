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
