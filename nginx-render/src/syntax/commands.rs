//! Where a directive may stand, how many arguments it takes, and which values.

use super::{
    values::{self, Time},
    words::{Block, Statement},
};

/// How many words a directive may have (NGINX: `NGX_CONF_MAX_ARGS`).
const MOST_WORDS: usize = 8;

/// A directive of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Which modules' blocks it is for.
    pub(super) kind: Kind,
    /// Where it may stand and what it takes, as bits.
    pub(super) forms: u64,
    /// What its arguments are.
    pub(super) value: Value,
    /// What it sets, if it may do so once in a block only.
    pub(super) slot: Option<Slot>,
}

/// What a module is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// NGINX itself.
    Core,
    /// The reader of configurations: everywhere.
    Conf,
    /// `events`.
    Events,
    /// `http`.
    Http,
    /// `stream`.
    Stream,
    /// `mail`.
    Mail,
}

/// What the arguments of a directive are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing is known.
    #[default]
    Any,
    Flag,
    Number,
    Size,
    /// A size that may be larger.
    Offset,
    Milliseconds,
    Seconds,
    /// A number and a size.
    Buffers,
    OneOf(Vec<String>),
    /// Each argument is one of these.
    SomeOf(Vec<String>),
}

/// Something that may be set once in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    /// By its place in the memory of a module.
    At(usize, u64, u64, u64),
    /// By a name of ours.
    Named(&'static str),
}

/// Bits of [`Command::forms`] (NGINX development guide, "Configuration directives").
mod forms {
    pub(super) const BLOCK: u64 = 0x100;
    pub(super) const FLAG: u64 = 0x200;
    pub(super) const ANY: u64 = 0x400;
    pub(super) const ONE_OR_MORE: u64 = 0x800;
    pub(super) const TWO_OR_MORE: u64 = 0x1000;
}

/// Directives that read their arguments themselves and refuse to do so twice, with what they set.
const ONCE: &[(&str, &str)] = &[
    ("alias", "root"),
    ("auth_request", "auth_request"),
    ("expires", "expires"),
    ("fastcgi_pass", "fastcgi_pass"),
    ("grpc_pass", "grpc_pass"),
    ("memcached_pass", "memcached_pass"),
    ("proxy_cache", "proxy_cache"),
    ("proxy_pass", "proxy_pass"),
    ("proxy_store", "proxy_store"),
    ("root", "root"),
    ("scgi_pass", "scgi_pass"),
    ("try_files", "try_files"),
    ("uwsgi_pass", "uwsgi_pass"),
];

/// Functions that read a value and refuse to do so twice.
const READ_ONCE: &[&str] = &[
    "ngx_conf_set_access_slot",
    "ngx_conf_set_bufs_slot",
    "ngx_conf_set_enum_slot",
    "ngx_conf_set_flag_slot",
    "ngx_conf_set_msec_slot",
    "ngx_conf_set_num_slot",
    "ngx_conf_set_off_slot",
    "ngx_conf_set_path_slot",
    "ngx_conf_set_sec_slot",
    "ngx_conf_set_size_slot",
    "ngx_conf_set_str_slot",
    "ngx_http_set_complex_value_slot",
    "ngx_http_upstream_bind_set_slot",
];

impl Kind {
    /// The kind by the word that modules have for it.
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        match word {
            b"CORE\0\0\0\0" => Some(Self::Core),
            b"CONF\0\0\0\0" => Some(Self::Conf),
            b"EVNT\0\0\0\0" => Some(Self::Events),
            b"HTTP\0\0\0\0" => Some(Self::Http),
            b"STRM\0\0\0\0" => Some(Self::Stream),
            b"MAIL\0\0\0\0" => Some(Self::Mail),
            _ => None,
        }
    }
}

impl Value {
    /// What a function of NGINX reads. Words to choose from are asked for where it lets choose.
    pub(super) fn of(function: &str, choices: impl FnOnce() -> Vec<String>) -> Self {
        match function {
            "ngx_conf_set_flag_slot" => Self::Flag,
            "ngx_conf_set_num_slot" => Self::Number,
            "ngx_conf_set_size_slot" => Self::Size,
            "ngx_conf_set_off_slot" => Self::Offset,
            "ngx_conf_set_msec_slot" => Self::Milliseconds,
            "ngx_conf_set_sec_slot" => Self::Seconds,
            "ngx_conf_set_bufs_slot" => Self::Buffers,
            "ngx_conf_set_enum_slot" => Self::OneOf(choices()),
            "ngx_conf_set_bitmask_slot" => Self::SomeOf(choices()),
            _ => Self::Any,
        }
    }

