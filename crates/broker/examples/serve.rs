//! A broker to try things with: `cargo run -p highwater-broker --example serve -- DIR PORT`.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use highwater_broker::{AutoCreate, Broker, BrokerConfig, Coordinator, CoordinatorConfig};
use highwater_log::{Log, LogConfig, RealFileSystem};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().map_or_else(|| PathBuf::from("data"), PathBuf::from);
    let port = arguments.next().map_or(Ok(9092), |port| port.parse())?;
    let log = Log::open(Arc::new(RealFileSystem), &dir, LogConfig::default())?;
    let mut config = BrokerConfig::new(SocketAddr::from(([127, 0, 0, 1], port)));
    config.auto_create = AutoCreate::WhenAsked;
    let coordinator = Coordinator::start(&log, CoordinatorConfig::default());
    let broker = Broker::start(config, log.clone(), coordinator).await?;
    eprintln!("listening on {}, data in {}; Ctrl-C stops", broker.local_addr(), dir.display());
    tokio::signal::ctrl_c().await?;
    broker.shutdown().await;
    Ok(log.close()?)
}
