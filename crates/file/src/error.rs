//! What stops a file connector.

use std::io::{Error, ErrorKind as Io};
use std::path::Path;

use highwater_connector::{CONNECTOR_NAME, ConnectorError, ErrorKind};

/// The system refuses a file.
pub(crate) fn failed(path: &Path, what: &str, error: &Error) -> ConnectorError {
    let path = path.display();
    let lasting = |code, remedy: &str| {
        let what = format!("{path} cannot be {what}: {error}");
        ConnectorError::stop(code, ErrorKind::Source, what, remedy)
    };
    match error.kind() {
        Io::PermissionDenied => lasting(
            "FILE_NOT_ALLOWED",
            "name a folder above the file in that setting, or let the server's user open it, then \
             restart the connector",
        ),
        Io::InvalidInput | Io::IsADirectory => {
            lasting("FILE_UNFIT", "name a regular file in the connector's configuration")
        }
        _ => ConnectorError::again(
            "FILE_FAILED",
            ErrorKind::Source,
            format!("{path} cannot be {what}: {error}"),
        ),
    }
}

/// The file holds less than was read of it.
pub(crate) fn truncated(path: &Path, position: u64, length: u64) -> ConnectorError {
    ConnectorError::stop(
        "FILE_TRUNCATED",
        ErrorKind::Position,
        format!(
            "{} holds {length} bytes, but was read up to byte {position}: it was cut or is another \
             file now, and what it holds cannot be told from what was read",
            path.display()
        ),
        format!(
            "bring the file back, or read the new one from its beginning: PUT \
             /connectors/{CONNECTOR_NAME}/stop, DELETE /connectors/{CONNECTOR_NAME}/offsets, then PUT \
             /connectors/{CONNECTOR_NAME}/resume"
        ),
    )
}

/// Another file bears the name of the one that was read.
pub(crate) fn replaced(path: &Path, position: u64) -> ConnectorError {
    ConnectorError::stop(
        "FILE_REPLACED",
        ErrorKind::Position,
        format!(
            "{} is another file than the one that was read to its end, at byte {position}",
            path.display()
        ),
        format!(
            "to read the new one from its beginning: PUT /connectors/{CONNECTOR_NAME}/stop, DELETE \
             /connectors/{CONNECTOR_NAME}/offsets, then PUT /connectors/{CONNECTOR_NAME}/resume"
        ),
    )
}

/// A line without an end in sight.
pub(crate) fn too_long(path: &Path, position: u64, key: &str, limit: usize) -> ConnectorError {
    ConnectorError::stop(
        "FILE_LINE_TOO_LONG",
        ErrorKind::Data,
        format!(
            "the line that begins at byte {position} of {} is longer than {key}, which is {limit}",
            path.display()
        ),
        format!("raise {key} of the connector, or correct the file, then restart the connector"),
    )
}

/// A line that is no text.
pub(crate) fn not_text(path: &Path, position: u64) -> ConnectorError {
    ConnectorError::stop(
        "FILE_NOT_TEXT",
        ErrorKind::Data,
        format!("the line that begins at byte {position} of {} is not UTF-8", path.display()),
        "correct the file, or go on behind the line by changing the connector's offset, then restart \
         the connector",
    )
}

/// A stored offset that no file connector has written.
pub(crate) fn offset_invalid(offset: &str) -> ConnectorError {
    ConnectorError::stop(
        "FILE_OFFSET_INVALID",
        ErrorKind::Position,
        format!("the stored offset {offset} has no whole number position of 0 or more"),
        format!(
            "PUT /connectors/{CONNECTOR_NAME}/stop, then PATCH /connectors/{CONNECTOR_NAME}/offsets \
             with {{\"position\": BYTES}}, then PUT /connectors/{CONNECTOR_NAME}/resume"
        ),
    )
}

/// The file is gone that records were written to.
pub(crate) fn removed(path: &Path) -> ConnectorError {
    ConnectorError::stop(
        "FILE_REMOVED",
        ErrorKind::Source,
        format!("{} was removed while it was written", path.display()),
        "restart the connector: it makes the file anew and writes again what was not durable; what was \
         durable went with the file",
    )
}

/// The disk did not take what was written, and a second attempt would not say so.
pub(crate) fn not_durable(path: &Path, error: &Error) -> ConnectorError {
    ConnectorError::stop(
        "FILE_NOT_DURABLE",
        ErrorKind::Source,
        format!("what was written to {} could not be made durable: {error}", path.display()),
        "see that its disk is sound and has room, then restart the connector: it writes again what \
         was not durable",
    )
}

/// A record that is no line.
pub(crate) fn not_a_line(place: &str, why: &str) -> ConnectorError {
    ConnectorError::stop(
        "FILE_RECORD_UNREADABLE",
        ErrorKind::Data,
        format!("the value of record {place} cannot be written as a line: {why}"),
        "give the connector a value.converter that reads the topic, then restart the connector",
    )
}
