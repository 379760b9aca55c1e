//! The next mark in a text whose names and values are mostly short.

use memchr::memchr;

/// How many pieces are looked at before the search is handed to `memchr`, whose preparation costs as much
/// as that.
const PIECES: usize = 2;

/// Most names fit into one, so that nothing branches on their length.
type Piece = [u8; 16];

const ONES: u128 = u128::from_ne_bytes([0x01; 16]);
const HIGH_BITS: u128 = u128::from_ne_bytes([0x80; 16]);

/// The first place of a mark at or behind an offset.
#[inline]
pub(super) fn find(mark: u8, bytes: &[u8], from: usize) -> Option<usize> {
    let mut rest = bytes.get(from..)?;
    let mut at = from;
    for _ in 0..PIECES {
        let Some((piece, behind)) = rest.split_first_chunk() else { break };
        if let Some(place) = find_in(mark, piece) {
            return Some(at + place);
        }
        at += piece.len();
        rest = behind;
    }
    memchr(mark, rest).map(|place| at + place)
}

/// A byte that equals the mark becomes zero, and the lowest zero is the only one whose high bit is sure to
/// be set by taking one away.
#[inline]
const fn find_in(mark: u8, piece: &Piece) -> Option<usize> {
    let differences = u128::from_le_bytes(*piece) ^ (ONES * mark as u128);
    let zeros = differences.wrapping_sub(ONES) & !differences & HIGH_BITS;
    if zeros == 0 { None } else { Some((zeros.trailing_zeros() / 8) as usize) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_first_place_is_found(
            bytes in prop::collection::vec(prop::sample::select(&[0, 1, 38, 39, 40, 127, 128, 167, 255][..]), 0..60),
            from in 0..70_usize,
            mark in prop::sample::select(&[0, 39, 128, 255][..]),
        ) {
            let expected = (from..bytes.len()).find(|at| bytes[*at] == mark);
            prop_assert_eq!(find(mark, &bytes, from), expected);
        }
    }
}
