//! SaslHandshake and SaslAuthenticate: how a client logs in.

use highwater_protocol::{ErrorCode, SaslAuthenticateResponse, SaslHandshakeResponse};

/// The answer to a login where nobody logs in.
pub(crate) fn handshake_out_of_place() -> SaslHandshakeResponse {
    SaslHandshakeResponse { error_code: ErrorCode::ILLEGAL_SASL_STATE, mechanisms: Vec::new() }
}

/// The same.
pub(crate) fn authenticate_out_of_place() -> SaslAuthenticateResponse {
    SaslAuthenticateResponse {
        error_code: ErrorCode::ILLEGAL_SASL_STATE,
        error_message: Some("there is no login under way".to_owned()),
        ..Default::default()
    }
}
