//! Which directives and variables there are, and where directives may stand.

use std::{collections::HashMap, fmt, sync::Arc};

use super::{
    commands::{Command, Slot},
    program, variables,
    words::{Block, Statement},
};

/// Directives that stand outside of servers only (NGINX docs, "Context" of each directive).
const OUTSIDE_SERVERS: &[&str] = &[
    "daemon",
    "env",
    "events",
    "geo",
    "http",
    "limit_conn_zone",
    "limit_req_zone",
    "load_module",
    "log_format",
    "lua_shared_dict",
    "map",
    "master_process",
    "pid",
    "proxy_cache_path",
    "resolver_hash",
    "server",
    "split_clients",
    "stream",
    "upstream",
    "user",
    "worker_connections",
    "worker_processes",
    "worker_rlimit_nofile",
];

/// Directives that stand in servers, and not in their locations.
const SERVERS_ONLY: &[&str] = &[
    "listen",
    "server_name",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_ciphers",
    "ssl_client_certificate",
    "ssl_protocols",
    "ssl_verify_client",
];

/// Directives that stand in locations, and not in servers.
const LOCATIONS_ONLY: &[&str] = &[
    "alias",
    "fastcgi_pass",
    "grpc_pass",
    "internal",
    "limit_except",
    "memcached_pass",
    "proxy_pass",
    "scgi_pass",
    "uwsgi_pass",
];

/// The directives and variables that an NGINX knows: their names stand in its program and modules. As long as nothing is
/// known, by default, anything may be one.
#[derive(Clone, Default)]
pub struct Directives {
    /// Names, each with a line break behind it. A name may be the end of a longer one: linkers merge them.
    names: Arc<str>,
    /// What is known of directives from the tables of the program and its modules.
    commands: Arc<HashMap<String, Vec<Command>>>,
    /// Whether these tables name all directives: each of the programs has one.
    is_complete: bool,
    /// Whether variables are those that documentation tells of.
    is_documented: bool,
}

impl Directives {
    /// The longest name that is looked for.
    const LONGEST: usize = 64;

    /// Reads names from the files of NGINX's program and its modules.
    ///
    /// ```
    /// use nginx_render::syntax::Directives;
    ///
    /// let known = Directives::of_programs([b"\x7fELF\0proxy_pass\0%s:%d\0".as_slice()]);
    /// assert!(known.has("proxy_pass"));
    /// assert!(!known.has("proxy_past"));
    /// ```
    #[must_use]
    pub fn of_programs<'a>(programs: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut names = String::new();
        let mut commands: HashMap<String, Vec<Command>> = HashMap::new();
        let mut is_complete = true;
        for (number, program) in programs.into_iter().enumerate() {
            let own = program::commands(program, number);
            is_complete &= !own.is_empty();
            for (name, command) in own {
                commands.entry(name).or_default().push(command);
            }
            for text in program.split(|byte| *byte == 0) {
                let is_name =
                    |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
                let from = text.iter().rposition(|byte| !is_name(byte));
                let name = text.get(from.map_or(0, |at| at + 1)..).unwrap_or_default();
                if (2..=Self::LONGEST).contains(&name.len()) {
                    names.push_str(&String::from_utf8_lossy(name));
                    names.push('\n');
                }
            }
        }
        Self {
            names: names.into(),
            is_complete: is_complete && commands.contains_key("proxy_pass"),
            commands: Arc::new(commands),
            is_documented: false,
        }
    }

    /// Those of an NGINX whose program is not at hand: any directive, and the variables that documentation tells of.
    #[must_use]
    pub fn documented() -> Self {
        Self {
            is_documented: true,
            ..Self::default()
        }
    }

    /// Whether there is a directive of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        if self.is_complete {
            return self.commands.contains_key(name);
        }
        self.contains(name) || !self.is_read()
    }

    /// Whether there is a variable of that name, in lower case, without anything that defines it.
    ///
    /// ```
    /// use nginx_render::syntax::Directives;
    ///
    /// let known = Directives::documented();
    /// assert!(known.has_variable("remote_addr"));
    /// assert!(known.has_variable("http_x_any_header"));
    /// assert!(!known.has_variable("remote_adr"));
    /// assert!(Directives::default().has_variable("remote_adr"));
    /// ```
    #[must_use]
    pub fn has_variable(&self, name: &str) -> bool {
        if variables::is_of_family(name) {
            return true;
        }
        if self.is_read() {
            return self.contains(name);
        }
        !self.is_documented || variables::is_documented(name)
    }

    /// Whether the names are those of a program. It may be a script that calls NGINX.
    fn is_read(&self) -> bool {
        self.contains("proxy_pass")
    }

    fn contains(&self, name: &str) -> bool {
        self.names.contains(&format!("{name}\n"))
    }

    /// What is wrong with a directive where it stands, as it is written. Lower case, no full stop.
    pub(super) fn fault(&self, statement: &Statement) -> Option<String> {
        let (name, block) = (statement.name(), statement.block);
        if matches!(block, Block::Map | Block::Free) {
            return None;
        }
        let is_misplaced = if self.commands.contains_key(name) {
            block != Block::Other && self.command(statement).is_none()
        } else if matches!(block, Block::Server | Block::ServerIf) {
            OUTSIDE_SERVERS.contains(&name) || LOCATIONS_ONLY.contains(&name)
        } else if matches!(
            block,
            Block::Location | Block::LocationIf | Block::LimitExcept
        ) {
            OUTSIDE_SERVERS.contains(&name) || SERVERS_ONLY.contains(&name)
        } else {
            false
        };
        if is_misplaced {
            return Some(format!("directive \"{name}\" may not stand here"));
        }
        if !self.has(name) {
            return Some(format!("unknown directive \"{name}\""));
        }
        self.command(statement)?.fault(statement)
    }

    /// What a directive sets, if it may do so once in a block only.
    pub(super) fn slot(&self, statement: &Statement) -> Option<Slot> {
        self.command(statement)?.slot
    }

    /// What is known of a directive where it stands. Nothing, where nobody knows what may stand there.
    fn command(&self, statement: &Statement) -> Option<&Command> {
        if matches!(statement.block, Block::Map | Block::Free | Block::Other) {
            return None;
        }
        let mut commands = self.commands.get(statement.name())?.iter();
        commands.find(|command| command.may_stand_in(statement.block))
    }
}

impl fmt::Debug for Directives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directives").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_at_the_end_of_others() {
        let known =
            Directives::of_programs([b"\0autoindex\0".as_slice(), b"proxy_pass\0 limit_rate\0A\0"]);
        for name in ["index", "autoindex", "proxy_pass", "limit_rate"] {
            assert!(known.has(name), "{name}");
        }
        for name in ["auto", "indexes", "limit", "a"] {
            assert!(!known.has(name), "{name}");
        }
        assert!(Directives::default().has("anything"));
    }
}
