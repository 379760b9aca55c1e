//! References in a configuration's values to what stands elsewhere: `${provider:path:key}`, as Kafka
//! Connect has them.

/// Who knows what a reference stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Provider {
    /// `${file:path:key}`: a key of a file in the format of Java's `Properties`; without a key the
    /// whole file.
    File,
    /// `${env:name}`: an environment variable.
    Env,
    /// `${dir:path:name}`: a file of a folder.
    Dir,
}

impl Provider {
    const ALL: [Self; 3] = [Self::File, Self::Env, Self::Dir];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Env => "env",
            Self::Dir => "dir",
        }
    }
}

/// One reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reference<'a> {
    pub(crate) provider: Provider,
    /// Empty where there is one part alone behind the provider.
    pub(crate) path: &'a str,
    pub(crate) key: &'a str,
    /// As it was written.
    pub(crate) text: &'a str,
}

/// A piece of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Reference(Reference<'a>),
}

/// The pieces of a value, in order. What names a provider that there is none of stays text, as with
/// Kafka Connect.
pub(crate) fn pieces(value: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut rest, mut from) = (value, 0);
    while let Some(begin) = rest[from..].find("${").map(|at| from + at) {
        match reference(&rest[begin..]) {
            Some(reference) => {
                if begin > 0 {
                    pieces.push(Piece::Text(&rest[..begin]));
                }
                pieces.push(Piece::Reference(reference));
                (rest, from) = (&rest[begin + reference.text.len()..], 0);
            }
            None => from = begin + "${".len(),
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// The reference that a text begins with.
fn reference(text: &str) -> Option<Reference<'_>> {
    let end = text.find('}')?;
    let (provider, rest) = text.get("${".len()..end)?.split_once(':')?;
    let provider = Provider::ALL.into_iter().find(|known| known.name() == provider)?;
    if rest.contains(['\n', '\r']) {
        return None;
    }
    let (path, key) = rest.split_once(':').unwrap_or(("", rest));
    Some(Reference { provider, path, key, text: &text[..=end] })
}

/// Whether a value has any.
pub(crate) fn has_reference(value: &str) -> bool {
    pieces(value).iter().any(|piece| matches!(piece, Piece::Reference(_)))
}

/// Whether a value says nothing beside its references: what joins them has no letter and no digit.
pub(crate) fn is_reference(value: &str) -> bool {
    let silent = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => !text.contains(char::is_alphanumeric),
        Piece::Reference(_) => true,
    };
    has_reference(value) && pieces(value).iter().all(silent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(value: &str) -> Vec<(Provider, &str, &str)> {
        let parts = |piece| match piece {
            Piece::Reference(found) => Some((found.provider, found.path, found.key)),
            Piece::Text(_) => None,
        };
        pieces(value).into_iter().filter_map(parts).collect()
    }

    #[test]
    fn references_read_as_kafka_connect_reads_them() {
        use Provider::{Dir, Env, File};
        for (value, expected) in [
            ("${file:/run/db.properties:password}", vec![(File, "/run/db.properties", "password")]),
            ("${file:/run/password}", vec![(File, "", "/run/password")]),
            ("${env:PGPASSWORD}", vec![(Env, "", "PGPASSWORD")]),
            ("${dir:/run/secrets:pg}", vec![(Dir, "/run/secrets", "pg")]),
            ("a${env:A}b${env:B}", vec![(Env, "", "A"), (Env, "", "B")]),
            // A key may hold colons, a path may not.
            ("${file:/a:b:c}", vec![(File, "/a", "b:c")]),
            ("${file::a}", vec![(File, "", "a")]),
            ("${a} ${env:A}", vec![(Env, "", "A")]),
            ("${vault:a:b}", vec![]),
            ("${ENV:A}", vec![]),
            ("${env}", vec![]),
            ("$env:A}", vec![]),
            ("${env:A", vec![]),
            ("${env:A\n}", vec![]),
        ] {
            assert_eq!(parts(value), expected, "{value}");
        }
    }

    #[test]
    fn a_value_of_references_alone_is_no_literal() {
        for alone in ["${env:A}", "${env:A}:${env:B}", " ${dir:/a:b}"] {
            assert!(is_reference(alone), "{alone}");
        }
        for literal in ["", ":", "s3cret", "${vault:a}", "s3cret${env:A}", "${env:A}x"] {
            assert!(!is_reference(literal), "{literal}");
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_value_is_lost(value in "[${}:a env\n]{0,40}|(\\$\\{(env|file|dir):[a:]{0,4}\\}|x){0,6}") {
            let text = |piece| match piece {
                Piece::Text(text) => text,
                Piece::Reference(found) => found.text,
            };
            prop_assert_eq!(pieces(&value).into_iter().map(text).collect::<String>(), value);
        }
    }
}
