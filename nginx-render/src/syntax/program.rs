//! The tables of directives in NGINX's program and its modules, as its linker has laid them out.
//!
//! A module is a structure that names its kind and a table of commands; a command has a name, bits for where it may stand
//! and how many arguments it takes, and the function that reads these (NGINX development guide, "Adding new modules").
//! Programs of 64 bits in ELF, low byte first, are understood: all that containers run.

use std::collections::HashMap;

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
    Program::read(bytes)
        .map(|program| program.commands(number))
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

/// Places of tables that the loader needs (System V ABI, "Dynamic Section").
#[derive(Default)]
struct Tables {
    relocations: u64,
    relocations_size: u64,
    symbols: u64,
    strings: u64,
    strings_size: u64,
}

impl<'a> Program<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        const LOAD: u32 = 1;
        const DYNAMIC: u32 = 2;
        const WRITABLE: u32 = 2;

        // ELF, 64 bits, low byte first.
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (table, size, count) = (
            number(bytes, 32)?,
            u64::from(half(bytes, 54)?),
            u64::from(half(bytes, 56)?),
        );
        let mut program = Self {
            segments: Vec::new(),
            relocated: HashMap::new(),
            functions: HashMap::new(),
        };
        let mut dynamic = None;
        for index in 0..count {
            let header = part(bytes, table.checked_add(index * size)?, 56)?;
            let (kind, flags) = (word(header, 0)?, word(header, 4)?);
            let (offset, address) = (number(header, 8)?, number(header, 16)?);
            let content = part(bytes, offset, number(header, 32)?)?;
            match kind {
                LOAD => program.segments.push(Segment {
                    address,
                    bytes: content,
                    writable: flags & WRITABLE != 0,
                }),
                DYNAMIC => dynamic = Some(content),
                _ => {}
            }
        }
        if let Some(dynamic) = dynamic {
            program.link(&Tables::read(dynamic));
        }
        Some(program)
    }

    /// Takes in what the loader would write.
    fn link(&mut self, tables: &Tables) {
        let mut functions = HashMap::new();
        // The table of names follows that of symbols; nothing else tells how many there are.
        for index in 1..tables.strings.saturating_sub(tables.symbols) / 24 {
            let Some((name, address)) = self.symbol(tables, index) else {
                continue;
            };
            if address != 0 {
                functions.insert(address, name);
            }
        }
        let mut relocated = HashMap::new();
        for index in 0..tables.relocations_size / 24 {
            let Some(entry) = self.bytes(tables.relocations.saturating_add(index * 24), 24) else {
                break;
            };
            let (Some(place), Some(info), Some(addend)) =
                (number(entry, 0), number(entry, 8), number(entry, 16))
            else {
                break;
            };
            let symbol = match info >> 32 {
                0 => None,
                index => self.symbol(tables, index),
            };
            let value = symbol.map_or(0, |(_, address)| address);
            let word = Word {
                value: value.wrapping_add(addend),
                symbol: symbol.map(|(name, _)| name),
            };
            relocated.insert(place, word);
        }
        self.functions = functions;
        self.relocated = relocated;
    }

    fn symbol(&self, tables: &Tables, index: u64) -> Option<(&'a str, u64)> {
        let entry = self.bytes(tables.symbols.checked_add(index.checked_mul(24)?)?, 24)?;
        let at = u64::from(word(entry, 0)?);
        let names = self.bytes(tables.strings, tables.strings_size)?;
        let name = names.get(usize::try_from(at).ok()?..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        let name = std::str::from_utf8(name.get(..end)?).ok()?;
        Some((name, number(entry, 8)?))
    }

    fn bytes(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        self.segments.iter().find_map(|segment| {
            let offset = address.checked_sub(segment.address)?;
            part(segment.bytes, offset, length)
        })
    }

    /// The word at an address.
    fn word(&self, address: u64) -> Option<Word<'a>> {
        if let Some(word) = self.relocated.get(&address) {
            return Some(*word);
        }
        let value = number(self.bytes(address, 8)?, 0)?;
        Some(Word {
            value,
            symbol: None,
        })
    }

    fn value(&self, address: u64) -> Option<u64> {
        self.word(address).map(|word| word.value)
    }

    /// A text of NGINX: its length, and where it is.
    fn text(&self, address: u64) -> Option<&'a str> {
        let length = self.value(address)?;
        if length > 128 {
            return None;
        }
        let bytes = self.bytes(self.value(address.checked_add(8)?)?, length)?;
        std::str::from_utf8(bytes).ok()
    }

    fn commands(&self, program: usize) -> Vec<(String, Command)> {
        let mut found = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.writable) {
            for offset in (0..segment.bytes.len().saturating_sub(7)).step_by(8) {
                let kind = segment.bytes.get(offset..offset + 8).and_then(Kind::of);
                let Some((kind, address)) = kind.zip(segment.address.checked_add(offset as u64))
                else {
                    continue;
                };
                let Some(table) = self.table(address) else {
                    continue;
                };
                found.extend(self.commands_at(table, kind, program));
            }
        }
        found
    }

    /// The commands of the module that has its kind at this address.
    fn table(&self, kind_at: u64) -> Option<u64> {
        let signature = self.value(kind_at.checked_sub(24)?)?;
        let signature = self.bytes(signature, SIGNATURE.len() as u64)?;
        let table = self.value(kind_at.checked_sub(8)?)?;
        (signature == SIGNATURE && table != 0).then_some(table)
    }

    fn commands_at(&self, table: u64, kind: Kind, program: usize) -> Vec<(String, Command)> {
        let commands = (0..MOST_COMMANDS).map_while(move |index| {
            let at = table.checked_add(index * COMMAND)?;
            let name = self.text(at).filter(|name| !name.is_empty())?;
            let forms = self.value(at + 16)?;
            let reader = self.word(at + 24)?;
            let reader = reader
                .symbol
                .or_else(|| self.functions.get(&reader.value).copied());
            let (conf, offset) = (self.value(at + 32)?, self.value(at + 40)?);
            let value = Value::of(reader.unwrap_or_default(), || self.choices(at + 48));
            let slot = Slot::of(
                name,
                reader.unwrap_or_default(),
                (program, table, conf, offset),
            );
            let command = Command {
                kind,
                forms,
                value,
                slot,
            };
            Some((name.to_owned(), command))
        });
        commands.collect()
    }

    /// The words that a command lets choose from.
    fn choices(&self, pointer_at: u64) -> Vec<String> {
        let Some(table) = self.value(pointer_at).filter(|table| *table != 0) else {
            return Vec::new();
        };
        let choices = (0..MOST_CHOICES).map_while(|index| {
            let name = self.text(table.checked_add(index * 24)?)?;
            (!name.is_empty()).then(|| name.to_owned())
        });
        choices.collect()
    }
}

impl Tables {
    fn read(dynamic: &[u8]) -> Self {
        let mut tables = Self::default();
        for entry in dynamic.chunks_exact(16) {
            let (Some(tag), Some(value)) = (number(entry, 0), number(entry, 8)) else {
                break;
            };
            match tag {
                0 => break,
                5 => tables.strings = value,
                6 => tables.symbols = value,
                7 => tables.relocations = value,
                8 => tables.relocations_size = value,
                10 => tables.strings_size = value,
                _ => {}
            }
        }
        tables
    }
}

fn part(bytes: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let from = usize::try_from(offset).ok()?;
    let to = from.checked_add(usize::try_from(length).ok()?)?;
    bytes.get(from..to)
}

fn number(bytes: &[u8], offset: u64) -> Option<u64> {
    let bytes = part(bytes, offset, 8)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

fn word(bytes: &[u8], offset: u64) -> Option<u32> {
    let bytes = part(bytes, offset, 4)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

fn half(bytes: &[u8], offset: u64) -> Option<u16> {
    let bytes = part(bytes, offset, 2)?;
    bytes.try_into().ok().map(u16::from_le_bytes)
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