    /// What is wrong with arguments. Lower case, no full stop.
    fn fault(&self, name: &str, arguments: &[String]) -> Option<String> {
        let first = arguments.first().map(String::as_str)?;
        match self {
            Self::Any => None,
            Self::Flag => {
                let is_flag = ["on", "off"]
                    .iter()
                    .any(|it| it.eq_ignore_ascii_case(first));
                (!is_flag).then(|| {
                    format!(
                        "invalid value \"{first}\" in \"{name}\" directive, it must be \"on\" or \"off\""
                    )
                })
            }
            Self::Number => (!values::is_number(first))
                .then(|| format!("invalid number \"{first}\" in \"{name}\" directive")),
            Self::Size | Self::Offset => {
                let large = matches!(self, Self::Offset);
                (!values::is_size(first, large)).then(|| size_fault(name, first))
            }
            Self::Milliseconds | Self::Seconds => {
                let time = if matches!(self, Self::Seconds) {
                    Time::Seconds
                } else {
                    Time::Milliseconds
                };
                (!values::is_time(first, time)).then(|| {
                    format!(
                        "invalid value \"{first}\" in \"{name}\" directive, it must be a time such as 30s or 5m"
                    )
                })
            }
            Self::Buffers => {
                let size = arguments.get(1).map(String::as_str)?;
                if !values::is_number(first) || first.bytes().all(|byte| byte == b'0') {
                    return Some(format!(
                        "invalid value \"{first}\" in \"{name}\" directive, it must be a number of buffers"
                    ));
                }
                (!values::is_size(size, false)).then(|| size_fault(name, size))
            }
            Self::OneOf(words) => choice_fault(name, first, words),
            Self::SomeOf(words) => arguments
                .iter()
                .find_map(|argument| choice_fault(name, argument, words)),
        }
    }
}

impl Slot {
    /// What a directive sets, if it may do so once only.
    pub(super) fn of(
        name: &str,
        function: &str,
        (program, table, conf, offset): (usize, u64, u64, u64),
    ) -> Option<Self> {
        let named = ONCE.iter().find(|(known, _)| *known == name);
        if let Some((_, slot)) = named {
            return Some(Self::Named(slot));
        }
        let once = READ_ONCE.contains(&function);
        once.then_some(Self::At(program, table, conf, offset))
    }
}

impl Command {
    /// Whether it may stand in a block.
    pub(super) fn may_stand_in(&self, block: Block) -> bool {
        self.kind == Kind::Conf
            || place(block).is_none_or(|(kind, bit)| self.kind == kind && self.forms & bit != 0)
    }

    /// What is wrong with a directive as it is written. Lower case, no full stop.
    pub(super) fn fault(&self, statement: &Statement) -> Option<String> {
        let name = statement.name();
        let is_block = self.forms & forms::BLOCK != 0;
        if is_block && !statement.opens {
            return Some(format!("directive \"{name}\" has no opening \"{{\""));
        }
        if !is_block && statement.opens {
            return Some(format!("directive \"{name}\" is not terminated by \";\""));
        }
        let arguments = statement.words.get(1..).unwrap_or_default();
        if !self.takes(arguments.len()) {
            return Some(format!(
                "invalid number of arguments in \"{name}\" directive: it takes {}, and has {}",
                self.numbers(),
                arguments.len(),
            ));
        }
        self.value.fault(name, arguments)
    }

    /// Whether it takes so many arguments.
    fn takes(&self, arguments: usize) -> bool {
        if self.forms & forms::ANY != 0 {
            true
        } else if self.forms & forms::FLAG != 0 {
            arguments == 1
        } else if self.forms & forms::ONE_OR_MORE != 0 {
            arguments >= 1
        } else if self.forms & forms::TWO_OR_MORE != 0 {
            arguments >= 2
        } else {
            arguments < MOST_WORDS && self.forms & (1 << arguments) != 0
        }
    }

    /// How many arguments it takes, in words.
    fn numbers(&self) -> String {
        if self.forms & forms::ONE_OR_MORE != 0 {
            return "one or more".to_owned();
        }
        if self.forms & forms::TWO_OR_MORE != 0 {
            return "two or more".to_owned();
        }
        let numbers = (0..MOST_WORDS).filter(|number| self.takes(*number));
        let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
        match numbers.as_slice() {
            [] => "none".to_owned(),
            [one] if one == "0" => "none".to_owned(),
            [some @ .., last] if !some.is_empty() => format!("{} or {last}", some.join(", ")),
            some => some.join(", "),
        }
    }
}

/// Whose directives may stand in a block, and the bit that those have which may. `None` where nobody knows.
fn place(block: Block) -> Option<(Kind, u64)> {
    Some(match block {
        Block::Main => (Kind::Core, 0x0100_0000),
        Block::Events => (Kind::Events, 0x0200_0000),
        Block::Http => (Kind::Http, 0x0200_0000),
        Block::Server => (Kind::Http, 0x0400_0000),
        Block::Location => (Kind::Http, 0x0800_0000),
        Block::Upstream => (Kind::Http, 0x1000_0000),
        Block::ServerIf => (Kind::Http, 0x2000_0000),
        Block::LocationIf => (Kind::Http, 0x4000_0000),
        Block::LimitExcept => (Kind::Http, 0x8000_0000),
        Block::Stream => (Kind::Stream, 0x0200_0000),
        Block::StreamServer => (Kind::Stream, 0x0400_0000),
        Block::StreamUpstream => (Kind::Stream, 0x0800_0000),
        Block::Map | Block::Free | Block::Other => return None,
    })
}

fn size_fault(name: &str, value: &str) -> String {
    format!(
        "invalid value \"{value}\" in \"{name}\" directive, it must be a size such as 8k or 10m"
    )
}

fn choice_fault(name: &str, value: &str, words: &[String]) -> Option<String> {
    let is_one = words.iter().any(|word| word.eq_ignore_ascii_case(value));
    // Words that could not be read may be any.
    (!is_one && !words.is_empty()).then(|| {
        format!(
            "invalid value \"{value}\" in \"{name}\" directive, it must be {}",
            words.join(" or ")
        )
    })
}
