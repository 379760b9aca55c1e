//! Names of tables: as stored, as matched, and as written in SQL.

use std::fmt;
use std::str::FromStr;

use highwater_connector::qualified_name;

/// A table's schema and name, verbatim.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableName {
    /// Schema.
    pub schema: String,
    /// Name inside the schema.
    pub table: String,
}

impl TableName {
    /// A name from its two parts.
    pub fn new(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self { schema: schema.into(), table: table.into() }
    }

    /// `schema.table` without any quoting: what include and exclude lists match, as in Debezium.
    pub fn plain(&self) -> String {
        format!("{}.{}", self.schema, self.table)
    }

    /// Both parts as quoted identifiers, for SQL.
    pub fn sql(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }
}

/// The qualified name that records and table descriptions bear: `public.orders`, or
/// `"My.Schema"."Order.Items"` where a part holds a dot or a quote, so that it can be taken apart.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&qualified_name(&self.schema, &self.table))
    }
}

/// A text that is no qualified name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no qualified table name; one looks like public.orders")]
pub struct NameError(String);

impl FromStr for TableName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = split_part(text).and_then(|(schema, rest)| {
            let (table, rest) = split_part(rest.strip_prefix('.')?)?;
            rest.is_empty().then(|| Self::new(schema, table))
        });
        parts.ok_or_else(|| NameError(text.to_owned()))
    }
}

/// The first part of a qualified name, and what follows it.
fn split_part(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find('.').unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_owned(), &text[end..]));
    };
    let mut rest = quoted;
    let mut name = String::new();
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => rest = after,
            None => return Some((name, rest)),
        }
        name.push('"');
    }
}

/// An SQL identifier in quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A string literal, for SQL with `standard_conforming_strings` and for replication commands.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_stay_apart() {
        assert_eq!(TableName::new("public", "t").to_string(), "public.t");
        assert_eq!(TableName::new("a.b", "c").to_string(), "\"a.b\".c");
        assert_eq!(TableName::new("a", "b.c").to_string(), "a.\"b.c\"");
        assert_eq!(TableName::new("a", "q\"").to_string(), "a.\"q\"\"\"");
        assert_eq!(TableName::new("a", "q\"").sql(), "\"a\".\"q\"\"\"");
    }

    #[test]
    fn names_are_read_back() {
        for (schema, table) in [("public", "t"), ("a.b", "c\""), ("", "\"\""), ("ключ", " ")] {
            let name = TableName::new(schema, table);
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for text in ["", "a", "a.", ".a", "a.b.c", "\"a", "\"a\"b.c"] {
            assert!(text.parse::<TableName>().is_err(), "{text}");
        }
    }

    #[test]
    fn literals_cannot_be_left() {
        assert_eq!(literal("a'b"), "'a''b'");
    }
}
