//! A replication connection: startup, simple queries, and the way into streaming.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use highwater_connector::ConnectorError;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::auth::{Authentication, Step};
use crate::cursor::{Cursor, DecodeError};
use crate::error::{ServerError, connection, unreadable};
use crate::frame::{Frame, FrameBuffer};
use crate::settings::Login;
use crate::tls::tls_error;
use crate::transport::{Transport, tls_cause};

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

/// A row of text values.
pub(crate) type TextRow = Vec<Option<String>>;

/// A connection in replication mode.
pub(crate) struct Session {
    stream: Transport,
    frames: FrameBuffer,
    login: Login,
}

/// Why a statement gave nothing.
#[derive(Debug)]
pub(crate) enum QueryError {
    /// The server refused it; the connection goes on.
    Refused(ServerError),
    /// The connection does not.
    Broken(ConnectorError),
}

impl From<ConnectorError> for QueryError {
    fn from(error: ConnectorError) -> Self {
        Self::Broken(error)
    }
}

impl From<DecodeError> for QueryError {
    fn from(error: DecodeError) -> Self {
        Self::Broken(error.into())
    }
}

impl From<QueryError> for ConnectorError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Refused(error) => error.into(),
            QueryError::Broken(error) => error,
        }
    }
}

impl Session {
    /// Connects, proves who we are, and waits until the server is ready.
    ///
    /// # Errors
    /// When the server cannot be reached in time, or refuses.
    pub(crate) async fn connect(login: &Login) -> Result<Self, ConnectorError> {
        let attempt = async {
            let stream = Transport::open(login).await?;
            let frames = FrameBuffer::new(HANDSHAKE_LIMIT);
            let mut session = Self { stream, frames, login: login.clone() };
            session.start_up(login).await?;
            session.query(NEVER_IDLE).await?;
            Ok(session)
        };
        match timeout(login.connect_timeout, attempt).await {
            Ok(result) => result,
            Err(_) => Err(silent(login, login.connect_timeout)),
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
        let mut authentication = Authentication::new(login, self.stream.channel_binding());
        loop {
            let (tag, body) = self.message().await?;
            match tag {
                b'R' => match authentication.step(body)? {
                    Step::Answer(answer) => self.send(&answer).await?,
                    Step::Wait | Step::Authenticated => {}
                },
                b'Z' => return Ok(()),
                b'E' => return Err(server_error("connecting", body).into()),
                // Parameters, the cancel key, notices.
                b'S' | b'K' | b'N' | b'v' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Runs one statement and gives its rows.
    ///
    /// # Errors
    /// When the server refuses it, the connection breaks, or no answer comes in time.
    pub(crate) async fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, QueryError> {
        let bound = self.login.answer_timeout;
        match timeout(bound, self.query_unbounded(sql)).await {
            Ok(answer) => answer,
            Err(_) => Err(silent(&self.login, bound).into()),
        }
    }

    /// The same for a statement that may take long; whoever asks sets a bound.
    ///
    /// # Errors
    /// When the server refuses it or the connection breaks.
    pub(crate) async fn query_unbounded(&mut self, sql: &str) -> Result<Vec<TextRow>, QueryError> {
        self.ask(sql).await?;
        let (mut rows, mut error) = (Vec::new(), None);
        loop {
            let (tag, body) = self.message().await?;
            match tag {
                b'D' => rows.push(text_row(body)?),
                b'E' => error = Some(server_error(sql, body)),
                b'Z' => return error.map_or(Ok(rows), |error| Err(QueryError::Refused(error))),
                b'T' | b'C' | b'I' | b'N' | b'S' => {}
                other => return Err(unexpected(other).into()),
            }
        }
    }

    /// Begins to stream; frames up to `limit` bytes are then read whole.
    ///
    /// # Errors
    /// When the server refuses it, the connection breaks, or no answer comes in time.
    pub(crate) async fn start_replication(
        &mut self,
        sql: &str,
        limit: usize,
    ) -> Result<(), ConnectorError> {
        let bound = self.login.answer_timeout;
        match timeout(bound, self.begin_to_stream(sql)).await {
            Ok(answer) => answer?,
            Err(_) => return Err(silent(&self.login, bound)),
        }
        self.frames.set_limit(limit);
        Ok(())
    }

    async fn begin_to_stream(&mut self, sql: &str) -> Result<(), ConnectorError> {
        self.ask(sql).await?;
        loop {
            let (tag, body) = self.message().await?;
            match tag {
                b'W' => return Ok(()),
                b'E' => return Err(server_error(sql, body).into()),
                b'N' | b'S' => {}
                other => return Err(unexpected(other)),
            }
        }
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

    /// Waits for more bytes and says how many came; may be dropped without losing any.
    ///
    /// # Errors
    /// When the server closed the connection or it broke.
    pub(crate) async fn read(&mut self) -> Result<usize, ConnectorError> {
        match self.stream.read_buf(self.frames.space(READ)).await {
            Ok(0) => Err(connection("the server closed the connection")),
            Ok(read) => Ok(read),
            // Under TLS 1.3 a server refuses our certificate only after the handshake.
            Err(error) => Err(tls_cause(&error).map_or_else(
                || connection(format!("the connection broke: {error}")),
                |cause| tls_error(&self.login.host, cause),
            )),
        }
    }

    async fn message(&mut self) -> Result<(u8, Bytes), ConnectorError> {
        loop {
            match self.arrived()? {
                Some(Frame::Whole { tag, body }) => return Ok((tag, body)),
                Some(Frame::Cut { size, .. }) => {
                    return Err(unreadable(format!("an answer of {size} bytes is too long")));
                }
                None => {
                    self.read().await?;
                }
            }
        }
    }
}

/// The server did not answer in time.
pub(crate) fn silent(login: &Login, within: Duration) -> ConnectorError {
    connection(format!("{login:?} did not answer within {} ms", within.as_millis()))
}

pub(crate) fn text_row(body: Bytes) -> Result<TextRow, ConnectorError> {
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

/// What an `ErrorResponse` says.
pub(crate) fn server_error(doing: &str, body: Bytes) -> ServerError {
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
    ServerError { doing: doing.to_owned(), sqlstate, message }
}

fn unexpected(tag: u8) -> ConnectorError {
    unreadable(format!("the server sent message {:?} out of turn", char::from(tag)))
}
