//! What an NGINX can do, read from what it says about itself. Nothing is assumed.

use std::collections::BTreeMap;

/// A module, or a feature that is chosen when NGINX is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Module {
    /// NGINX Development Kit, which Lua needs.
    Ndk,
    /// ngx_http_lua_module.
    Lua,
    /// ngx_http_headers_more_filter_module.
    HeadersMore,
    /// ngx_http_brotli_filter_module.
    BrotliFilter,
    /// ngx_http_brotli_static_module.
    BrotliStatic,
    /// ngx_http_geoip2_module.
    GeoIp2,
    /// ngx_http_modsecurity_module.
    ModSecurity,
    /// ngx_http_auth_digest_module.
    AuthDigest,
    /// otel_ngx_module of the OpenTelemetry project.
    OpenTelemetry,
    /// ngx_http_set_misc_module.
    SetMisc,
    /// njs for HTTP.
    HttpJs,
    /// ngx_http_v2_module.
    HttpV2,
    /// ngx_http_v3_module.
    HttpV3,
    /// ngx_http_realip_module.
    RealIp,
    /// ngx_http_auth_request_module.
    AuthRequest,
    /// ngx_http_stub_status_module.
    StubStatus,
    /// Thread pools (`aio threads`).
    Threads,
    /// The stream module.
    Stream,
    /// ngx_stream_realip_module.
    StreamRealIp,
    /// ngx_stream_ssl_preread_module.
    StreamSslPreread,
    /// ngx_stream_lua_module.
    StreamLua,
    /// njs for stream.
    StreamJs,
}

/// How a module is recognised, in the order in which dynamic ones have to be loaded.
struct Signs {
    module: Module,
    /// Its file among the dynamic modules; none: it is always built in.
    file: Option<&'static str>,
    /// An argument of `configure` that builds it in.
    flag: Option<&'static str>,
    /// What the directory given to `--add-module` contains in its name.
    directory: Option<&'static str>,
}

const fn signs(
    module: Module,
    file: Option<&'static str>,
    flag: Option<&'static str>,
    directory: Option<&'static str>,
) -> Signs {
    Signs {
        module,
        file,
        flag,
        directory,
    }
}

const SIGNS: &[Signs] = &[
    signs(
        Module::Ndk,
        Some("ndk_http_module.so"),
        None,
        Some("ngx_devel_kit"),
    ),
    signs(
        Module::Lua,
        Some("ngx_http_lua_module.so"),
        None,
        Some("lua-nginx-module"),
    ),
    signs(Module::Lua, None, None, Some("ngx_lua-")),
    signs(
        Module::SetMisc,
        Some("ngx_http_set_misc_module.so"),
        None,
        Some("set-misc-nginx-module"),
    ),
    signs(
        Module::HeadersMore,
        Some("ngx_http_headers_more_filter_module.so"),
        None,
        Some("headers-more-nginx-module"),
    ),
    signs(
        Module::BrotliFilter,
        Some("ngx_http_brotli_filter_module.so"),
        None,
        Some("ngx_brotli"),
    ),
    signs(
        Module::BrotliStatic,
        Some("ngx_http_brotli_static_module.so"),
        None,
        Some("ngx_brotli"),
    ),
    signs(
        Module::GeoIp2,
        Some("ngx_http_geoip2_module.so"),
        None,
        Some("ngx_http_geoip2_module"),
    ),
    signs(
        Module::ModSecurity,
        Some("ngx_http_modsecurity_module.so"),
        None,
        Some("ModSecurity-nginx"),
    ),
    signs(
        Module::AuthDigest,
        Some("ngx_http_auth_digest_module.so"),
        None,
        Some("auth-digest"),
    ),
    signs(
        Module::OpenTelemetry,
        Some("otel_ngx_module.so"),
        None,
        Some("opentelemetry"),
    ),
    signs(
        Module::HttpJs,
        Some("ngx_http_js_module.so"),
        None,
        Some("njs"),
    ),
    signs(Module::HttpV2, None, Some("--with-http_v2_module"), None),
    signs(Module::HttpV3, None, Some("--with-http_v3_module"), None),
    signs(
        Module::RealIp,
        None,
        Some("--with-http_realip_module"),
        None,
    ),
    signs(
        Module::AuthRequest,
        None,
        Some("--with-http_auth_request_module"),
        None,
    ),
    signs(
        Module::StubStatus,
        None,
        Some("--with-http_stub_status_module"),
        None,
    ),
    signs(Module::Threads, None, Some("--with-threads"), None),
    signs(
        Module::Stream,
        Some("ngx_stream_module.so"),
        Some("--with-stream"),
        None,
    ),
    signs(
        Module::StreamRealIp,
        None,
        Some("--with-stream_realip_module"),
        None,
    ),
    signs(
        Module::StreamSslPreread,
        None,
        Some("--with-stream_ssl_preread_module"),
        None,
    ),
    signs(
        Module::StreamLua,
        Some("ngx_stream_lua_module.so"),
        None,
        Some("stream-lua-nginx-module"),
    ),
    signs(Module::StreamLua, None, None, Some("ngx_stream_lua-")),
    signs(
        Module::StreamJs,
        Some("ngx_stream_js_module.so"),
        None,
        Some("njs"),
    ),
];

