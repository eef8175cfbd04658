//! The NGINX that configuration is rendered for: this machine's, or one that is assumed.

use std::io;

use clap::ValueEnum;
use ingress_model::Model;
use lua_sync_client::Room;
use nginx_render::{
    Capabilities, Environment, ModSecurityRules, Rendered, Renderer, syntax::Directives,
};
use serde::Serialize;

use super::{CommandError, source::block_on};
use crate::{
    args::Args,
    nginx::{
        machine,
        program::{self, ProgramError},
    },
    room,
};

/// What stands for the certificate that a controller makes at its start. It is always the same, so that equal objects
/// give equal files.
pub(super) const STAND_IN_CERTIFICATE: &str = "(a controller makes a certificate at its start)\n";

/// Which NGINX configuration is rendered for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct NginxChoice {
    /// Render for this NGINX, on a machine without peculiarities, instead of for the NGINX of this machine
    #[arg(long, value_enum, value_name = "NGINX", help_heading = "Rendering")]
    pub assume_nginx: Option<AssumedNginx>,
}

/// An NGINX that need not be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AssumedNginx {
    /// Debian 12's with the packages that the controller needs; assumed too where this machine has no NGINX.
    #[value(name = "debian-12")]
    Debian12,
    /// The same with every module that an annotation or a key of the ConfigMap may need.
    Full,
}

/// What there is to know of an NGINX and its machine.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) capabilities: Capabilities,
    pub(super) environment: Environment,
    /// The directives and variables that it knows.
    pub(super) directives: Directives,
    is_assumed: bool,
}

/// A target as tools are told of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TargetSummary {
    version: String,
    assumed: bool,
}

impl TargetSummary {
    /// What is told where no NGINX was asked: who reads findings may take it for granted that all was checked.
    pub(super) fn unchecked(&self) -> Option<String> {
        self.assumed.then(|| {
            format!(
                "NGINX {} is assumed, not asked: whether it knows the directives of snippets, and takes values that \
                 are written as they are, was not checked",
                self.version
            )
        })
    }
}

/// What `nginx -V` says on Debian 12, as far as it matters.
const DEBIAN_12: &str = "nginx version: nginx/1.22.1\n\
    configure arguments: --prefix=/usr/share/nginx --modules-path=/usr/lib/nginx/modules --with-threads \
    --with-http_v2_module --with-http_realip_module --with-http_auth_request_module --with-http_stub_status_module \
    --with-stream=dynamic --with-stream_ssl_preread_module --with-stream_realip_module";

/// The modules of the packages that the controller needs.
const NEEDED: &[&str] = &[
    "ndk_http_module.so",
    "ngx_http_lua_module.so",
    "ngx_http_headers_more_filter_module.so",
    "ngx_stream_module.so",
    "ngx_stream_js_module.so",
];

/// Modules that some annotations and keys need.
const OPTIONAL: &[&str] = &[
    "ngx_http_brotli_filter_module.so",
    "ngx_http_brotli_static_module.so",
    "ngx_http_geoip2_module.so",
    "ngx_http_modsecurity_module.so",
    "ngx_http_auth_digest_module.so",
    "ngx_http_set_misc_module.so",
    "otel_ngx_module.so",
];

impl AssumedNginx {
    fn capabilities(self) -> Capabilities {
        let optional = match self {
            Self::Debian12 => &[],
            Self::Full => OPTIONAL,
        };
        Capabilities::parse(DEBIAN_12, NEEDED.iter().chain(optional).copied())
    }
}

impl NginxChoice {
    /// Finds out what is known of the NGINX that was chosen.
    ///
    /// # Errors
    ///
    /// When the NGINX of this machine was named by a flag, or is there, and cannot be asked.
    pub(super) fn target(self, args: &Args) -> Result<Target, CommandError> {
        match self.assume_nginx {
            Some(nginx) => Ok(assume(nginx, args)),
            None => match block_on(probe(args))? {
                Err(ProgramError::Run { source, .. })
                    if source.kind() == io::ErrorKind::NotFound
                        && args.nginx.nginx_binary.is_none() =>
                {
                    Ok(assume(AssumedNginx::Debian12, args))
                }
                target => Ok(target?),
            },
        }
    }
}

impl NginxChoice {
    /// The same for those who need no NGINX: where it cannot be asked, the one of the packages is assumed.
    pub(super) fn any_target(self, args: &Args) -> Target {
        let target = self.target(args);
        target.unwrap_or_else(|_| assume(AssumedNginx::Debian12, args))
    }
}

