//! Ways to connect to the double: a client, a kubeconfig.

use std::io::Write as _;

use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::ApiDouble;

impl ApiDouble {
    /// Base URL, without a path.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client with kube's default settings, of its own connections.
    pub(crate) fn client(&self) -> Client {
        let url = self
            .url()
            .parse()
            .expect("the URL is made of a socket address");
        Client::try_from(Config::new(url)).expect("plain HTTP needs no set-up that can fail")
    }

    /// A kubeconfig that leads to the double without credentials. JSON, hence YAML.
    pub(crate) fn kubeconfig_yaml(&self) -> String {
        self.kubeconfig_document().to_string()
    }

    /// [`ApiDouble::kubeconfig_yaml`] in a file, for a controller's `--kubeconfig`. The file goes
    /// with the value.
    pub(crate) fn kubeconfig(&self) -> NamedTempFile {
        let mut file = NamedTempFile::new().expect("the temporary directory is writable");
        file.write_all(self.kubeconfig_yaml().as_bytes())
            .expect("the file is writable");
        file
    }

    fn kubeconfig_document(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "double", "cluster": {"server": self.url()}}],
            "users": [{"name": "test", "user": {}}],
            "contexts": [{"name": "double", "context": {"cluster": "double", "user": "test"}}],
            "current-context": "double",
        })
    }
}
