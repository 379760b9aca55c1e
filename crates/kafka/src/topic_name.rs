//! Kafka's rule for names of topics (`Topic.validate` of its clients).

/// The rule in words, for whoever has broken it.
pub const TOPIC_NAME_RULE: &str =
    "use 1 to 249 letters, digits, dots, underscores or hyphens, and not . or ..";

/// Whether a topic may be called so.
pub fn is_topic_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=249).contains(&name.len()) && name.chars().all(legal) && name != "." && name != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The embedded log has the same rule for those that it makes.
    #[test]
    fn a_name_fits_where_the_log_takes_it() {
        let (longest, longer) = ("n".repeat(249), "n".repeat(250));
        for (name, fits) in [
            ("shop.public_T-1", true),
            (&longest, true),
            ("...", true),
            (&longer, false),
            ("", false),
            (".", false),
            ("..", false),
            ("a/b", false),
            ("a b", false),
            ("\u{fc}", false),
        ] {
            assert_eq!(is_topic_name(name), fits, "{name}");
            assert_eq!(highwater_log::check_name(name).is_ok(), fits, "{name}");
        }
    }
}
