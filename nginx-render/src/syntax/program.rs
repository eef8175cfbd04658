//! The tables of directives in NGINX's program and its modules, as its linker has laid them out.
//!
//! A module is a structure that names its kind and a table of commands; a command has a name, bits for where it may stand
//! and how many arguments it takes, and the function that reads these (NGINX development guide, "Adding new modules").
//! Programs of 64 bits in ELF, low byte first, are understood: all that containers run.

use std::collections::HashMap;

use object::{
    LittleEndian, Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, Relocation,
    RelocationTarget, SegmentFlags, elf::PF_W, read::elf::ElfFile64,
};

use super::commands::{Command, Kind, Slot, Value};

/// Bytes of a command: the length of its name, the name, bits, the function, and three words for it.
const COMMAND: u64 = 56;

/// More commands than any module has.
const MOST_COMMANDS: u64 = 1_000;

/// More words than any directive lets choose from.
const MOST_CHOICES: u64 = 200;

/// What the signature of a module starts with: the size of pointers, numbers and times.
const SIGNATURE: &[u8] = b"8,4,8,";

/// The commands of all modules in a program; empty for what is none. Slots of several programs are told apart by its
/// number.
pub(super) fn commands(bytes: &[u8], number: usize) -> Vec<(String, Command)> {
    ElfFile64::parse(bytes)
        .map(|file| Program::of(&file).commands(number))
        .unwrap_or_default()
}

/// A program as it is in memory once it runs.
struct Program<'a> {
    segments: Vec<Segment<'a>>,
    /// What the loader writes, by where.
    relocated: HashMap<u64, Word<'a>>,
    /// Functions that others may call, by where they are.
    functions: HashMap<u64, &'a str>,
}

struct Segment<'a> {
    address: u64,
    bytes: &'a [u8],
    writable: bool,
}

/// A word that the loader writes.
#[derive(Clone, Copy)]
struct Word<'a> {
    value: u64,
    /// What it is the address of, if that is in another program.
    symbol: Option<&'a str>,
}

impl<'a> Program<'a> {
    fn of(file: &ElfFile64<'a, LittleEndian>) -> Self {
        let segments = file.segments().filter_map(|segment| {
            let SegmentFlags::Elf { p_flags } = segment.flags() else {
                return None;
            };
            Some(Segment {
                address: segment.address(),
                bytes: segment.data().ok()?,
                writable: p_flags & PF_W != 0,
            })
        });
        let functions = file
            .dynamic_symbols()
            .filter(ObjectSymbol::is_definition)
            .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?)));
        let relocated = file
            .dynamic_relocations()
            .into_iter()
            .flatten()
            .filter_map(|(place, relocation)| Some((place, Word::of(file, &relocation)?)));
        Self {
            segments: segments.collect(),
            functions: functions.collect(),
            relocated: relocated.collect(),
        }
    }

    fn bytes(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        self.segments.iter().find_map(|segment| {
            let from = usize::try_from(address.checked_sub(segment.address)?).ok()?;
            let to = from.checked_add(usize::try_from(length).ok()?)?;
            segment.bytes.get(from..to)
        })
    }

    /// The word so many bytes behind an address.
    fn word(&self, address: u64, behind: u64) -> Option<Word<'a>> {
        let address = address.checked_add(behind)?;
        if let Some(word) = self.relocated.get(&address) {
            return Some(*word);
        }
        let bytes = self.bytes(address, 8)?.try_into().ok()?;
        Some(Word {
            value: u64::from_le_bytes(bytes),
            symbol: None,
        })
    }

    fn value(&self, address: u64, behind: u64) -> Option<u64> {
        self.word(address, behind).map(|word| word.value)
    }

    /// A text of NGINX: its length, and where it is.
    fn text(&self, address: u64) -> Option<&'a str> {
        let length = self.value(address, 0)?;
        if length > 128 {
            return None;
        }
        let bytes = self.bytes(self.value(address, 8)?, length)?;
        std::str::from_utf8(bytes).ok()
    }

    fn commands(&self, program: usize) -> Vec<(String, Command)> {
        let mut found = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.writable) {
            for (index, word) in (0_u64..).zip(segment.bytes.chunks_exact(8)) {
                let Some((kind, address)) =
                    Kind::of(word).zip(segment.address.checked_add(8 * index))
                else {
                    continue;
                };
                if let Some(table) = self.table(address) {
                    found.extend(self.commands_at(table, kind, program));
                }
            }
        }
        found
    }

    /// The commands of the module that has its kind at this address.
    fn table(&self, kind_at: u64) -> Option<u64> {
        let signature = self.value(kind_at.checked_sub(24)?, 0)?;
        let signature = self.bytes(signature, SIGNATURE.len() as u64)?;
        let table = self.value(kind_at.checked_sub(8)?, 0)?;
        (signature == SIGNATURE && table != 0).then_some(table)
    }

    fn commands_at(&self, table: u64, kind: Kind, program: usize) -> Vec<(String, Command)> {
        let commands = (0..MOST_COMMANDS).map_while(move |index| {
            let at = table.checked_add(index * COMMAND)?;
            let name = self.text(at).filter(|name| !name.is_empty())?;
            let forms = self.value(at, 16)?;
            let reader = self.word(at, 24)?;
            let reader = reader
                .symbol
                .or_else(|| self.functions.get(&reader.value).copied())
                .unwrap_or_default();
            let (conf, offset) = (self.value(at, 32)?, self.value(at, 40)?);
            let command = Command {
                kind,
                forms,
                value: Value::of(reader, || self.choices(at)),
                slot: Slot::of(name, reader, (program, table, conf, offset)),
            };
            Some((name.to_owned(), command))
        });
        commands.collect()
    }

    /// The words that a command lets choose from.
    fn choices(&self, command: u64) -> Vec<String> {
        let Some(table) = self.value(command, 48).filter(|table| *table != 0) else {
            return Vec::new();
        };
        let choices = (0..MOST_CHOICES).map_while(|index| {
            let name = self.text(table.checked_add(index * 24)?)?;
            (!name.is_empty()).then(|| name.to_owned())
        });
        choices.collect()
    }
}

