//! A replication connection: startup, simple queries, and the way into streaming.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use highwater_connector::ConnectorError;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::auth::{Authentication, Step};
use crate::cursor::Cursor;
use crate::error::{connection, from_server, unreadable};
use crate::frame::{Frame, FrameBuffer};
use crate::settings::Login;

/// Settings of every connection, so that snapshot and stream give the same text, whatever the
/// server, the database or the role sets.
pub(crate) const PINNED: [(&str, &str); 10] = [
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("extra_float_digits", "3"),
    ("lc_monetary", "C"),
    ("bytea_output", "hex"),
    ("search_path", "pg_catalog"),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
];

/// Ends the idle timeout that a role may have; releases before 14 do not know it.
pub(crate) const NEVER_IDLE: &str = "SELECT set_config(name, '0', false) FROM pg_settings \
                                     WHERE name = 'idle_session_timeout'";

/// Bound of any message before streaming begins.
const HANDSHAKE_LIMIT: usize = 1024 * 1024;

/// Room for one read.
const READ: usize = 128 * 1024;

/// Bound of one write; longer than that means that the server does not read any more.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A byte stream to a server.
trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// A row of text values.
pub(crate) type TextRow = Vec<Option<String>>;

/// A connection in replication mode.
pub(crate) struct Session {
    stream: Box<dyn Stream>,
    frames: FrameBuffer,
}

impl Session {
    /// Connects, proves who we are, and waits until the server is ready.
    ///
    /// # Errors
    /// When the server cannot be reached in time, or refuses.
    pub(crate) async fn connect(login: &Login) -> Result<Self, ConnectorError> {
        let attempt = async {
            let stream = open(login)
                .await
                .map_err(|error| connection(format!("{login:?} cannot be reached: {error}")))?;
            let frames = FrameBuffer::new(HANDSHAKE_LIMIT);
            let mut session = Self { stream, frames };
            session.start_up(login).await?;
            session.query(NEVER_IDLE).await?;
            Ok(session)
        };
        match timeout(login.connect_timeout, attempt).await {
            Ok(result) => result,
            Err(_) => Err(connection(format!(
                "{login:?} did not answer within {} ms",
                login.connect_timeout.as_millis()
            ))),
        }
    }

    async fn start_up(&mut self, login: &Login) -> Result<(), ConnectorError> {
        let parameters = [
            ("user", login.user.as_str()),
            ("database", login.database.as_str()),
            ("replication", "database"),
            ("application_name", "highwater"),
            ("client_encoding", "UTF8"),
        ];
        let mut out = BytesMut::new();
        frontend::startup_message(parameters.into_iter().chain(PINNED), &mut out)
            .map_err(|error| connection(format!("no startup message can be made: {error}")))?;
        self.send(&out).await?;
        let mut authentication = Authentication::new(login);
        loop {
            let (tag, body) = self.message().await?;
            match tag {
                b'R' => match authentication.step(body)? {
                    Step::Answer(answer) => self.send(&answer).await?,
                    Step::Wait | Step::Authenticated => {}
                },
                b'Z' => return Ok(()),
                b'E' => return Err(server_error("connecting", body)),
                // Parameters, the cancel key, notices.
                b'S' | b'K' | b'N' | b'v' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Runs one statement and gives its rows.
    ///
    /// # Errors
    /// When the server refuses it or the connection breaks.
    pub(crate) async fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, ConnectorError> {
        self.ask(sql).await?;
        let (mut rows, mut error) = (Vec::new(), None);
        loop {
            let (tag, body) = self.message().await?;
            match tag {
                b'D' => rows.push(text_row(body)?),
                b'E' => error = Some(server_error(sql, body)),
                b'Z' => return error.map_or(Ok(rows), Err),
                b'T' | b'C' | b'I' | b'N' | b'S' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Begins to stream; frames up to `limit` bytes are then read whole.
    ///
    /// # Errors
    /// When the server refuses it or the connection breaks.
    pub(crate) async fn start_replication(
        &mut self,
        sql: &str,
        limit: usize,
    ) -> Result<(), ConnectorError> {
        self.ask(sql).await?;
        loop {
            let (tag, body) = self.message().await?;
            match tag {
                b'W' => break,
                b'E' => return Err(server_error(sql, body)),
                b'N' | b'S' => {}
                other => return Err(unexpected(other)),
            }
        }
        self.frames.set_limit(limit);
        Ok(())
    }

    async fn ask(&mut self, sql: &str) -> Result<(), ConnectorError> {
        let mut out = BytesMut::new();
        frontend::query(sql, &mut out)
            .map_err(|error| connection(format!("no query can be made of {sql:?}: {error}")))?;
        self.send(&out).await
    }

    /// Sends bytes and waits until they left.
    ///
    /// # Errors
    /// When the connection broke or the server does not read.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectorError> {
        let write = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match timeout(WRITE_TIMEOUT, write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(connection(format!("the server cannot be written to: {error}"))),
            Err(_) => Err(connection("the server does not read what is sent to it")),
        }
    }

    /// The next frame that has arrived already.
    ///
    /// # Errors
    /// When the bytes are no frame.
    pub(crate) fn arrived(&mut self) -> Result<Option<Frame>, ConnectorError> {
        self.frames.next().map_err(|error| unreadable(error.to_string()))
    }

    /// Waits for more bytes; may be dropped without losing any.
    ///
    /// # Errors
    /// When the server closed the connection or it broke.
    pub(crate) async fn read(&mut self) -> Result<(), ConnectorError> {
        match self.stream.read_buf(self.frames.space(READ)).await {
            Ok(0) => Err(connection("the server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) => Err(connection(format!("the connection broke: {error}"))),
        }
    }

    async fn message(&mut self) -> Result<(u8, Bytes), ConnectorError> {
        loop {
            match self.arrived()? {
                Some(Frame::Whole { tag, body }) => return Ok((tag, body)),
                Some(Frame::Cut { size, .. }) => {
                    return Err(unreadable(format!("an answer of {size} bytes is too long")));
                }
                None => self.read().await?,
            }
        }
    }
}

async fn open(login: &Login) -> std::io::Result<Box<dyn Stream>> {
    if login.host.starts_with('/') {
        let path = format!("{}/.s.PGSQL.{}", login.host, login.port);
        return Ok(Box::new(UnixStream::connect(path).await?));
    }
    let stream = TcpStream::connect((login.host.as_str(), login.port)).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

fn text_row(body: Bytes) -> Result<TextRow, ConnectorError> {
    let mut cursor = Cursor::new(body);
    let mut row = Vec::new();
    for _ in 0..cursor.u16("column count")? {
        let len = cursor.i32("value length")?;
        row.push(match usize::try_from(len) {
            Err(_) => None,
            Ok(len) => {
                let value = cursor.take(len, "value")?;
                Some(String::from_utf8_lossy(&value).into_owned())
            }
        });
    }
    Ok(row)
}

/// The error that an `ErrorResponse` amounts to.
pub(crate) fn server_error(doing: &str, body: Bytes) -> ConnectorError {
    let mut cursor = Cursor::new(body);
    let (mut sqlstate, mut message) = (String::new(), String::new());
    while let Ok(field @ 1..) = cursor.u8("error field") {
        let Ok(text) = cursor.text("error text") else { break };
        match field {
            b'C' => sqlstate = text,
            b'M' => message = text,
            b'D' | b'H' | b'W' => message = format!("{message}; {text}"),
            _ => {}
        }
    }
    from_server(doing, &sqlstate, &message)
}

fn unexpected(tag: u8) -> ConnectorError {
    unreadable(format!("the server sent message {:?} out of turn", char::from(tag)))
}
