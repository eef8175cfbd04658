//! The controller's own ports: that of health checks, metrics and the page, and that of the webhook.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use ingress_model::ObjectName;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch::Receiver;

use crate::{
    admission::{self, AdmissionError, AdmissionServer, Reviewer, SelfSigned},
    args::Args,
    debug::{self, Insight},
    health::{self, Health},
    metrics::Metrics,
    run::Error,
    store::Store,
    ui::{self, Board},
};

impl Args {
    /// Answers the API server's questions about Ingresses, if flags ask for it. The port is taken before this returns;
    /// answers come once all objects are known, since an Ingress is judged beside those that are there.
    pub(crate) async fn serve_webhook(
        &self,
        client: Option<&Client>,
        store: &Arc<Store>,
        reviewer: Reviewer,
        mut ended: Receiver<bool>,
    ) -> Result<impl Future<Output = ()> + use<>, Error> {
        let own = self.make_identity(client)?;
        let mut flags = self.admission.clone();
        if let Some((own, _)) = &own {
            flags.validating_webhook_certificate = Some(own.certificate());
            flags.validating_webhook_key = Some(own.key());
        }
        let server = match admission::Settings::from_flags(&flags)? {
            Some(settings) => Some(AdmissionServer::bind(settings, Arc::new(reviewer)).await?),
            None => None,
        };
        let store = Arc::clone(store);
        Ok(async move {
            let Some(server) = server else { return };
            store.until_ready().await;
            let end = async move {
                // Without a sender the end has come as well.
                let _ended = ended.wait_for(|ended| *ended).await;
            };
            let serve = server.serve(end);
            match own {
                Some((own, client)) => {
                    own.begin(&client).await;
                    tokio::select! {
                        () = serve => {}
                        () = own.keep(client) => {}
                    }
                }
                None => serve.await,
            }
        })
    }

    /// The webhook's certificate, if it is for us to make.
    fn make_identity(
        &self,
        client: Option<&Client>,
    ) -> Result<Option<(SelfSigned, Client)>, AdmissionError> {
        let flags = &self.admission;
        let Some(name) = (flags.validating_webhook.as_ref())
            .and(flags.validating_webhook_self_signed.as_deref())
        else {
            return Ok(None);
        };
        let namespace = self.kubernetes.pod_namespace.as_deref();
        let namespace = namespace.ok_or(AdmissionError::Missing("--pod-namespace"))?;
        let client = client.ok_or(AdmissionError::Missing("an API server"))?;
        let directory = self.nginx_directory().join("webhook");
        let name = ObjectName::new(namespace, name);
        let own = SelfSigned::prepare(name, &directory, Timestamp::now())?;
        Ok(Some((own, client.clone())))
    }

    /// Answers health checks, and shows metrics, the page and what subcommands ask for, at a port that is taken before
    /// this returns.
    pub(crate) fn serve_health(
        &self,
        health: Health,
        metrics: &Arc<Metrics>,
        insight: Insight,
        board: Option<Arc<Board>>,
    ) -> Result<impl Future<Output = ()> + use<>, Error> {
        let port = self.ports.healthz_port;
        let (host, bound) = match self.ports.healthz_host.as_deref() {
            Some(host) => (host, TcpListener::bind((host, port))),
            // All addresses: those of IPv6 are served by the same socket, where there is IPv6.
            None => (
                "*",
                TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port))),
            ),
        };
        let failed = |source| Error::Listen {
            address: format!("{host}:{port}"),
            source,
        };
        let listener = bound.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        let mut router = health::router(health, &self.ports.health_check_path);
        router = router.merge(metrics.router()).merge(debug::router(insight));
        if let Some(board) = board {
            router = router.merge(ui::router(board));
        }
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        Ok(async move {
            // It never ends by itself.
            let _ended = axum::serve(listener, service).await;
        })
    }
}
