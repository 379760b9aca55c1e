//! Which tables are captured: include and exclude lists, as in Debezium.

use highwater_connector::patterns;
use regex::{Regex, RegexBuilder};

use crate::name::TableName;

/// Schemas that are never captured.
const SYSTEM_SCHEMAS: [&str; 3] = ["pg_catalog", "information_schema", "pg_toast"];

/// The four lists. An item is a regular expression that has to match the whole name, whatever
/// its case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    include_schemas: Vec<Item>,
    exclude_schemas: Vec<Item>,
    include_tables: Vec<Item>,
    exclude_tables: Vec<Item>,
}

#[derive(Clone, Debug)]
struct Item {
    text: String,
    regex: Regex,
}

impl Filter {
    /// The filter of these four lists, each of items separated by commas.
    ///
    /// # Errors
    /// When an item is no regular expression that this release takes.
    pub(crate) fn new(
        include_schemas: &str,
        exclude_schemas: &str,
        include_tables: &str,
        exclude_tables: &str,
    ) -> Result<Self, regex::Error> {
        Ok(Self {
            include_schemas: items(include_schemas)?,
            exclude_schemas: items(exclude_schemas)?,
            include_tables: items(include_tables)?,
            exclude_tables: items(exclude_tables)?,
        })
    }

    /// Whether a table is captured.
    pub(crate) fn matches(&self, name: &TableName) -> bool {
        let schema = name.schema.as_str();
        let system = SYSTEM_SCHEMAS.contains(&schema) || schema.starts_with("pg_temp");
        !system
            && passes(&self.include_schemas, &self.exclude_schemas, schema)
            && passes(&self.include_tables, &self.exclude_tables, &name.plain())
    }

    /// Whether tables are captured by naming them.
    pub(crate) const fn includes(&self) -> bool {
        !self.include_tables.is_empty()
    }

    /// Items of `table.include.list` that match none of these tables.
    pub(crate) fn unmatched<'a>(&'a self, tables: &[TableName]) -> Vec<&'a str> {
        let names: Vec<String> = tables.iter().map(TableName::plain).collect();
        self.include_tables
            .iter()
            .filter(|item| !names.iter().any(|name| item.regex.is_match(name)))
            .map(|item| item.text.as_str())
            .collect()
    }
}

fn passes(include: &[Item], exclude: &[Item], name: &str) -> bool {
    let any = |items: &[Item]| items.iter().any(|item| item.regex.is_match(name));
    (include.is_empty() || any(include)) && !any(exclude)
}

fn items(list: &str) -> Result<Vec<Item>, regex::Error> {
    patterns(list).into_iter().map(item).collect()
}

fn item(text: String) -> Result<Item, regex::Error> {
    let regex = RegexBuilder::new(&format!(r"\A(?:{text})\z")).case_insensitive(true).build()?;
    Ok(Item { text, regex })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(include: &str, exclude: &str, name: &str) -> bool {
        let (schema, table) = name.split_once('.').unwrap();
        let filter = Filter::new("", "", include, exclude).unwrap();
        filter.matches(&TableName::new(schema, table))
    }

    #[test]
    fn items_match_the_whole_name() {
        assert!(captured("public.orders", "", "public.orders"));
        assert!(captured("public.ORDERS", "", "public.orders"));
        assert!(!captured("public.orders", "", "public.orders_old"));
        assert!(!captured("public.orders", "", "xpublic.orders"));
        assert!(captured(r"public\.t[0-9]{1,2}, other.t", "", "public.t12"));
        assert!(!captured("", "public.orders", "public.orders"));
        assert!(captured("", "public.orders", "public.items"));
        assert!(!captured("", "", "pg_catalog.pg_class"));
    }

    #[test]
    fn schemas_have_lists_of_their_own() {
        let filter = Filter::new("app,shop", "", "", "").unwrap();
        assert!(filter.matches(&TableName::new("shop", "t")));
        assert!(!filter.matches(&TableName::new("public", "t")));
    }

    #[test]
    fn items_without_a_table_are_named() {
        let filter = Filter::new("", "", "public.a,public.b.*", "").unwrap();
        assert_eq!(filter.unmatched(&[TableName::new("public", "a")]), ["public.b.*"]);
    }
}