/// What an NGINX can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    version: (u32, u32, u32),
    openresty: bool,
    /// The path to load a module from; `None` for what is built in.
    modules: BTreeMap<Module, Option<String>>,
}

impl Capabilities {
    /// Reads the output of `nginx -V` and the names of the files in its [modules path](Self::modules_path).
    ///
    /// ```
    /// use nginx_render::{Capabilities, Module};
    ///
    /// let text = "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=/usr/lib/nginx/modules --with-stream=dynamic";
    /// let nginx = Capabilities::parse(text, ["ngx_stream_module.so"]);
    /// assert_eq!(nginx.version(), (1, 22, 1));
    /// assert_eq!(nginx.load_path(Module::Stream), Some("/usr/lib/nginx/modules/ngx_stream_module.so"));
    /// assert!(!nginx.has(Module::Lua));
    /// ```
    #[must_use]
    pub fn parse<'a>(text: &str, module_files: impl IntoIterator<Item = &'a str>) -> Self {
        let files: Vec<&str> = module_files.into_iter().collect();
        let arguments = configure_arguments(text);
        let directory = Self::modules_path(text);
        let mut modules = BTreeMap::new();
        for signs in SIGNS {
            let built_in = arguments
                .iter()
                .any(|argument| signs.is_built_in_by(argument));
            let loadable = signs
                .file
                .filter(|file| files.contains(file))
                .zip(directory.as_deref());
            if built_in {
                modules.insert(signs.module, None);
            } else if let Some((file, directory)) = loadable {
                modules.insert(signs.module, Some(format!("{directory}/{file}")));
            }
        }
        let (openresty, version) = version(text);
        Self {
            version,
            openresty,
            modules,
        }
    }

    /// Where `nginx -V` says that dynamic modules are; `None` when it does not say.
    #[must_use]
    pub fn modules_path(text: &str) -> Option<String> {
        let arguments = configure_arguments(text);
        let value = |name: &str| {
            let value = arguments
                .iter()
                .find_map(|argument| argument.strip_prefix(name));
            value.map(|value| value.trim_end_matches('/'))
        };
        let prefix = value("--prefix=");
        match (value("--modules-path="), prefix) {
            (Some(path), _) if path.starts_with('/') => Some(path.into()),
            (path, Some(prefix)) => Some(format!("{prefix}/{}", path.unwrap_or("modules"))),
            (_, None) => None,
        }
    }

    /// The version of NGINX, of the one inside for OpenResty.
    #[must_use]
    pub fn version(&self) -> (u32, u32, u32) {
        self.version
    }

    /// Whether this is OpenResty.
    #[must_use]
    pub fn is_openresty(&self) -> bool {
        self.openresty
    }

    /// Whether a module is there, built in or to be loaded.
    #[must_use]
    pub fn has(&self, module: Module) -> bool {
        self.modules.contains_key(&module)
    }

    /// All modules that are there.
    pub fn modules(&self) -> impl Iterator<Item = Module> {
        self.modules.keys().copied()
    }

    /// The file to load a module from; `None` when it is built in or not there.
    #[must_use]
    pub fn load_path(&self, module: Module) -> Option<&str> {
        self.modules.get(&module)?.as_deref()
    }

    /// Whether HTTP/2 is a directive of its own rather than a parameter of `listen` (NGINX docs: `http2`, 1.25.1).
    #[must_use]
    pub fn has_http2_directive(&self) -> bool {
        self.has(Module::HttpV2) && self.version >= (1, 25, 1)
    }

    /// Whether idle client connections outlive a reload for a moment (NGINX docs: `keepalive_min_timeout`, 1.27.4).
    #[must_use]
    pub fn has_keepalive_min_timeout(&self) -> bool {
        self.version >= (1, 27, 4)
    }

    /// Whether responses can be pushed (NGINX docs: `http2_push_preload`, gone with 1.25.1).
    #[must_use]
    pub fn has_http2_push(&self) -> bool {
        self.has(Module::HttpV2) && self.version < (1, 25, 1)
    }

    /// Whether connections are closed after some time whatever happens on them (NGINX docs: `keepalive_time`, 1.19.10).
    #[must_use]
    pub fn has_keepalive_time(&self) -> bool {
        self.version >= (1, 19, 10)
    }
}