impl<'a> Word<'a> {
    /// What the loader writes for a relocation.
    fn of(file: &ElfFile64<'a, LittleEndian>, relocation: &Relocation) -> Option<Self> {
        let addend = relocation.addend().cast_unsigned();
        let RelocationTarget::Symbol(index) = relocation.target() else {
            return Some(Self {
                value: addend,
                symbol: None,
            });
        };
        let symbol = file.dynamic_symbol_table()?.symbol_by_index(index).ok()?;
        Some(Self {
            value: symbol.address().wrapping_add(addend),
            symbol: Some(symbol.name().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The NGINX that tests run with.
    fn nginx() -> Vec<u8> {
        std::fs::read("/usr/sbin/nginx").unwrap()
    }

    #[test]
    fn what_is_no_program_has_no_commands() {
        assert!(commands(b"", 0).is_empty());
        assert!(commands(b"#!/bin/sh\nexec nginx\n", 0).is_empty());
        let nginx = nginx();
        for length in [7, 64, 100, 1_000, 100_000] {
            // A program that is cut off is none, or has fewer.
            let _fewer = commands(&nginx[..length], 0);
        }
        let mut broken = nginx;
        for place in (64..2_000).step_by(3) {
            broken[place] = 0xff;
        }
        let _fewer = commands(&broken, 0);
    }

    #[test]
    fn commands_are_read_with_their_kinds_of_values() {
        let all = commands(&nginx(), 0);
        let of = |name: &str| {
            let mut found = all.iter().filter(|(known, _)| known == name);
            found.next().map(|(_, command)| command.value.clone())
        };
        assert!(all.len() > 400, "{}", all.len());
        assert_eq!(of("gzip"), Some(Value::Flag));
        assert_eq!(of("proxy_read_timeout"), Some(Value::Milliseconds));
        assert_eq!(of("proxy_buffers"), Some(Value::Buffers));
        assert_eq!(of("client_header_buffer_size"), Some(Value::Size));
        assert_eq!(of("client_max_body_size"), Some(Value::Offset));
        let Some(Value::OneOf(words)) = of("satisfy") else {
            panic!("{:?}", of("satisfy"));
        };
        assert_eq!(words, ["all", "any"]);
        assert_eq!(of("return"), Some(Value::Any));
    }
}
