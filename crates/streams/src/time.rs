//! Times as records show them.

use jiff::Timestamp;

/// ISO 8601 with six fraction digits and `Z`; `None` beyond the years that the form has.
pub(crate) fn iso(microseconds: i64) -> Option<String> {
    let time = Timestamp::from_microsecond(microseconds).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

/// The time now.
pub(crate) fn now() -> String {
    iso(Timestamp::now().as_microsecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_always() {
        assert_eq!(iso(1_793_000_000_000_000).as_deref(), Some("2026-10-26T07:33:20.000000Z"));
        assert_eq!(iso(-1).as_deref(), Some("1969-12-31T23:59:59.999999Z"));
        assert_eq!(iso(i64::MAX), None);
    }
}
