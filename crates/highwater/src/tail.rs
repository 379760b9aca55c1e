//! `highwater stream tail`: a WebSocket client that prints records and keeps its position.

use std::path::Path;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use futures_util::StreamExt;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::api::{Api, refusal, segment};
use crate::checkpoint;
use crate::cli::Output;
use crate::failure::{Exit, Failure};
use crate::http_client::Stream;
use crate::output;
use crate::stream_text::Lines;

/// First and longest wait between two attempts to reach a server that went away.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Longest silence of a server that is there: it pings every 20 s.
const SILENCE: Duration = Duration::from_secs(60);

type Socket = WebSocketStream<Box<dyn Stream>>;

/// Where the tail stands.
struct Tail<'a> {
    api: &'a Api,
    /// Of the stream.
    path: String,
    /// Position to begin at next: what was asked for, then the last printed position.
    begin: String,
    left: Option<u64>,
    checkpoint: Option<&'a Path>,
    /// How records are printed; as the JSON that they are without.
    lines: Option<Lines>,
}

/// How one connection ended.
enum Ended {
    /// All records that were asked for were printed.
    Enough,
    /// The connection is gone; go on from the last printed position.
    Lost,
}

pub(crate) async fn run(
    api: &Api,
    output: Output,
    name: &str,
    begin: &str,
    count: Option<u64>,
    checkpoint: Option<&Path>,
) -> Result<(), Failure> {
    let begin = match checkpoint.map(checkpoint::load).transpose()?.flatten() {
        Some(position) => position,
        None => begin.to_owned(),
    };
    if let Some(path) = checkpoint {
        checkpoint::check(path).map_err(|error| {
            Failure::usage(error.to_string()).remedy("name a file in a folder that can be written")
        })?;
    }
    let path = format!("/services/v2/stream/{}", segment(name));
    let lines = (output == Output::Text).then(Lines::default);
    let mut tail = Tail { api, path, begin, left: count, checkpoint, lines };
    let mut socket = tail.connect().await?;
    loop {
        if matches!(tail.follow(&mut socket).await?, Ended::Enough) {
            return Ok(());
        }
        tail.resumable()?;
        output::note("connection lost; trying again from the last printed position");
        socket = tail.reconnect().await?;
    }
}

impl Tail<'_> {
    async fn connect(&self) -> Result<Socket, Failure> {
        let path = format!("{}?begin={}", self.path, segment(&self.begin));
        let server = self.api.server();
        let unfit = || Failure::usage(format!("{path} is no path"));
        let mut request = server.websocket(&path).ok_or_else(unfit)?;
        // RFC 6455, 4.1.
        let key = HeaderValue::try_from(generate_key()).map_err(|_| unfit())?;
        let headers = request.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(header::SEC_WEBSOCKET_KEY, key);
        let stream = server.connect().await.map_err(|error| self.api.unanswered(error))?;
        match client_async(request, stream).await {
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
                format!("no stream answers at {}{}: {error}", self.api.url(), self.path),
            )
            .remedy("start the server, or name its address with --url")),
        }
    }

    /// Tries until the server is back; a refusal ends it.
    async fn reconnect(&self) -> Result<Socket, Failure> {
        let mut wait = FIRST_WAIT;
        loop {
            tokio::time::sleep(wait).await;
            match self.connect().await {
                Err(failure) if failure.exit == Exit::Unreachable => {
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                other => return other,
            }
        }
    }

    /// Where `now` was is known to nobody once the connection is gone: coming back at another `now`
    /// would skip what came in between without a word.
    fn resumable(&self) -> Result<(), Failure> {
        if self.begin != "now" {
            return Ok(());
        }
        Err(Failure::new(
            Exit::Unreachable,
            "POSITION_UNKNOWN",
            "the connection was lost before the first record came, so there is no position to \
             resume from",
        )
        .kept("everything in the log")
        .remedy("run it again; --begin earliest leaves nothing out"))
    }

    async fn follow(&mut self, socket: &mut Socket) -> Result<Ended, Failure> {
        while let Ok(Some(Ok(message))) = tokio::time::timeout(SILENCE, socket.next()).await {
            match message {
                Message::Text(text) if self.print(&text)? => return Ok(Ended::Enough),
                Message::Close(_) => break,
                _ => {}
            }
        }
        Ok(Ended::Lost)
    }

    fn print_record(&mut self, record: &RawValue) -> std::io::Result<()> {
        match &mut self.lines {
            None => output::line(record.get()),
            Some(lines) => {
                let record = serde_json::from_str(record.get()).unwrap_or_default();
                lines.line(&record).map_or(Ok(()), output::elided)
            }
        }
    }

    /// Prints the records of one message; whether it was enough.
    fn print(&mut self, message: &str) -> Result<bool, Failure> {
        let records: Vec<&RawValue> = serde_json::from_str(message).map_err(|error| {
            Failure::new(Exit::Failed, "MALFORMED", format!("a message is no JSON array: {error}"))
        })?;
        let (mut last, mut ending) = (None, None);
        for record in records {
            self.print_record(record)?;
            let Some(position) = position_of(record) else {
                ending = final_ending(record);
                continue;
            };
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
        ending.map_or(Ok(self.left == Some(0)), Err)
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

/// The failure in a connection's last record, where another connection would end the same way.
fn final_ending(record: &RawValue) -> Option<Failure> {
    #[derive(serde::Deserialize)]
    struct Ending {
        #[serde(rename = "close_code")]
        _close_code: u16,
        retry: String,
        code: String,
        what: String,
        kept: String,
        #[serde(rename = "do")]
        remedy: String,
    }
    let ending: Ending = serde_json::from_str(record.get()).ok()?;
    let failure = Failure::new(Exit::Failed, &ending.code, ending.what);
    (ending.retry == "never").then(|| failure.kept(ending.kept).remedy(ending.remedy))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn api() -> Api {
        Api::of(&Cli::parse_from(["highwater", "doctor"])).unwrap()
    }

    fn tail(api: &Api) -> Tail<'_> {
        let (path, begin) = (String::new(), "now".to_owned());
        Tail { api, path, begin, left: None, checkpoint: None, lines: None }
    }

    #[test]
    fn the_last_printed_position_is_where_the_next_connection_begins() {
        let api = api();
        let mut tail = tail(&api);
        let message = r#"[{"pos":"a"},{"pos":"b"},{"op_type":"SCHEMA"}]"#;
        assert!(!tail.print(message).unwrap());
        assert_eq!(tail.begin, "b");
    }

    #[test]
    fn only_an_ending_that_would_come_again_ends_the_tail() {
        let ending = |retry: &str| {
            let ending = serde_json::json!({
                "op_type": "ERROR", "close_code": 4016, "retry": retry,
                "code": "c", "what": "w", "kept": "k", "do": "d",
            });
            format!(r#"[{{"pos":"a"}},{ending}]"#)
        };
        let api = api();
        assert!(!tail(&api).print(&ending("later")).unwrap());
        let mut tail = tail(&api);
        let failure = tail.print(&ending("never")).unwrap_err();
        assert_eq!((failure.code.as_str(), failure.remedy.as_str()), ("c", "d"));
        assert_eq!(tail.begin, "a");
    }
}
