//! The controller as a program.

fn main() {}
