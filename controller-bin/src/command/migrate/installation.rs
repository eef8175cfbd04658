//! The installation of ingress-nginx: the workload that runs it, and its arguments.

use std::{collections::BTreeMap, ffi::OsString, fs};

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment},
    core::v1::{Container, PodSpec},
};
use kube::{Api, api::ListParams};
use serde_json::Value;

use crate::{
    args::Args,
    chain::chain,
    cluster,
    command::{
        CommandError,
        source::{self, Objects, block_on},
    },
};

/// The installation of ingress-nginx.
#[derive(Debug)]
pub(super) struct Installation {
    /// The workload that the arguments come from.
    pub(super) workload: Option<String>,
    /// Others that run ingress-nginx too.
    pub(super) others: Vec<String>,
    /// Why no workload could be looked for.
    pub(super) trouble: Option<String>,
    /// Its arguments.
    pub(super) words: Vec<String>,
    /// Arguments that are not understood here, and why.
    pub(super) refused: Vec<String>,
    /// What a controller with these arguments, and the flags given to this program, would be told.
    pub(super) args: Args,
}

/// A Deployment or DaemonSet.
struct Workload {
    name: String,
    namespace: String,
    spec: PodSpec,
}

/// The start of a command line, and what the program is called in an image of ingress-nginx.
const PROGRAM: &str = "nginx-ingress-controller";

/// Flags that say where objects come from: those of this program's own command line count.
const SOURCES: &[&str] = &["kubeconfig", "apiserver-host", "certificate-authority"];

impl Installation {
    /// An installation with these arguments, as a shell would read them.
    pub(super) fn of_text(text: &str, given: &[OsString]) -> Result<Self, CommandError> {
        let words = shlex::split(text);
        let words = words.unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect());
        Self::of_words(words, given)
    }

    /// Looks among manifests, or in a cluster, for what runs ingress-nginx.
    pub(super) fn find(args: &Args, given: &[OsString]) -> Result<Self, CommandError> {
        let workloads = match &args.kubernetes.manifests {
            Some(directory) => Ok(of_manifests(&source::read(args, directory)?)),
            None => block_on(of_cluster(args))??,
        };
        let (workloads, trouble) = match workloads {
            Ok(workloads) => (workloads, None),
            Err(trouble) => (Vec::new(), Some(trouble)),
        };
        let controllers = workloads.iter().filter_map(|workload| {
            let container = workload.spec.containers.iter().find(|it| runs_it(it))?;
            Some((workload, container))
        });
        let mut controllers = controllers.map(|(workload, container)| {
            let words = arguments(container, &workload.namespace);
            (workload.name.clone(), words)
        });
        let (name, words) = controllers.next().unzip();
        Ok(Self {
            workload: name,
            others: controllers.map(|(name, _)| name).collect(),
            trouble,
            ..Self::of_words(words.unwrap_or_default(), given)?
        })
    }

    fn of_words(words: Vec<String>, given: &[OsString]) -> Result<Self, CommandError> {
        let mut refused = Vec::new();
        let mut kept: Vec<OsString> = vec![PROGRAM.into()];
        for flag in flags(&words) {
            let name = flag.first().map_or("", String::as_str);
            let name = name.trim_start_matches('-');
            let name = name.split('=').next().unwrap_or_default();
            if SOURCES.contains(&name) {
                continue;
            }
            let alone = [PROGRAM].into_iter().chain(flag.iter().map(String::as_str));
            match Args::try_parse_from(alone) {
                Ok(_) => kept.extend(flag.iter().map(Into::into)),
                // One flag alone may lack another one; that is seen when all are read.
                Err(error) if error.kind() == clap::error::ErrorKind::ArgumentConflict => {
                    kept.extend(flag.iter().map(Into::into));
                }
                Err(error) => refused.push(format!("{}: {}", flag.join(" "), reason(&error))),
            }
        }
        let all = || kept.iter().chain(given).cloned();
        let args = Args::try_parse_from(all()).or_else(|error| {
            refused.push(reason(&error));
            let given = given.iter().cloned();
            Args::try_parse_from([OsString::from(PROGRAM)].into_iter().chain(given))
        });
        let args = args.map_err(|error| CommandError::Flags(reason(&error)))?;
        Ok(Self {
            workload: None,
            others: Vec::new(),
            trouble: None,
            words,
            refused,
            args,
        })
    }
}

/// The first line of what is wrong.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// Each flag with its value, be that in the same word or in the next one. What stands before the first one is the
/// program.
fn flags(words: &[String]) -> Vec<Vec<String>> {
    let mut flags: Vec<Vec<String>> = Vec::new();
    for word in words {
        if word.starts_with('-') {
            flags.push(vec![word.clone()]);
        } else if let Some(flag) = flags.last_mut() {
            flag.push(word.clone());
        }
    }
    flags
}

/// Whether a container runs ingress-nginx's controller.
fn runs_it(container: &Container) -> bool {
    let words = container.command.iter().chain(&container.args).flatten();
    let mut programs = words.filter(|word| !word.starts_with('-'));
    let image = container.image.as_deref().unwrap_or_default();
    programs.any(|word| word.rsplit('/').next() == Some(PROGRAM))
        || image.contains("ingress-nginx/controller")
}

