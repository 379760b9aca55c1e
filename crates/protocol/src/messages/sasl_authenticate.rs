//! What client and broker say to each other in a SASL login.

use crate::ErrorCode;
use crate::wire::Secret;

schema! {
    /// What the client says.
    struct SaslAuthenticateRequest {
        /// In the form of the mechanism.
        auth_bytes: Secret, 0..;
    }

    /// Answers a [`SaslAuthenticateRequest`].
    struct SaslAuthenticateResponse {
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// The same in words.
        error_message: Option<String>, 0.., null 0..;
        /// What the broker says, in the form of the mechanism.
        auth_bytes: Secret, 0..;
        /// After which time the client has to log in again, in milliseconds; 0 for never (KIP-368).
        session_lifetime_ms: i64, 1..;
    }
}
