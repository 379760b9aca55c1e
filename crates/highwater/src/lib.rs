//! `highwater`: the server, wired of the other crates' parts, and its command line. The binary is this with
//! the connectors of the release.

mod announcement;
mod apache;
mod api;
mod checkpoint;
mod checkup;
mod cli;
mod client_login;
mod compaction_settings;
mod completions;
mod connector_configs;
mod connector_status;
mod connectors;
mod coordinator_settings;
mod copies;
mod copy_jobs;
mod copy_settings;
#[cfg(test)]
mod dashboard;
mod doctor;
mod embedded;
mod explain;
mod failure;
mod folders;
mod guard;
mod http;
mod http_access;
mod http_body;
mod http_client;
mod http_guard;
mod http_listener;
mod http_roles;
mod http_stall;
mod kafka;
mod kafka_guard;
mod listener_tls;
mod log_levels;
mod log_limit;
mod logging;
mod machine;
mod measures;
#[cfg(test)]
mod metrics_reference;
mod offsets;
mod open_files;
mod oracle;
mod output;
mod readiness;
mod record_text;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod reference_commands;
#[cfg(test)]
mod reference_example;
mod server;
mod service_manager;
mod settings;
mod sharing_settings;
mod shutdown;
mod stream_text;
mod streams;
mod tail;
mod topic_change;
mod topic_read;
mod topics;
mod usage;
mod user_store;
mod users;
mod worker_settings;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::failure::Failure;

pub use server::{Plugins, plugins};

/// Runs the command line of this process, with the connectors that `plugins` gives a server.
pub fn main(plugins: Plugins) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(cli.output),
    };
    let done = runtime.block_on(run(&cli, plugins));
    // What did not stop within its bound must not keep the process from ending.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Such as `highwater stream tail shop | head`: whoever read has enough.
        Err(failure) if failure.code == failure::OUTPUT_CLOSED => ExitCode::SUCCESS,
        Err(failure) => failure.report(cli.output),
    }
}

async fn run(cli: &Cli, plugins: Plugins) -> Result<(), Failure> {
    match &cli.command {
        Command::Server(flags) => server::run(flags, plugins).await,
        Command::Connector { command } => connectors::run(cli, command).await,
        Command::Offsets { command } => offsets::run(cli, command).await,
        Command::Stream { command } => streams::run(cli, command).await,
        Command::Doctor(flags) => doctor::run(cli, flags).await,
        Command::Oracle { command } => oracle::run(command),
        Command::Explain { code } => explain::run(cli.output, code),
        Command::Completions { shell } => completions::run(*shell),
        Command::User(user) => users::run(cli, user),
        Command::Backup(asked) => copies::backup(cli, asked).await,
        Command::Restore(asked) => copies::restore(cli, asked).await,
        Command::Topic(topic) => topics::run(cli, topic).await,
    }
}