impl Target {
    /// Renders what is to be loaded, with room for what is to be told.
    pub(super) fn render(&self, model: &Model) -> Result<Rendered, CommandError> {
        let mut renderer = Renderer::new(self.capabilities.clone(), self.environment.clone());
        room::reserve(&mut renderer, Room::of(&model.live));
        Ok(renderer.render(&model.layout)?)
    }

    pub(super) fn summary(&self) -> TargetSummary {
        let (major, minor, patch) = self.capabilities.version();
        TargetSummary {
            version: format!("{major}.{minor}.{patch}"),
            assumed: self.is_assumed,
        }
    }
}

async fn probe(args: &Args) -> Result<Target, ProgramError> {
    let binary = program::find(args.nginx.nginx_binary.as_deref());
    Ok(Target {
        capabilities: program::probe(&binary).await?,
        environment: environment(args),
        directives: program::directives(&binary).await?,
        is_assumed: false,
    })
}

fn assume(nginx: AssumedNginx, args: &Args) -> Target {
    let plain = Environment::default();
    let has_modsecurity = nginx == AssumedNginx::Full;
    let modsecurity = ModSecurityRules {
        recommended: Some("/etc/modsecurity/modsecurity.conf".to_owned()),
        core: vec!["/usr/share/modsecurity-crs/rules/*.conf".to_owned()],
    };
    let editions = args.nginx.maxmind_editions();
    Target {
        capabilities: nginx.capabilities(),
        environment: Environment {
            access_log: plain.access_log,
            usual_error_log: Some(plain.error_log),
            mime_types: Some("/etc/nginx/mime.types".to_owned()),
            ipv6: plain.ipv6,
            resolvers: plain.resolvers,
            worker_processes: plain.worker_processes,
            open_files: plain.open_files,
            backlog: plain.backlog,
            user: plain.user,
            modsecurity: if has_modsecurity {
                modsecurity
            } else {
                ModSecurityRules::default()
            },
            geoip_databases: editions.map(|edition| (edition.to_owned(), None)).collect(),
            ..environment(args)
        },
        directives: Directives::documented(),
        is_assumed: true,
    }
}

/// Where NGINX runs on this machine with these flags.
fn environment(args: &Args) -> Environment {
    let directory = &args.nginx.nginx_dir;
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
    machine::environment(args, &directory, &STAND_IN_CERTIFICATE.into())
}

#[cfg(test)]
mod tests {
    use nginx_render::Module;

    use super::*;

    fn target(words: &[&str]) -> Result<Target, CommandError> {
        let args = Args::try_parse_from([&["test"], words].concat()).unwrap();
        NginxChoice::default().target(&args)
    }

    #[test]
    fn the_assumed_nginx_is_the_one_of_the_packages() {
        let assumed = AssumedNginx::Debian12.capabilities();
        let full = AssumedNginx::Full.capabilities();
        let there = target(&[]).unwrap();
        assert!(!there.summary().assumed);
        for module in [
            Module::Ndk,
            Module::Lua,
            Module::HeadersMore,
            Module::HttpV2,
            Module::RealIp,
            Module::AuthRequest,
            Module::StubStatus,
            Module::Threads,
            Module::Stream,
            Module::StreamRealIp,
            Module::StreamSslPreread,
            Module::StreamJs,
        ] {
            assert!(assumed.has(module) && full.has(module), "{module:?}");
            assert!(there.capabilities.has(module), "{module:?}");
        }
        for module in [Module::ModSecurity, Module::BrotliFilter, Module::GeoIp2] {
            assert!(!assumed.has(module) && full.has(module), "{module:?}");
        }
    }

    #[test]
    fn an_nginx_that_was_named_has_to_be_there() {
        let error = target(&["--nginx-binary=/none/such"]).unwrap_err();
        assert!(matches!(error, CommandError::Program(_)), "{error}");
    }

    #[test]
    fn what_is_assumed_does_not_depend_on_the_machine() {
        let args = Args::try_parse_from(["test", "--http-port=8080"]).unwrap();
        let environment = assume(AssumedNginx::Debian12, &args).environment;
        assert_eq!(environment.ports.http, 8080);
        assert_eq!(environment.worker_processes, 1);
        assert!(environment.resolvers.is_empty() && environment.user.is_none());
    }
}
