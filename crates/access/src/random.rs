//! Random bytes of the system.

use ring::rand::{SecureRandom as _, SystemRandom};

/// So many bytes that nobody can guess.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // The system's generator fails only before it is seeded, early in a boot: nothing may go on
    // with bytes that can be guessed.
    #[allow(clippy::expect_used, reason = "without randomness there is no login at all")]
    SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    bytes
}
