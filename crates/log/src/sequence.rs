//! Sequence numbers of producers: 31 bits that go round.

/// That of a batch without one: only a coordinator writes such batches for a producer.
pub(crate) const NO_SEQUENCE: i32 = -1;

/// The sequence number after `sequence`; after the greatest comes 0.
pub(crate) fn after(sequence: i32) -> i32 {
    sequence.checked_add(1).unwrap_or(0)
}

/// The sequence number `count` further; after the greatest comes 0.
pub(crate) fn advance(sequence: i32, count: i32) -> i32 {
    if sequence == NO_SEQUENCE { NO_SEQUENCE } else { sequence.wrapping_add(count) & i32::MAX }
}

/// The sequence number `count` before.
pub(crate) fn go_back(sequence: i32, count: i32) -> i32 {
    if sequence == NO_SEQUENCE { NO_SEQUENCE } else { sequence.wrapping_sub(count) & i32::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_round() {
        assert_eq!((after(i32::MAX), after(NO_SEQUENCE)), (0, 0));
        assert_eq!((advance(i32::MAX, 1), advance(i32::MAX - 1, 3)), (0, 1));
        assert_eq!(go_back(0, 1), i32::MAX);
        assert_eq!((advance(NO_SEQUENCE, 4), go_back(NO_SEQUENCE, 4)), (NO_SEQUENCE, NO_SEQUENCE));
    }
}
