//! Words of a DDL statement: enough to tell what kind it is, and no grammar.

/// A word of a statement. Literals, comments, hints and other signs are no words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// Unquoted and without an owner, in capitals: a keyword or a name.
    Plain(String),
    /// A name that was quoted or has an owner, by its parts: never a keyword.
    Name(Vec<String>),
    /// `(`.
    Open,
    /// `)`.
    Close,
}

impl Word {
    /// Whether it is this keyword.
    pub fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Plain(word) if word == keyword)
    }

    /// Whether it is one of these keywords.
    pub fn is_any(&self, keywords: &[&str]) -> bool {
        matches!(self, Self::Plain(word) if keywords.contains(&word.as_str()))
    }

    /// Its parts, read as a name; `None` for a parenthesis.
    pub fn into_name(self) -> Option<Vec<String>> {
        match self {
            Self::Plain(word) => Some(vec![word]),
            Self::Name(parts) => Some(parts),
            Self::Open | Self::Close => None,
        }
    }
}

/// The words of a statement, in order.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    rest: &'a str,
}

/// Reads a statement. Whatever the text, it ends; what is never closed reaches to the end.
pub const fn words(sql: &str) -> Words<'_> {
    Words { rest: sql }
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        loop {
            self.rest = after_blanks(self.rest);
            let first = self.rest.chars().next()?;
            match first {
                '(' | ')' => {
                    self.skip(1);
                    return Some(if first == '(' { Word::Open } else { Word::Close });
                }
                '\'' => self.rest = after_quoted(&self.rest[1..], '\''),
                '"' => return Some(self.name()),
                _ if is_letter(first) => {
                    if let Some(word) = self.word() {
                        return Some(word);
                    }
                }
                other => self.skip(other.len_utf8()),
            }
        }
    }
}

impl Words<'_> {
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// A word that begins with a letter; none where that was the mark of a literal (`N'x'`, `q'[x]'`).
    fn word(&mut self) -> Option<Word> {
        let (word, after) = split_word(self.rest);
        let Some(literal) = after.strip_prefix('\'') else { return Some(self.name()) };
        match word.to_ascii_uppercase().as_str() {
            "Q" | "NQ" => self.rest = after_alternative_quote(literal),
            "N" => self.rest = after_quoted(literal, '\''),
            _ => return Some(self.name()),
        }
        None
    }

    /// A name with all its parts, or a word without any.
    fn name(&mut self) -> Word {
        let is_quoted = self.rest.starts_with('"');
        let first = self.part();
        let mut parts = vec![first];
        while let Some(after) = after_dot(self.rest) {
            self.rest = after;
            parts.push(self.part());
        }
        match parts.as_mut_slice() {
            [only] if !is_quoted => Word::Plain(std::mem::take(only)),
            _ => Word::Name(parts),
        }
    }

    fn part(&mut self) -> String {
        if let Some(quoted) = self.rest.strip_prefix('"') {
            self.rest = after_quoted(quoted, '"');
            let inner = &quoted[..quoted.len() - self.rest.len()];
            return inner.strip_suffix('"').unwrap_or(inner).replace("\"\"", "\"");
        }
        let (word, after) = split_word(self.rest);
        self.rest = after;
        word.to_uppercase()
    }
}

/// What a name may be made of without quotes.
fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$' | '#')
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter| !is_letter(letter)).unwrap_or(text.len()))
}

/// Oracle takes blanks and comments around the dot of a name.
fn after_dot(text: &str) -> Option<&str> {
    let after = after_blanks(after_blanks(text).strip_prefix('.')?);
    after.starts_with(|letter| letter == '"' || is_letter(letter)).then_some(after)
}

fn after_blanks(mut text: &str) -> &str {
    loop {
        let trimmed = text.trim_start();
        let after = if let Some(comment) = trimmed.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = trimmed.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            return trimmed;
        };
        text = after;
    }
}

/// Behind the closing quote; a doubled one stands for itself.
fn after_quoted(mut text: &str, quote: char) -> &str {
    while let Some((_, after)) = text.split_once(quote) {
        match after.strip_prefix(quote) {
            Some(doubled) => text = doubled,
            None => return after,
        }
    }
    ""
}

/// Behind `q'[...]'`, whose text ends with the partner of its first letter and a quote.
fn after_alternative_quote(text: &str) -> &str {
    let mut letters = text.chars();
    let Some(open) = letters.next() else { return "" };
    let close = match open {
        '[' => ']',
        '{' => '}',
        '<' => '>',
        '(' => ')',
        other => other,
    };
    letters.as_str().split_once(&format!("{close}'")).map_or("", |(_, after)| after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(sql: &str) -> Vec<String> {
        let show = |word| match word {
            Word::Plain(word) => word,
            Word::Name(parts) => format!("<{}>", parts.join("|")),
            Word::Open => "(".to_owned(),
            Word::Close => ")".to_owned(),
        };
        words(sql).map(show).collect()
    }

    #[test]
    fn words_are_in_capitals_and_names_joined() {
        assert_eq!(shown("alter Table hr.emp add"), ["ALTER", "TABLE", "<HR|EMP>", "ADD"]);
        assert_eq!(shown(r#"drop table "Hr"."Add""#), ["DROP", "TABLE", "<Hr|Add>"]);
        assert_eq!(shown(r#"drop table hr . /* x */ "t""#), ["DROP", "TABLE", "<HR|t>"]);
        assert_eq!(shown(r#"drop table "TABLE""#), ["DROP", "TABLE", "<TABLE>"]);
        assert_eq!(shown(r#"x "a""b" y"#), ["X", "<a\"b>", "Y"]);
        assert_eq!(shown("größe_1$# ß"), ["GRÖSSE_1$#", "SS"]);
    }

    #[test]
    fn parentheses_are_words() {
        assert_eq!(
            shown("add(c number(10,2));"),
            ["ADD", "(", "C", "NUMBER", "(", "10", "2", ")", ")"]
        );
    }

    #[test]
    fn literals_and_comments_are_none() {
        assert_eq!(shown("a 'b ''c'' -- d' e"), ["A", "E"]);
        assert_eq!(shown("a --b 'c\n d /* e ' -- */ f /*+ g */"), ["A", "D", "F"]);
        assert_eq!(shown("a q'[b ' c]' d nQ'!e'f!' g N'h' i"), ["A", "D", "G", "I"]);
        assert_eq!(shown("date'2024-01-01' q x"), ["DATE", "Q", "X"]);
        assert_eq!(shown("a 'b"), ["A"]);
        assert_eq!(shown("a /* b"), ["A"]);
        assert_eq!(shown("a \"b"), ["A", "<b>"]);
        assert_eq!(shown("a q'"), ["A"]);
    }

    proptest! {
        #[test]
        fn every_text_ends(sql in r#"[a-c'"(). \-/*\n\[\]qQnNé;]{0,60}"#) {
            prop_assert!(words(&sql).count() <= sql.len());
        }

        /// Words between comments, literals and blanks are found whatever stands around them.
        #[test]
        fn what_is_no_word_hides_none(
            noise in prop::collection::vec(
                prop::sample::select(vec![
                    " ", "\n", "/* drop table */", "-- x'y\"z\n", "'it''s'", "q'{a'b}'", ";",
                ]),
                0..6,
            ),
        ) {
            let noise = noise.concat();
            let found = shown(&format!("alter {noise} table {noise} x"));
            prop_assert_eq!(found, ["ALTER", "TABLE", "X"]);
        }
    }
}
