//! The controller as a program: `nginx-ingress-controller --help` tells what it can do.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use controller_bin::{Args, Command, logging};
use tracing::error;

fn main() -> ExitCode {
    match Command::parse() {
        Command::Run(args) => {
            logging::start(&args.logging);
            run(*args).unwrap_or_else(|error| {
                error!("{error:#}");
                ExitCode::FAILURE
            })
        }
        Command::Look(subcommand) => subcommand.run(),
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    if args.version {
        let description = runtime.block_on(args.describe());
        io::stdout().write_all(description.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let code = runtime.block_on(args.run())?;
    // Tasks that still wait for something have nothing more to do.
    runtime.shutdown_background();
    Ok(code)
}
