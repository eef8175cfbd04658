//! How answers look, and how they are written.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;

use super::{CommandError, table::printable_lines};

/// How the answer looks, out of the ways that a subcommand knows; "table" is one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct OutputArgs<T = Output>
where
    T: ValueEnum + Send + Sync + 'static,
{
    /// How the answer looks
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    pub output: T,
}

/// How an answer looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// One JSON value, for tools.
    Json,
}

impl Output {
    /// Writes an answer: as the text that is made of it, or as JSON.
    pub(super) fn write<T: Serialize>(
        self,
        to: &mut dyn Write,
        answer: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), CommandError> {
        match self {
            Self::Table => write(to, &text(answer)),
            Self::Json => write(to, &json(answer)?),
        }
    }
}

/// An answer as JSON, ending in a line break.
pub(super) fn json(answer: &impl Serialize) -> Result<String, CommandError> {
    let json = serde_json::to_string_pretty(answer);
    let json = json.map_err(|source| CommandError::Write {
        source: source.into(),
    })?;
    Ok(json + "\n")
}

/// Writes a text that is not ours, as files have it; what would do something to a terminal is replaced there.
pub(super) fn write_shown(to: &mut dyn Write, text: &str) -> Result<(), CommandError> {
    if io::stdout().is_terminal() {
        write(to, &printable_lines(text))
    } else {
        write(to, text)
    }
}

/// Writes a text.
pub(super) fn write(to: &mut dyn Write, text: &str) -> Result<(), CommandError> {
    let written = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    match written {
        // Who stops reading has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| CommandError::Write { source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed(io::ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _text: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_has_read_enough_is_not_an_error() {
        assert!(write(&mut Closed(io::ErrorKind::BrokenPipe), "x").is_ok());
        let error = write(&mut Closed(io::ErrorKind::StorageFull), "x").unwrap_err();
        assert!(matches!(error, CommandError::Write { .. }), "{error}");
    }
}
