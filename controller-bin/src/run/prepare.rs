//! Finds NGINX and lays out its directory, before it is started.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ingress_model::live::Certificate;
use jiff::Timestamp;
use nginx_render::{Capabilities, Environment, Renderer, endpoint_files};
use rustix::{fs::Mode, process::umask};
use tracing::info;

use super::Error;
use crate::{
    admission::{AdmissionError, Inspector, Sandbox},
    args::Args,
    certificate, geoip, manifests,
    nginx::{configuration::Configuration, machine, process::Process, program},
    preflight,
};

/// An NGINX that is about to be started.
pub(super) struct Prepared {
    pub(super) renderer: Renderer,
    pub(super) inspector: Inspector,
    pub(super) sandbox: Option<Sandbox>,
    pub(super) configuration: Configuration,
    pub(super) process: Arc<Process>,
    pub(super) certificate: Certificate,
    /// Those of TCP and UDP services.
    pub(super) endpoints_have_to_be_loaded: bool,
}

impl Args {
    /// Finds NGINX, lays out its directory, and sees that nothing is in its way. It is not started yet.
    pub(super) async fn prepare_nginx(&self) -> Result<Prepared, Error> {
        // Whatever umask we were started with: NGINX's workers have to read what is public.
        umask(Mode::from_raw_mode(0o022));
        // Nothing is laid out for a directory that was misspelt.
        if let Some(manifests) = &self.kubernetes.manifests {
            manifests::check(manifests)?;
        }
        let binary = program::find(self.nginx.nginx_binary.as_deref());
        let capabilities = program::probe(&binary).await?;
        info!(release = env!("CARGO_PKG_VERSION"), nginx = ?capabilities.version(), "starting");
        preflight::check_modules(&binary, &capabilities)?;
        let directory = self.nginx_directory();
        let in_pod = self.kubernetes.pod_name.is_some();
        let group = machine::workers_group();
        let configuration = Configuration::prepare(&directory, &binary, group, in_pod)?;
        let certificate = certificate::generate(Timestamp::now())?;
        geoip::fetch(&self.nginx, Path::new(machine::GEOIP)).await;
        let environment = machine::environment(self, &directory, &certificate.pem);
        let process = Process::new(&binary, &configuration.main());
        process.end_leftovers().await;
        preflight::check_ports(&binary, self.ports.of_nginx())?;
        Ok(Prepared {
            endpoints_have_to_be_loaded: endpoint_files::have_to_be_loaded(&capabilities),
            sandbox: self.sandbox(&binary, &capabilities, &environment)?,
            inspector: Inspector {
                directives: program::directives(&binary).await?,
                capabilities: capabilities.clone(),
                environment: environment.clone(),
            },
            renderer: Renderer::new(capabilities, environment),
            configuration,
            process: Arc::new(process),
            certificate,
        })
    }

    /// Where the webhook asks NGINX, if flags ask for it.
    fn sandbox(
        &self,
        binary: &Path,
        capabilities: &Capabilities,
        environment: &Environment,
    ) -> Result<Option<Sandbox>, AdmissionError> {
        let flags = &self.admission;
        if !flags.admission_nginx_test || flags.validating_webhook.is_none() {
            return Ok(None);
        }
        let directory = self.nginx_directory();
        let (capabilities, environment) = (capabilities.clone(), environment.clone());
        Ok(Some(Sandbox::prepare(
            binary,
            &directory,
            capabilities,
            environment,
        )?))
    }

    /// NGINX's directory, from the root: its own working directory is another one than ours.
    pub(crate) fn nginx_directory(&self) -> PathBuf {
        let directory = &self.nginx.nginx_dir;
        std::path::absolute(directory).unwrap_or_else(|_| directory.clone())
    }
}
