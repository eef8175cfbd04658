//! How to reach the API server.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
};

use axum::http::{HeaderValue, Uri, header::USER_AGENT, uri::InvalidUri};
use kube::{
    Client, Config,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use tracing::{error, info};

use crate::args::KubernetesArgs;

/// Why no client of the API server could be made. Whether the server answers is found out later, and again and again.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {}", file.display())]
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: Box<KubeconfigError>,
    },
    /// The kubeconfig cannot be read.
    #[error("cannot read the kubeconfig {}", file.display())]
    ReadKubeconfig {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Neither flags nor the environment say where the API server is.
    #[error(
        "cannot tell where the API server is; use --kubeconfig, --apiserver-host or --manifests"
    )]
    Infer {
        /// What was tried.
        source: Box<InferConfigError>,
    },
    /// The address is no URL.
    #[error("flag --apiserver-host holds no URL")]
    Address {
        /// What is wrong with it.
        source: InvalidUri,
    },
    /// What was read does not make a client.
    #[error("cannot make a client of the API server")]
    Client {
        /// What is wrong.
        source: Box<kube::Error>,
    },
}

/// What we call ourselves.
const AGENT: &str = concat!("nginx-ingress-controller/", env!("CARGO_PKG_VERSION"));

/// Makes a client of the API server that the flags name.
///
/// # Errors
///
/// When the flags, the kubeconfig or the pod's environment do not make a client.
pub async fn client(args: &KubernetesArgs) -> Result<Client, ClusterError> {
    let mut config = config(args).await?;
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(AGENT)));
    info!(address = %config.cluster_url, "following an API server");
    Client::try_from(config).map_err(|source| ClusterError::Client {
        source: Box::new(source),
    })
}

async fn config(args: &KubernetesArgs) -> Result<Config, ClusterError> {
    let address = args
        .apiserver_host
        .as_deref()
        .map(str::parse::<Uri>)
        .transpose()
        .map_err(|source| ClusterError::Address { source })?;
    let mut config = match (&args.kubeconfig, address.clone()) {
        (Some(file), _) => {
            // The client says so too, but with quotes within quotes.
            File::open(file).map_err(|source| ClusterError::ReadKubeconfig {
                file: file.clone(),
                source,
            })?;
            from_file(file)
                .await
                .map_err(|source| ClusterError::Kubeconfig {
                    file: file.clone(),
                    source: Box::new(source),
                })?
        }
        (None, Some(address)) => Config::new(address),
        (None, None) => Config::infer()
            .await
            .map_err(|source| ClusterError::Infer {
                source: Box::new(source),
            })?,
    };
    if let Some(address) = address {
        config.cluster_url = address;
        if let Some(file) = &args.certificate_authority {
            match check_authority(file) {
                Ok(()) => config.root_cert_file = Some(file.clone()),
                // As ingress-nginx does: the system's authorities may do as well.
                Err(error) => {
                    error!(file = %file.display(), %error, "cannot use --certificate-authority");
                }
            }
        }
    }
    Ok(config)
}

async fn from_file(file: &PathBuf) -> Result<Config, KubeconfigError> {
    let kubeconfig = Kubeconfig::read_from(file)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
}

fn check_authority(file: &PathBuf) -> io::Result<()> {
    if fs::read_to_string(file)?.contains("-----BEGIN CERTIFICATE-----") {
        Ok(())
    } else {
        Err(io::Error::other("the file holds no certificate"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::chain::chain;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        kubernetes: KubernetesArgs,
    }

    async fn config_of(flags: &[&str]) -> Result<Config, ClusterError> {
        let words = ["test"].iter().chain(flags);
        config(&Only::try_parse_from(words).unwrap().kubernetes).await
    }

    #[tokio::test]
    async fn a_given_address_holds() {
        let config = config_of(&["--apiserver-host=http://10.0.0.1:8080"])
            .await
            .unwrap();
        assert_eq!(config.cluster_url, "http://10.0.0.1:8080");
    }

    #[tokio::test]
    async fn an_address_overrides_that_of_the_kubeconfig() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: 'http://10.0.0.2:1'}}]
users: [{name: a, user: {token: secret}}]
";
        fs::write(file.path(), text).unwrap();
        let flag = format!("--kubeconfig={}", file.path().display());
        assert_eq!(
            config_of(&[&flag]).await.unwrap().cluster_url,
            "http://10.0.0.2:1"
        );
        let config = config_of(&[&flag, "--apiserver-host=http://10.0.0.3:1"])
            .await
            .unwrap();
        assert_eq!(config.cluster_url, "http://10.0.0.3:1");
        assert!(config.auth_info.token.is_some());
    }

    #[tokio::test]
    async fn what_is_wrong_is_named() {
        let error = config_of(&["--kubeconfig=/nowhere"]).await.unwrap_err();
        assert_eq!(
            chain(&error),
            "cannot read the kubeconfig /nowhere: No such file or directory (os error 2)"
        );
        let error = config_of(&["--apiserver-host=a b"]).await.unwrap_err();
        assert!(matches!(error, ClusterError::Address { .. }), "{error}");
    }

    #[tokio::test]
    async fn a_useless_authority_is_left_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let flag = format!("--certificate-authority={}", file.path().display());
        let config = config_of(&["--apiserver-host=https://10.0.0.1", &flag])
            .await
            .unwrap();
        assert_eq!(config.root_cert_file, None);
        fs::write(file.path(), "-----BEGIN CERTIFICATE-----\n").unwrap();
        let config = config_of(&["--apiserver-host=https://10.0.0.1", &flag])
            .await
            .unwrap();
        assert_eq!(config.root_cert_file.as_deref(), Some(file.path()));
    }
}
