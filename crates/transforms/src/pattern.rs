//! Java's regular expressions, as far as they are the same here.

use regex::{Captures, Regex, RegexBuilder};

/// No compiled expression takes more memory.
const LARGEST: usize = 1 << 20;

/// An expression, for all of a text or the first place that it fits.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    whole: Regex,
    part: Regex,
}

impl Pattern {
    /// Reads an expression.
    ///
    /// # Errors
    /// It is none, or needs what this engine, whose time is bounded, does not have.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if let Some(name) = beyond(pattern) {
            return Err(format!("uses {name}, which is not supported here"));
        }
        let build = |pattern: &str| RegexBuilder::new(pattern).size_limit(LARGEST).build();
        match (build(&format!("\\A(?:{pattern})\\z")), build(pattern)) {
            (Ok(whole), Ok(part)) => Ok(Self { whole, part }),
            (_, Err(error)) | (Err(error), _) => Err(format!("is no regular expression: {error}")),
        }
    }

    /// Whether all of the text fits.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.whole.is_match(text)
    }

    /// The groups of the expression; the whole is number 0.
    pub(crate) fn groups(&self) -> usize {
        self.part.captures_len()
    }

    /// Whether there is a group of this name.
    pub(crate) fn has_group(&self, name: &str) -> bool {
        self.part.capture_names().flatten().any(|group| group == name)
    }

    /// The text with the first place that fits replaced.
    pub(crate) fn replace_first(
        &self,
        text: &str,
        new: impl Fn(&Captures<'_>) -> String,
    ) -> String {
        self.part.replace(text, |captures: &Captures<'_>| new(captures)).into_owned()
    }
}

/// What an expression uses that Java has and we have not, or that means another thing here.
fn beyond(pattern: &str) -> Option<&'static str> {
    let mut letters = pattern.chars().peekable();
    let mut in_class = false;
    let mut quantified = false;
    while let Some(letter) = letters.next() {
        let was_quantified = std::mem::take(&mut quantified);
        match letter {
            '\\' => match letters.next() {
                Some('1'..='9' | 'k') => return Some("a back-reference"),
                Some('Q') => return Some("a quotation (\\Q)"),
                Some('G') => return Some("the end of the match before (\\G)"),
                Some('Z') => return Some("the end before a line feed (\\Z)"),
                Some('R' | 'X' | 'h' | 'H') => {
                    return Some("a class of Java alone (\\R, \\X, \\h)");
                }
                _ => {}
            },
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                if let Some(name) = group(&letters.clone().take(3).collect::<String>()) {
                    return Some(name);
                }
            }
            '+' if was_quantified && !in_class => return Some("a possessive quantifier"),
            '*' | '+' | '?' | '}' if !in_class => quantified = true,
            _ => {}
        }
    }
    None
}

fn group(head: &str) -> Option<&'static str> {
    if head.starts_with("?=") || head.starts_with("?!") {
        Some("look-ahead")
    } else if head.starts_with("?<=") || head.starts_with("?<!") {
        Some("look-behind")
    } else if head.starts_with("?>") {
        Some("an independent group")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        for (pattern, name) in [
            ("a(?=b)", "look-ahead"),
            ("(?<!a)b", "look-behind"),
            ("(a)\\1", "back-reference"),
            ("(?<n>a)\\k<n>", "back-reference"),
            ("(?>a)", "independent"),
            ("a++", "possessive"),
            ("a{2}+", "possessive"),
            ("\\Qa\\E", "quotation"),
            ("a(", "no regular expression"),
            ("(a{1000}){1000}", "no regular expression"),
        ] {
            let refused = Pattern::new(pattern).map(drop).unwrap_err();
            assert!(refused.contains(name), "{pattern}: {refused}");
        }
        for pattern in ["a+", "[+*]+", "a+?", "\\++", "(?<n>a)", "(?i)a", "[a&&b]", "\\\\1"] {
            assert!(Pattern::new(pattern).is_ok(), "{pattern}");
        }
    }
}