/// The arguments of a container, with the variables that Kubernetes replaces.
fn arguments(container: &Container, namespace: &str) -> Vec<String> {
    let mut variables = BTreeMap::from([("POD_NAMESPACE", namespace)]);
    for variable in container.env.iter().flatten() {
        let source = variable.value_from.as_ref();
        let field = source.and_then(|source| source.field_ref.as_ref());
        if let Some(value) = variable.value.as_deref() {
            variables.insert(&variable.name, value);
        } else if field.is_some_and(|field| field.field_path == "metadata.namespace") {
            variables.insert(&variable.name, namespace);
        }
    }
    let words = container.command.iter().chain(&container.args).flatten();
    let words = words.map(|word| {
        let mut word = word.clone();
        for (name, value) in &variables {
            word = word.replace(&format!("$({name})"), value);
        }
        word
    });
    words.collect()
}

/// The workloads of a directory. Their kinds are none of those that the rules read.
fn of_manifests(found: &Objects) -> Vec<Workload> {
    let is_workload = |kind: &str| matches!(kind, "Deployment" | "DaemonSet");
    let places = found.ignored.iter();
    let mut places: Vec<_> = places
        .filter(|(_, ignored)| is_workload(&ignored.kind))
        .map(|(file, ignored)| (file, ignored.line))
        .collect();
    // Items of a list stand at one place.
    places.dedup();
    let documents = places.into_iter().filter_map(|(file, line)| {
        let text = fs::read_to_string(file).ok()?;
        let from = usize::try_from(line.saturating_sub(1)).ok()?;
        let lines = text.lines().skip(from);
        let lines: Vec<_> = lines.take_while(|line| !line.starts_with("---")).collect();
        serde_saphyr::from_str::<Value>(&lines.join("\n")).ok()
    });
    documents.flat_map(items).filter_map(workload).collect()
}

/// The items of a list, or the object itself.
fn items(mut object: Value) -> Vec<Value> {
    match object.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![object],
    }
}

fn workload(object: Value) -> Option<Workload> {
    match object.get("kind").and_then(Value::as_str)? {
        "Deployment" => serde_json::from_value(object).ok().and_then(of_deployment),
        "DaemonSet" => serde_json::from_value(object).ok().and_then(of_daemon_set),
        _ => None,
    }
}

fn of_deployment(object: Deployment) -> Option<Workload> {
    let spec = object.spec?.template.spec?;
    let namespace = object.metadata.namespace;
    Some(named("Deployment", namespace, object.metadata.name, spec))
}

fn of_daemon_set(object: DaemonSet) -> Option<Workload> {
    let spec = object.spec?.template.spec?;
    let namespace = object.metadata.namespace;
    Some(named("DaemonSet", namespace, object.metadata.name, spec))
}

fn named(kind: &str, namespace: Option<String>, name: Option<String>, spec: PodSpec) -> Workload {
    let namespace = namespace.unwrap_or_else(|| "default".to_owned());
    let name = name.unwrap_or_default();
    Workload {
        name: format!("{kind} {namespace}/{name}"),
        namespace,
        spec,
    }
}

/// The workloads of a cluster; or why they cannot be listed.
async fn of_cluster(args: &Args) -> Result<Result<Vec<Workload>, String>, CommandError> {
    source::choose_tls();
    let client = cluster::client(&args.kubernetes).await?;
    let everything = ListParams::default();
    let deployments = Api::<Deployment>::all(client.clone());
    let daemon_sets = Api::<DaemonSet>::all(client);
    let listed = async {
        let deployments = deployments.list(&everything).await?;
        let daemon_sets = daemon_sets.list(&everything).await?;
        Ok::<_, kube::Error>((deployments.items, daemon_sets.items))
    };
    let (deployments, daemon_sets) = match listed.await {
        Ok(listed) => listed,
        Err(error) => {
            let why = chain(&error);
            return Ok(Err(format!(
                "cannot list Deployments and DaemonSets: {why}"
            )));
        }
    };
    let deployments = deployments.into_iter().filter_map(of_deployment);
    let daemon_sets = daemon_sets.into_iter().filter_map(of_daemon_set);
    Ok(Ok(deployments.chain(daemon_sets).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: old, namespace: ingress-nginx}
spec:
  selector: {}
  template:
    spec:
      containers:
      - {name: sidecar, image: example.test/sidecar}
      - name: controller
        image: registry.k8s.io/ingress-nginx/controller:v1.11.2
        args:
        - /nginx-ingress-controller
        - --configmap=$(POD_NAMESPACE)/$(NAME)
        - --watch-namespace
        - shop
        env:
        - {name: NAME, value: settings}
";

    #[test]
    fn arguments_are_those_that_kubernetes_gives() {
        let object = serde_saphyr::from_str(DEPLOYMENT).unwrap();
        let workload = workload(object).unwrap();
        assert_eq!(workload.name, "Deployment ingress-nginx/old");
        let containers = &workload.spec.containers;
        assert_eq!(
            containers.iter().map(runs_it).collect::<Vec<_>>(),
            [false, true]
        );
        let words = arguments(&containers[1], &workload.namespace);
        let installation = Installation::of_words(words, &["--ingress-class=old".into()]).unwrap();
        let options = installation.args.options();
        let config_map = options.config_map.unwrap().to_string();
        assert_eq!(config_map, "ingress-nginx/settings");
        assert_eq!(options.watch_namespace.as_deref(), Some("shop"));
        assert_eq!(options.ingress_class, "old");
        assert!(installation.refused.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_told_and_the_rest_counts() {
        let text = "--watch-namespace='shop' --no-such-flag=1 --http-port=x --kubeconfig=/none";
        let installation = Installation::of_text(text, &["--manifests=.".into()]).unwrap();
        let options = installation.args.options();
        assert_eq!(options.watch_namespace.as_deref(), Some("shop"));
        let refused = &installation.refused;
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert!(refused[0].starts_with("--no-such-flag=1: unexpected argument"));
        assert!(refused[1].starts_with("--http-port=x: invalid value 'x'"));
    }
}
