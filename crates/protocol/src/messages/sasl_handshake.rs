//! The choice of a SASL mechanism.

use crate::ErrorCode;

schema! {
    /// Names the SASL mechanism by which the client logs in. At version 0 what follows goes over
    /// the connection without headers; at version 1 in [`SaslAuthenticateRequest`]s (KIP-152).
    ///
    /// [`SaslAuthenticateRequest`]: crate::SaslAuthenticateRequest
    struct SaslHandshakeRequest {
        /// The mechanism.
        mechanism: String, 0..;
    }

    /// Answers a [`SaslHandshakeRequest`].
    struct SaslHandshakeResponse {
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// The mechanisms that the broker takes.
        mechanisms: Vec<String>, 0..;
    }
}
