//! PRODUCER_FENCED, as a client of each version knows it.

use highwater_protocol::ErrorCode;

/// Clients from before KIP-588 know INVALID_PRODUCER_EPOCH alone, and take it for the same.
pub(crate) fn as_known_to(version: i16, since: i16, error: ErrorCode) -> ErrorCode {
    if error == ErrorCode::PRODUCER_FENCED && version < since {
        return ErrorCode::INVALID_PRODUCER_EPOCH;
    }
    error
}
