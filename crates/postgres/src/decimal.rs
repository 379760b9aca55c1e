//! Decimals as Debezium writes them: the bytes of the unscaled number, or Java's text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Digits of a decimal and where their point stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Decimal {
    negative: bool,
    /// Without leading zeros; empty for zero.
    digits: Vec<u8>,
    /// Digits behind the point.
    pub(crate) scale: usize,
}

impl Decimal {
    /// Reads a server's decimal; none for `NaN` and the infinities.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let digits = digits.into_iter().skip_while(|digit| *digit == b'0').collect();
        Some(Self { negative, digits, scale: fraction.len() })
    }

    /// The same number without zeros behind its last digit.
    pub(crate) fn stripped(mut self) -> Self {
        while self.scale > 0 && self.digits.last().is_none_or(|digit| *digit == b'0') {
            self.digits.pop();
            self.scale -= 1;
        }
        self
    }

    /// The unscaled number as Java's `BigInteger.toByteArray` gives it, in base64.
    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(twos_complement(&self.magnitude(), self.negative))
    }

    /// Big-endian bytes without leading zeros.
    fn magnitude(&self) -> Vec<u8> {
        /// Digits that fit into one limb.
        const STEP: usize = 18;
        let mut limbs: Vec<u64> = Vec::new();
        for chunk in self.digits.chunks(STEP) {
            let (factor, mut carry) =
                chunk.iter().fold((1_u128, 0_u128), |(factor, sum), digit| {
                    (factor * 10, sum * 10 + u128::from(digit - b'0'))
                });
            for limb in &mut limbs {
                let product = u128::from(*limb) * factor + carry;
                *limb = product as u64;
                carry = product >> 64;
            }
            if carry > 0 {
                limbs.push(carry as u64);
            }
        }
        let bytes = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes());
        bytes.skip_while(|byte| *byte == 0).collect()
    }
}

fn twos_complement(magnitude: &[u8], negative: bool) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(magnitude);
    if negative {
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, over);
        }
    }
    // The first byte only repeats the sign, unless the second one alone would say another.
    match bytes.as_slice() {
        [first, second, ..] if (first ^ second) & 0x80 == 0 => bytes.split_off(1),
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        STANDARD.decode(Decimal::parse(text).unwrap().base64()).unwrap()
    }

    #[test]
    fn zero_and_the_edges_of_a_byte() {
        for (text, expected) in [
            ("0.00", vec![0]),
            ("1.27", vec![127]),
            ("1.28", vec![0, 128]),
            ("-1.28", vec![128]),
            ("-1.29", vec![255, 127]),
            ("-2.56", vec![255, 0]),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn zeros_behind_the_last_digit_are_stripped_down_to_whole_numbers() {
        let stripped = |text: &str| {
            let decimal = Decimal::parse(text).unwrap().stripped();
            (decimal.base64(), decimal.scale)
        };
        assert_eq!(stripped("1.2300"), stripped("1.23"));
        assert_eq!(stripped("100.00").1, 0);
        assert_eq!(stripped("0.000"), stripped("0"));
    }

    #[test]
    fn a_decimal_of_any_length_is_done_in_a_moment() {
        assert_eq!(bytes(&"9".repeat(131_072)).len(), 54_427);
    }

    proptest! {
        #[test]
        fn the_bytes_are_the_number(number in any::<i64>(), scale in 0..9_usize) {
            let digits = format!("{:019}", number.unsigned_abs());
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            let sign = if number < 0 { "-" } else { "" };
            let text = format!("{sign}{whole}{}{fraction}", if scale > 0 { "." } else { "" });
            let found = bytes(&text);
            let start = if found[0] & 0x80 == 0 { 0 } else { -1 };
            let back = found.iter().fold(start, |sum: i128, byte| (sum << 8) | i128::from(*byte));
            prop_assert_eq!(back, i128::from(number));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,12}") {
            let _ = Decimal::parse(&text).map(|decimal| decimal.stripped().base64());
        }
    }
}