impl Signs {
    fn is_built_in_by(&self, argument: &str) -> bool {
        if self.flag == Some(argument) {
            return true;
        }
        let added = argument.strip_prefix("--add-module=");
        added.zip(self.directory).is_some_and(|(path, directory)| {
            let name = path
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or_default();
            // `ngx_stream_lua-` and `stream-lua-nginx-module` hold the names of their HTTP siblings.
            let stream = name.contains("stream");
            name.contains(directory) && stream == directory.contains("stream")
        })
    }
}

/// `nginx version: nginx/1.22.1`, `nginx version: openresty/1.25.3.1`.
fn version(text: &str) -> (bool, (u32, u32, u32)) {
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix("nginx version: "));
    let (name, version) = found
        .and_then(|found| found.split_once('/'))
        .unwrap_or_default();
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|number| number.parse().ok());
    let mut next = || numbers.next().unwrap_or(0);
    (name == "openresty", (next(), next(), next()))
}

/// The arguments of `configure`. Values with spaces are quoted; none of those matters here.
fn configure_arguments(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("configure arguments:"))
        .flat_map(str::split_ascii_whitespace)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.9\nTLS SNI support enabled\n\
        configure arguments: --with-cc-opt='-g -O2 -fPIC' --prefix=/usr/share/nginx --modules-path=/usr/lib/nginx/modules \
        --with-threads --with-http_v2_module --with-http_realip_module --with-stream=dynamic \
        --with-stream_ssl_preread_module";

    #[test]
    fn debian() {
        let nginx = Capabilities::parse(
            DEBIAN,
            [
                "ndk_http_module.so",
                "ngx_http_lua_module.so",
                "ngx_stream_module.so",
                "ngx_stream_js_module.so",
                "x.so",
            ],
        );
        assert_eq!(nginx.version(), (1, 22, 1));
        assert!(!nginx.is_openresty());
        assert_eq!(
            nginx.load_path(Module::Lua),
            Some("/usr/lib/nginx/modules/ngx_http_lua_module.so")
        );
        assert_eq!(
            nginx.load_path(Module::Stream),
            Some("/usr/lib/nginx/modules/ngx_stream_module.so")
        );
        assert!(
            nginx.has(Module::StreamJs) && nginx.has(Module::Ndk) && nginx.has(Module::Threads)
        );
        assert!(nginx.has(Module::HttpV2) && nginx.has(Module::StreamSslPreread));
        assert_eq!(nginx.load_path(Module::HttpV2), None);
        assert!(
            !nginx.has(Module::HeadersMore)
                && !nginx.has(Module::HttpV3)
                && !nginx.has(Module::StreamLua)
        );
        assert!(!nginx.has_http2_directive() && !nginx.has_keepalive_min_timeout());
        let modules = [
            Module::Ndk,
            Module::Lua,
            Module::HttpV2,
            Module::RealIp,
            Module::Threads,
            Module::Stream,
            Module::StreamSslPreread,
            Module::StreamJs,
        ];
        assert!(nginx.modules().eq(modules));
    }

    #[test]
    fn openresty() {
        let text = "nginx version: openresty/1.27.1.2\nconfigure arguments: --prefix=/usr/local/openresty/nginx \
            --add-module=../ngx_devel_kit-0.3.3 --add-module=../set-misc-nginx-module-0.33 \
            --add-module=../headers-more-nginx-module-0.37 --add-module=../ngx_lua-0.10.28 \
            --add-module=../ngx_stream_lua-0.0.16 --with-stream --with-http_v2_module --with-http_v3_module";
        let nginx = Capabilities::parse(text, []);
        assert_eq!(nginx.version(), (1, 27, 1));
        assert!(nginx.is_openresty());
        for module in [
            Module::Ndk,
            Module::Lua,
            Module::HeadersMore,
            Module::StreamLua,
            Module::Stream,
            Module::HttpV3,
        ] {
            assert!(nginx.has(module), "{module:?}");
            assert_eq!(nginx.load_path(module), None);
        }
        assert!(!nginx.has(Module::StreamJs));
        assert!(nginx.has_http2_directive());
        assert_eq!(
            Capabilities::modules_path(text).as_deref(),
            Some("/usr/local/openresty/nginx/modules")
        );
    }

    #[test]
    fn a_stream_module_alone_is_no_http_module() {
        let text = "nginx version: nginx/1.28.0\nconfigure arguments: --add-module=/src/stream-lua-nginx-module";
        let nginx = Capabilities::parse(text, ["ngx_http_lua_module.so"]);
        assert!(nginx.has(Module::StreamLua));
        assert!(
            !nginx.has(Module::Lua),
            "no modules path is known to load it from"
        );
    }

    #[test]
    fn nonsense_can_nothing() {
        assert_eq!(Capabilities::parse("", []), Capabilities::default());
        assert_eq!(
            Capabilities::parse("nginx version: x", []).version(),
            (0, 0, 0)
        );
    }
}
