//! Numbers of any length with a scale.

use std::fmt;
use std::str::FromStr;

use num_bigint::BigInt;

/// A number: `unscaled` × 10^-`scale`. Two are equal when both parts are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Decimal {
    /// All digits.
    pub unscaled: BigInt,
    /// How many of them are behind the point; below 0, that many zeros follow.
    pub scale: i32,
}

/// No text with more digits is read as a number: what is written in full of it must stay small.
const LONGEST: usize = 4096;

impl Decimal {
    /// The digits as Connect sends them: two's complement, most significant byte first.
    pub fn unscaled_bytes(&self) -> Vec<u8> {
        self.unscaled.to_signed_bytes_be()
    }

    /// The reverse of [`unscaled_bytes`](Self::unscaled_bytes).
    pub fn from_unscaled_bytes(bytes: &[u8], scale: i32) -> Self {
        Self { unscaled: BigInt::from_signed_bytes_be(bytes), scale }
    }

    /// The whole number that it is; `None` where something stands behind the point, or beyond 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        let ten = BigInt::from(10);
        let zero = BigInt::from(0);
        if self.unscaled == zero {
            return Some(0);
        }
        // More than 20 digits are beyond 64 bits, whatever they are.
        let whole = match u32::try_from(self.scale) {
            Ok(scale) => {
                if scale as usize > self.unscaled.to_string().len() {
                    return None;
                }
                let divisor = ten.pow(scale);
                if &self.unscaled % &divisor != zero {
                    return None;
                }
                &self.unscaled / divisor
            }
            Err(_) if self.scale < -20 => return None,
            Err(_) => &self.unscaled * ten.pow(self.scale.unsigned_abs()),
        };
        i64::try_from(whole).ok()
    }

    /// The whole part, as Java's conversions to a type of whole numbers: what is behind the point is cut.
    pub fn whole(&self) -> BigInt {
        let ten = BigInt::from(10);
        match u32::try_from(self.scale) {
            Ok(scale) if scale as usize > self.unscaled.to_string().len() => BigInt::from(0),
            Ok(scale) => &self.unscaled / ten.pow(scale),
            Err(_) => &self.unscaled * ten.pow(self.scale.unsigned_abs().min(10_000)),
        }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        self.scientific().parse().unwrap_or(f64::NAN)
    }

    /// The nearest float.
    pub fn to_f32(&self) -> f32 {
        self.scientific().parse().unwrap_or(f32::NAN)
    }

    fn scientific(&self) -> String {
        format!("{}e{}", self.unscaled, -i64::from(self.scale))
    }
}

/// As Java's `BigDecimal` writes it.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.unscaled.to_string();
        let (sign, digits) =
            text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
        let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let exponent = count - 1 - i64::from(self.scale);
        f.write_str(sign)?;
        if self.scale == 0 {
            f.write_str(digits)
        } else if self.scale > 0 && exponent >= -6 {
            let behind = usize::try_from(self.scale).unwrap_or(0);
            if digits.len() > behind {
                let (whole, rest) = digits.split_at(digits.len() - behind);
                write!(f, "{whole}.{rest}")
            } else {
                write!(f, "0.{digits:0>behind$}")
            }
        } else {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            write!(f, "{first}{point}{rest}E{exponent:+}")
        }
    }
}

/// The text is no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotANumber;

/// As Java's `BigDecimal` reads it.
impl FromStr for Decimal {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Self, NotANumber> {
        if text.len() > LONGEST {
            return Err(NotANumber);
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            None => (text, 0),
            Some((mantissa, exponent)) => {
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(NotANumber);
                }
                (mantissa, exponent.parse::<i32>().map_err(|_| NotANumber)?)
            }
        };
        let (whole, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
        let all = digits.bytes().chain(behind.bytes());
        if digits.len() + behind.len() == 0 || !all.into_iter().all(|byte| byte.is_ascii_digit()) {
            return Err(NotANumber);
        }
        let sign = if whole.starts_with('-') { "-" } else { "" };
        let unscaled = format!("{sign}{digits}{behind}").parse().map_err(|_| NotANumber)?;
        let scale = i64::try_from(behind.len()).unwrap_or(0) - i64::from(exponent);
        Ok(Self { unscaled, scale: i32::try_from(scale).map_err(|_| NotANumber)? })
    }
}
