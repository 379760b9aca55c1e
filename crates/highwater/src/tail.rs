//! `highwater stream tail`: a WebSocket client that prints records and keeps its position.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::api::{refusal, segment};
use crate::checkpoint;
use crate::failure::{Exit, Failure};
use crate::output;

/// Longest wait between two attempts to reach a server that went away.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

/// Where the tail stands.
struct Tail<'a> {
    address: String,
    /// Position to begin at next: what was asked for, then the last printed position.
    begin: String,
    left: Option<u64>,
    checkpoint: Option<&'a Path>,
}

/// How one connection ended.
enum Ended {
    /// All records that were asked for were printed.
    Enough,
    /// The connection is gone; go on from the last printed position.
    Lost,
}

pub(crate) async fn run(
    url: &str,
    name: &str,
    begin: &str,
    count: Option<u64>,
    checkpoint: Option<&Path>,
) -> Result<(), Failure> {
    let begin = match checkpoint.map(checkpoint::load).transpose()?.flatten() {
        Some(position) => position,
        None => begin.to_owned(),
    };
    let address = format!(
        "{}/services/v2/stream/{}",
        url.trim_end_matches('/').replacen("http", "ws", 1),
        segment(name)
    );
    let mut tail = Tail { address, begin, left: count, checkpoint };
    let mut socket = tail.connect().await?;
    loop {
        if matches!(tail.follow(&mut socket).await?, Ended::Enough) {
            return Ok(());
        }
        socket = tail.reconnect().await?;
    }
}

impl Tail<'_> {
    async fn connect(&self) -> Result<Socket, Failure> {
        let url = format!("{}?begin={}", self.address, segment(&self.begin));
        match connect_async(url).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => {
                let text = response
                    .body()
                    .as_ref()
                    .map(|body| String::from_utf8_lossy(body).into_owned())
                    .unwrap_or_default();
                let body = serde_json::from_str(&text).unwrap_or_default();
                Err(refusal(response.status(), &body, &text))
            }
            Err(error) => Err(Failure::new(
                Exit::Unreachable,
                "UNREACHABLE",
                format!("no stream answers at {}: {error}", self.address),
            )
            .remedy("start the server, or name its address with --url")),
        }
    }

    /// Tries until the server is back; a refusal ends it.
    async fn reconnect(&self) -> Result<Socket, Failure> {
        let mut wait = Duration::from_millis(200);
        loop {
            match self.connect().await {
                Err(failure) if failure.exit == Exit::Unreachable => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                other => return other,
            }
        }
    }

    async fn follow(&mut self, socket: &mut Socket) -> Result<Ended, Failure> {
        while let Some(message) = socket.next().await {
            match message {
                Ok(Message::Text(text)) => {
                    if self.print(&text)? {
                        return Ok(Ended::Enough);
                    }
                }
                Ok(Message::Close(_)) | Err(_) => return Ok(Ended::Lost),
                Ok(_) => {}
            }
        }
        Ok(Ended::Lost)
    }

    /// Prints the records of one message; whether it was enough.
    fn print(&mut self, message: &str) -> Result<bool, Failure> {
        let records: Vec<&RawValue> = serde_json::from_str(message).map_err(|error| {
            Failure::new(Exit::Failed, "MALFORMED", format!("a message is no JSON array: {error}"))
        })?;
        let mut last = None;
        for record in records {
            output::line(record.get())?;
            let Some(position) = position_of(record) else { continue };
            last = Some(position);
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    break;
                }
            }
        }
        if let Some(position) = last {
            if let Some(path) = self.checkpoint {
                checkpoint::store(path, &position)?;
            }
            self.begin = position;
        }
        Ok(self.left == Some(0))
    }
}

/// The record's `pos`, which metadata and schema records lack.
fn position_of(record: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Positioned {
        pos: Option<String>,
    }
    serde_json::from_str::<Positioned>(record.get()).ok()?.pos
}
