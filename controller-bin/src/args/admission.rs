//! Flags about the admission webhook.

use std::path::PathBuf;

use super::{
    ArgsError,
    value::{self, Given},
};

/// The admission webhook.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Admission webhook")]
pub struct AdmissionArgs {
    /// Where the webhook listens, such as :8443; without it there is none
    #[arg(long, value_name = "ADDRESS", default_value = "", value_parser = value::text)]
    pub validating_webhook: Given<String>,

    /// File with the webhook's certificate, read again when it changes
    #[arg(long, value_name = "FILE", default_value = "", value_parser = value::path)]
    pub validating_webhook_certificate: Given<PathBuf>,

    /// File with the webhook's key, read again when it changes
    #[arg(long, value_name = "FILE", default_value = "", value_parser = value::path)]
    pub validating_webhook_key: Given<PathBuf>,

    /// File with authorities of clients, read again when it changes; without it nobody has to show the webhook a certificate
    #[arg(long, value_name = "FILE", default_value = "", value_parser = value::path)]
    pub validating_webhook_client_ca: Given<PathBuf>,

    /// Make the webhook's certificate, keep it in the Secret of this name in the pod's namespace, and have the API server
    /// trust it for the Service and in the ValidatingWebhookConfiguration of the same name
    #[arg(long, value_name = "NAME", default_value = "", value_parser = value::text)]
    pub validating_webhook_self_signed: Given<String>,

    /// Check an Ingress by itself, not together with all others
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub disable_full_test: bool,

    /// Have NGINX itself test what an Ingress makes of its hosts, where it can do no harm: without a network, a place to
    /// write, rights, or much time and memory; needs root, or user namespaces
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub admission_nginx_test: bool,
}

impl AdmissionArgs {
    pub(super) fn check(&self) -> Result<(), ArgsError> {
        const FLAG: &str = "--validating-webhook-self-signed";
        let given = [
            (
                "--validating-webhook-certificate",
                &self.validating_webhook_certificate,
            ),
            ("--validating-webhook-key", &self.validating_webhook_key),
        ];
        let mut given = given.into_iter().filter(|(_, path)| path.is_some());
        match given.next() {
            Some((other, _)) if self.validating_webhook_self_signed.is_some() => {
                Err(ArgsError::Exclusive(FLAG, other))
            }
            _ => Ok(()),
        }
    }
}
