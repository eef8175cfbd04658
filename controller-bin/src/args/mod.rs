//! The command line: every flag of ingress-nginx, and a few of our own.
//!
//! One struct a group, as the help shows them. Reading flags asks nothing of the system; what has to be found out
//! there (which NGINX, whether ports are free) is asked by who needs it.

mod admission;
mod idle;
mod kubernetes;
mod logging;
mod metrics;
mod nginx;
mod page;
mod ports;
mod rules;
mod status;
mod value;
mod values;

use std::{collections::BTreeMap, ffi::OsString};

use clap::{ArgMatches, CommandFactory, FromArgMatches};

pub(crate) use self::value::switch;
pub use self::{
    admission::AdmissionArgs,
    kubernetes::KubernetesArgs,
    logging::{LogFormat, LoggingArgs},
    metrics::MetricsArgs,
    nginx::NginxArgs,
    page::flags_markdown,
    ports::PortArgs,
    rules::RuleArgs,
    status::StatusArgs,
    value::Given,
};

/// Everything that the command line says.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "nginx-ingress-controller",
    about = "Runs NGINX as the Ingresses of a cluster, or of a directory of manifests, say",
    disable_version_flag = true,
    args_override_self = true
)]
pub struct Args {
    /// Where objects come from.
    #[command(flatten)]
    pub kubernetes: KubernetesArgs,
    /// Which of them count, and how.
    #[command(flatten)]
    pub rules: RuleArgs,
    /// Where to listen.
    #[command(flatten)]
    pub ports: PortArgs,
    /// The NGINX process.
    #[command(flatten)]
    pub nginx: NginxArgs,
    /// What is reported to the cluster.
    #[command(flatten)]
    pub status: StatusArgs,
    /// The admission webhook.
    #[command(flatten)]
    pub admission: AdmissionArgs,
    /// Metrics.
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Logs.
    #[command(flatten)]
    pub logging: LoggingArgs,

    /// Show the version, and NGINX's, and exit
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, value_parser = value::switch)]
    pub version: bool,

    /// Flags that were given and that this version takes no notice of.
    #[arg(skip)]
    pub without_effect: Vec<String>,

    /// The values of all flags on which it may depend what NGINX runs with, given or not.
    #[arg(skip)]
    pub values: BTreeMap<String, String>,
}

/// Why flags that can be read one by one cannot be used together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    /// Two flags exclude each other.
    #[error("flags {0} and {1} exclude each other")]
    Exclusive(&'static str, &'static str),
    /// A flag needs another one.
    #[error("flag {0} needs {1}")]
    Needs(&'static str, &'static str),
    /// Two ports are the same.
    #[error("flags {0} and {1} name the same port {2}")]
    SamePort(&'static str, &'static str, u16),
    /// NGINX cannot listen at any port that happens to be free: nobody would know which.
    #[error("flag {0} names no port: 0")]
    NoPort(&'static str),
    /// A MaxMind edition that does not exist.
    #[error("flag --maxmind-edition-ids names the unknown edition {0:?}")]
    MaxmindEdition(String),
    /// A flag that NGINX's configuration takes up holds text that could not be quoted there.
    #[error("flag {0} has to start with / and hold letters, digits, '/', '-', '_', '.' only")]
    UnsafePath(&'static str),
}

impl Args {
    /// Reads a command line without subcommand, the program's name first.
    ///
    /// # Errors
    ///
    /// What is wrong with it, ready to be shown; asking for help counts as an error here.
    pub fn try_parse_from<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let mut command = with_switches(Self::command());
        let matches = command.try_get_matches_from_mut(words)?;
        Self::read(&matches, &mut command)
    }

    /// Takes what was read of the command.
    pub(crate) fn read(
        matches: &ArgMatches,
        command: &mut clap::Command,
    ) -> Result<Self, clap::Error> {
        let mut args = Self::from_arg_matches(matches)?;
        args.without_effect = idle::given(matches);
        args.values = values::values(matches);
        args.check()
            .map_err(|error| command.error(clap::error::ErrorKind::ArgumentConflict, error))?;
        Ok(args)
    }

    /// Adds what a subcommand that compares flags has to know of them.
    pub(crate) fn with_values(mut self, matches: &ArgMatches) -> Self {
        self.values = values::values(matches);
        self
    }

    pub(crate) fn check(&self) -> Result<(), ArgsError> {
        self.kubernetes.check()?;
        self.ports.check()?;
        self.nginx.check()?;
        self.status.check()?;
        self.admission.check()?;
        self.metrics.check()
    }

    /// What the rules have to know of the flags.
    #[must_use]
    pub fn options(&self) -> ingress_model::Options {
        ingress_model::Options {
            conflict_policy: self.rules.conflict_policy,
            controller_class: self.rules.controller_class.clone(),
            ingress_class: self.rules.ingress_class.clone(),
            ingress_class_by_name: self.rules.ingress_class_by_name,
            watch_ingress_without_class: self.rules.watch_ingress_without_class,
            watch_namespace: self.kubernetes.watch_namespace.clone(),
            namespace_selector: self.kubernetes.watch_namespace_selector.clone(),
            node: self
                .kubernetes
                .node_name
                .clone()
                .filter(|_| self.rules.enable_topology_aware_routing),
            disable_catch_all: self.rules.disable_catch_all,
            deep_inspect: self.rules.deep_inspect,
            annotations_prefix: self.rules.annotations_prefix.clone(),
            annotation_validation: self.rules.enable_annotation_validation,
            disable_external_name: self.rules.disable_svc_external_name,
            ssl_passthrough: self.ports.enable_ssl_passthrough,
            config_map: self.rules.configmap.clone(),
            tcp_services: self.rules.tcp_services_configmap.clone(),
            udp_services: self.rules.udp_services_configmap.clone(),
            default_backend_service: self.rules.default_backend_service.clone(),
            default_ssl_certificate: self.rules.default_ssl_certificate.clone(),
            default_server_port: self.ports.default_server_port,
            reserved_ports: self.ports.reserved(),
            ..ingress_model::Options::default()
        }
    }
}

/// A command with switches as pflag has them: `--x` means `--x=true`, and a value needs the equals sign. The help says of
/// each flag without effect that it has none.
pub(crate) fn with_switches(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_help() {
        Some(help) if idle::reason(arg.get_id().as_str()).is_some() => {
            let help = format!("{help}{}", idle::MARK);
            arg.help(help)
        }
        _ => arg,
    });
    command.mut_args(|arg| match arg.get_default_values() {
        [value] if value == "true" || value == "false" => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_name("true|false"),
        [value] if value.is_empty() => arg.hide_default_value(true),
        _ => arg,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of ingress-nginx v1.15 with their defaults, as its command-line reference and its klog give them.
    const INGRESS_NGINX_FLAGS: &[(&str, &str)] = &[
        ("annotations-prefix", "nginx.ingress.kubernetes.io"),
        ("apiserver-host", ""),
        ("bucket-factor", "0"),
        ("certificate-authority", ""),
        ("configmap", ""),
        ("controller-class", "k8s.io/ingress-nginx"),
        ("deep-inspect", "true"),
        ("default-backend-service", ""),
        ("default-server-port", "8181"),
        ("default-ssl-certificate", ""),
        ("disable-catch-all", "false"),
        ("disable-full-test", "false"),
        ("disable-leader-election", "false"),
        ("disable-svc-external-name", "false"),
        ("disable-sync-events", "false"),
        ("dynamic-configuration-retries", "15"),
        ("election-id", "ingress-controller-leader"),
        ("election-ttl", "30s"),
        ("enable-annotation-validation", "true"),
        ("enable-metrics", "false"),
        ("enable-ssl-chain-completion", "false"),
        ("enable-ssl-passthrough", "false"),
        ("enable-topology-aware-routing", "false"),
        ("exclude-socket-metrics", ""),
        ("health-check-path", "/healthz"),
        ("health-check-timeout", "10"),
        ("healthz-host", ""),
        ("healthz-port", "10254"),
        ("http-port", "80"),
        ("https-port", "443"),
        ("ingress-class", "nginx"),
        ("ingress-class-by-name", "false"),
        ("internal-logger-address", "127.0.0.1:11514"),
        ("kubeconfig", ""),
        ("length-buckets", "10,20,30,40,50,60,70,80,90,100"),
        ("max-buckets", "100"),
        ("maxmind-edition-ids", "GeoLite2-City,GeoLite2-ASN"),
        ("maxmind-license-key", ""),
        ("maxmind-mirror", ""),
        ("maxmind-retries-count", "1"),
        ("maxmind-retries-timeout", "0s"),
        ("metrics-per-host", "true"),
        ("metrics-per-undefined-host", "false"),
        ("monitor-max-batch-size", "10000"),
        ("post-shutdown-grace-period", "10"),
        ("profiler-address", "127.0.0.1"),
        ("profiler-port", "10245"),
        ("profiling", "true"),
        ("publish-service", ""),
        ("publish-status-address", ""),
        ("report-node-internal-ip-address", "false"),
        ("report-status-classes", "false"),
        ("shutdown-grace-period", "0"),
        ("size-buckets", "10,100,1000,10000,100000,1000000,10000000"),
        ("ssl-passthrough-proxy-port", "442"),
        ("status-port", "10246"),
        ("status-update-interval", "60"),
        ("stream-port", "10247"),
        ("sync-period", "0"),
        ("sync-rate-limit", "0.3"),
        ("tcp-services-configmap", ""),
        (
            "time-buckets",
            "0.005,0.01,0.025,0.05,0.1,0.25,0.5,1,2.5,5,10",
        ),
        ("udp-services-configmap", ""),
        ("update-status", "true"),
        ("update-status-on-shutdown", "true"),
        ("validating-webhook", ""),
        ("validating-webhook-certificate", ""),
        ("validating-webhook-key", ""),
        ("version", "false"),
        ("watch-ingress-without-class", "false"),
        ("watch-namespace", ""),
        ("watch-namespace-selector", ""),
        ("v", "0"),
        ("vmodule", ""),
        ("logtostderr", "true"),
        ("alsologtostderr", "false"),
        ("stderrthreshold", "2"),
        ("log_dir", ""),
        ("log_file", ""),
        ("log_file_max_size", "1800"),
        ("add_dir_header", "false"),
        ("skip_headers", "false"),
        ("skip_log_headers", "false"),
        ("one_output", "false"),
        ("log_backtrace_at", ":0"),
    ];

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(["nginx-ingress-controller"].iter().chain(flags))
    }

    #[test]
    fn every_flag_of_ingress_nginx_is_there_with_its_default() {
        let command = with_switches(Args::command());
        for (name, default) in INGRESS_NGINX_FLAGS {
            let arg = command
                .get_arguments()
                .find(|arg| arg.get_long() == Some(name))
                .unwrap_or_else(|| panic!("--{name} is missing"));
            let values = arg.get_default_values();
            let shown = values.join(std::ffi::OsStr::new(","));
            assert_eq!(shown.to_str(), Some(*default), "--{name}");
        }
    }

    #[test]
    fn the_help_names_flags_without_effect() {
        let help = with_switches(Args::command()).render_help().to_string();
        let flag = |name: &str| {
            let mut lines = help.lines().skip_while(|line| !line.contains(name)).skip(1);
            lines.next().unwrap_or_default().trim().to_owned()
        };
        assert!(flag("--profiler-port").ends_with("(without effect) [default: 10245]"));
        assert!(!flag("--sync-rate-limit").contains("without effect"));
    }

    #[test]
    fn the_command_is_sound() {
        with_switches(Args::command()).debug_assert();
    }

    #[test]
    fn each_flag_has_a_help_text_under_a_heading() {
        for arg in with_switches(Args::command()).get_arguments() {
            let name = arg.get_id();
            assert!(
                arg.get_help()
                    .is_some_and(|help| help.to_string().len() > 10),
                "{name}"
            );
            let alone = ["help", "version"].contains(&name.as_str());
            assert!(alone || arg.get_help_heading().is_some(), "{name}");
        }
    }

    #[test]
    fn switches_are_read_as_pflag_reads_them() {
        for (flags, want) in [
            (&[] as &[&str], false),
            (&["--disable-catch-all"], true),
            (&["--disable-catch-all=true"], true),
            (&["--disable-catch-all=F"], false),
            (&["--disable-catch-all", "--disable-catch-all=false"], false),
        ] {
            assert_eq!(
                parse(flags).unwrap().rules.disable_catch_all,
                want,
                "{flags:?}"
            );
        }
        assert!(!parse(&["--deep-inspect=false"]).unwrap().rules.deep_inspect);
        assert!(
            parse(&["--deep-inspect", "false"]).is_err(),
            "pflag takes this for an argument"
        );
        assert!(parse(&["--deep-inspect=maybe"]).is_err());
    }

    #[test]
    fn values_come_after_an_equals_sign_or_a_space() {
        for flags in [&["--http-port=8080"] as &[&str], &["--http-port", "8080"]] {
            assert_eq!(parse(flags).unwrap().ports.http_port, 8080);
        }
        for flags in [
            &["-v=3"] as &[&str],
            &["-v", "3"],
            &["--v=3"],
            &["--v", "3"],
        ] {
            assert_eq!(parse(flags).unwrap().logging.verbosity, 3);
        }
    }

    #[test]
    fn an_empty_value_counts_as_absent() {
        let args = parse(&[
            "--publish-service=",
            "--publish-status-address=10.0.0.1",
            "--kubeconfig=",
        ])
        .unwrap();
        assert_eq!(args.status.publish_service, None);
        assert_eq!(args.kubernetes.kubeconfig, None);
    }

    #[test]
    fn an_unknown_flag_is_refused_with_a_suggestion() {
        let error = parse(&["--htp-port=80"]).unwrap_err().to_string();
        assert!(
            error.contains("--htp-port") && error.contains("--http-port"),
            "{error}"
        );
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for (flags, message) in [
            (
                &["--publish-service=a/b", "--publish-status-address=10.0.0.1"] as &[&str],
                "flags --publish-service and --publish-status-address exclude each other",
            ),
            (
                &["--watch-namespace=a", "--watch-namespace-selector=b=c"],
                "flags --watch-namespace and --watch-namespace-selector exclude each other",
            ),
            (
                &["--metrics-per-undefined-host", "--metrics-per-host=false"],
                "flag --metrics-per-undefined-host needs --metrics-per-host",
            ),
            (
                &["--http-port=8080", "--https-port=8080"],
                "flags --http-port and --https-port name the same port 8080",
            ),
            (&["--http-port=0"], "flag --http-port names no port: 0"),
            (
                &[
                    "--ssl-passthrough-proxy-port=80",
                    "--enable-ssl-passthrough",
                ],
                "flags --http-port and --ssl-passthrough-proxy-port name the same port 80",
            ),
            (
                &["--maxmind-edition-ids=GeoLite2-City,Moon"],
                "flag --maxmind-edition-ids names the unknown edition \"Moon\"",
            ),
            (
                &["--health-check-path=/x;y"],
                "flag --health-check-path has to start with /",
            ),
            (
                &["--manifests=/a", "--kubeconfig=/b"],
                "flags --manifests and --kubeconfig exclude each other",
            ),
        ] {
            let error = parse(flags).unwrap_err().to_string();
            assert!(error.contains(message), "{flags:?}: {error}");
        }
        assert!(
            parse(&["--ssl-passthrough-proxy-port=80"]).is_ok(),
            "the port is not used"
        );
    }

    #[test]
    fn values_of_the_wrong_sort_are_refused() {
        for flag in [
            "--configmap=settings",
            "--http-port=70000",
            "--sync-rate-limit=0",
            "--sync-rate-limit=nan",
            "--election-ttl=30",
            "--watch-namespace-selector=a of (b)",
            "--conflict-policy=newest",
            "--time-buckets=1,x",
        ] {
            assert!(parse(&[flag]).is_err(), "{flag}");
        }
    }

    #[test]
    fn a_prefix_that_no_annotation_can_have_is_refused() {
        let args = parse(&["--annotations-prefix=my.io/"]).unwrap();
        assert_eq!(args.options().annotations_prefix, "my.io");
        for value in ["", "a b", "my.io/x"] {
            let error = parse(&["--annotations-prefix", value]).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("--annotations-prefix"), "{text}");
            assert!(text.contains(&format!("'{value}'")), "{text}");
            assert!(text.contains("must be a DNS subdomain"), "{text}");
        }
    }

    #[test]
    fn given_flags_without_effect_are_listed_once() {
        let args = parse(&["--v=2", "--log_dir=/x", "--log_dir=/y", "--profiling"]).unwrap();
        assert_eq!(args.without_effect, ["--profiling", "--log_dir"]);
        assert!(parse(&[]).unwrap().without_effect.is_empty());
    }

    #[test]
    fn too_short_intervals_are_raised() {
        let args = parse(&["--status-update-interval=1", "--election-ttl=0"]).unwrap();
        assert_eq!(args.status.update_interval().as_secs(), 5);
        let args = parse(&["--status-update-interval=-1"]).unwrap();
        assert_eq!(args.status.update_interval().as_secs(), 5);
        assert_eq!(args.status.election_ttl().as_secs(), 30);
    }

    #[test]
    fn the_rules_are_told_what_was_chosen() {
        let options = parse(&[
            "--conflict-policy=oldest-wins",
            "--configmap=ns/settings",
            "--watch-namespace=shop",
            "--http-port=8080",
        ])
        .unwrap()
        .options();
        assert_eq!(
            options.conflict_policy,
            ingress_model::ConflictPolicy::OldestWins
        );
        assert_eq!(
            options.config_map,
            Some(ingress_model::ObjectName::new("ns", "settings"))
        );
        assert_eq!(options.watch_namespace.as_deref(), Some("shop"));
        assert_eq!(
            options.reserved_ports,
            [8080, 443, 10254, 8181, 10245, 10246, 10247]
        );
        let defaults = ingress_model::Options {
            reserved_ports: vec![80, 443, 10254, 8181, 10245, 10246, 10247],
            ..ingress_model::Options::default()
        };
        assert_eq!(parse(&[]).unwrap().options(), defaults);
    }
}
