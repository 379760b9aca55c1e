//! Which columns are the key of a table's records.

use crate::{Code, ColumnLayout, OracleError, TableLayout, TableName};

/// Where a key comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeySource {
    /// `cdc.key.columns`.
    Override,
    /// The primary key.
    PrimaryKey,
    /// The first unique index by name all of whose columns are NOT NULL; its name.
    UniqueIndex(String),
    /// The ROWID: there is no key, and `cdc.key.missing` is `rowid`.
    RowId,
    /// There is no key, and `cdc.key.missing` is `none`.
    None,
}

/// The key of a table's records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// See [`KeySource`].
    pub source: KeySource,
    /// Its columns, in order; empty without any.
    pub columns: Vec<String>,
}

/// What to do with a table that has no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissingKey {
    /// Stop.
    #[default]
    Fail,
    /// Key records by ROWID.
    RowId,
    /// Give records no key.
    None,
}

/// The key that an operator chose for a table.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Override {
    table: String,
    columns: Vec<String>,
}

/// How keys are chosen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRules {
    overrides: Vec<Override>,
    missing: MissingKey,
}

impl KeyRules {
    /// Reads `cdc.key.columns` (`SCHEMA.TABLE:COL1,COL2;...`, with or without the pluggable database
    /// in front, names in any case).
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(overrides: &str, missing: MissingKey) -> Result<Self, String> {
        let items = overrides.split(';').map(str::trim).filter(|item| !item.is_empty());
        let overrides: Vec<Override> = items.map(parse_override).collect::<Result<_, _>>()?;
        for (at, item) in overrides.iter().enumerate() {
            if overrides.iter().take(at).any(|other| same(&other.table, &item.table)) {
                return Err(format!("names the key of {} twice", item.table));
            }
        }
        Ok(Self { overrides, missing })
    }

    /// The key of a table. `is_excluded` says which of its columns are not captured.
    ///
    /// # Errors
    /// CDC-3001 when there is none and none may be missing, or a column of it does not exist, is
    /// excluded, or cannot be part of a key.
    pub fn choose(
        &self,
        layout: &TableLayout,
        is_excluded: impl Fn(&str) -> bool,
    ) -> Result<Key, OracleError> {
        let key = self.key_of(layout)?;
        for name in &key.columns {
            let column = layout.columns.iter().find(|column| column.name == *name);
            let fault = match column {
                None => "is not a column of the table, or is hidden or virtual",
                Some(_) if is_excluded(name) => "is left out by cdc.columns.exclude",
                Some(column) if !column.column_type().can_be_key() => {
                    "has a type that no key is made of"
                }
                Some(_) => continue,
            };
            return Err(refused(&layout.name, name, fault));
        }
        Ok(key)
    }

    /// Whether a key that was chosen earlier can still come from these rules.
    pub fn allow(&self, table: &TableName, key: &Key) -> bool {
        let override_fits = match (self.override_of(table), &key.source) {
            (Some(chosen), KeySource::Override) => {
                chosen.columns.len() == key.columns.len()
                    && chosen.columns.iter().zip(&key.columns).all(|(a, b)| same(a, b))
            }
            (None, KeySource::Override) | (Some(_), _) => false,
            (None, _) => true,
        };
        override_fits
            && match key.source {
                KeySource::RowId => self.missing == MissingKey::RowId,
                KeySource::None => self.missing == MissingKey::None,
                _ => true,
            }
    }

    fn override_of(&self, table: &TableName) -> Option<&Override> {
        let (whole, short) = (table.to_string(), format!("{}.{}", table.owner, table.table));
        self.overrides.iter().find(|item| same(&item.table, &whole) || same(&item.table, &short))
    }

    fn key_of(&self, layout: &TableLayout) -> Result<Key, OracleError> {
        if let Some(chosen) = self.override_of(&layout.name) {
            let columns = chosen.columns.iter().map(|name| in_layout(layout, name)).collect();
            return Ok(Key { source: KeySource::Override, columns });
        }
        if !layout.primary_key.is_empty() {
            let columns = layout.primary_key.clone();
            return Ok(Key { source: KeySource::PrimaryKey, columns });
        }
        let usable = layout.unique_indexes.iter().filter(|index| !index.columns.is_empty());
        if let Some(index) = usable.min_by_key(|index| &index.name) {
            let source = KeySource::UniqueIndex(index.name.clone());
            return Ok(Key { source, columns: index.columns.clone() });
        }
        let source = match self.missing {
            MissingKey::Fail => return Err(missing(&layout.name)),
            MissingKey::RowId => KeySource::RowId,
            MissingKey::None => KeySource::None,
        };
        Ok(Key { source, columns: Vec::new() })
    }
}

fn parse_override(item: &str) -> Result<Override, String> {
    let wrong = || format!("has {item:?}, which is not of the form SCHEMA.TABLE:COL1,COL2");
    let (table, columns) = item.rsplit_once(':').ok_or_else(wrong)?;
    let columns: Vec<String> = columns.split(',').map(|name| name.trim().to_owned()).collect();
    let table = table.trim();
    if !table.contains('.') || columns.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok(Override { table: table.to_owned(), columns })
}

fn same(left: &str, right: &str) -> bool {
    left.to_uppercase() == right.to_uppercase()
}

/// A column under the dictionary's name; under the given one where there is no such column.
fn in_layout(layout: &TableLayout, name: &str) -> String {
    let exact = layout.columns.iter().find(|column| column.name == name);
    let any_case = || layout.columns.iter().find(|column| same(&column.name, name));
    exact.or_else(any_case).map_or(name, |column: &ColumnLayout| &column.name).to_owned()
}

fn refused(table: &TableName, column: &str, fault: &str) -> OracleError {
    OracleError::new(
        Code::Decode,
        format!("the key column {column} of {table} {fault}"),
        format!(
            "name other columns for {table} in cdc.key.columns, or leave the table out with \
             cdc.tables.exclude"
        ),
    )
}

fn missing(table: &TableName) -> OracleError {
    OracleError::new(
        Code::Decode,
        format!(
            "{table} has neither a primary key nor a unique index of NOT NULL columns, so its \
             records would have no key"
        ),
        format!(
            "name its key in cdc.key.columns ({table}:COLUMN), set cdc.key.missing to rowid or \
             none, or leave the table out with cdc.tables.exclude"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::sample;

    fn rules(overrides: &str, missing: MissingKey) -> KeyRules {
        KeyRules::parse(overrides, missing).unwrap()
    }

    fn chosen(rules: &KeyRules, layout: &TableLayout) -> (KeySource, Vec<String>) {
        let key = rules.choose(layout, |_| false).unwrap();
        (key.source, key.columns)
    }

    fn keyless() -> TableLayout {
        TableLayout { primary_key: Vec::new(), ..sample::layout(&["ID", "A", "B"]) }
    }

    fn indexed() -> TableLayout {
        let mut layout = keyless();
        layout.unique_indexes = vec![sample::index("Z", &["A"]), sample::index("C", &["B", "A"])];
        layout
    }

    #[test]
    fn the_first_source_that_there_is_gives_the_key() {
        let mut layout = indexed();
        let plain = rules("", MissingKey::Fail);
        let of_index = (KeySource::UniqueIndex("C".to_owned()), vec!["B".into(), "A".into()]);
        assert_eq!(chosen(&plain, &layout), of_index);
        layout.primary_key = vec!["ID".to_owned()];
        assert_eq!(chosen(&plain, &layout), (KeySource::PrimaryKey, vec!["ID".into()]));
        let overridden = rules("x.y:a; hr.t : b , a", MissingKey::Fail);
        let of_operator = (KeySource::Override, vec!["B".into(), "A".into()]);
        assert_eq!(chosen(&overridden, &layout), of_operator);
        layout.name.pdb = Some("P".to_owned());
        assert_eq!(chosen(&overridden, &layout), of_operator);
        assert_eq!(chosen(&rules("p.hr.t:b,a", MissingKey::Fail), &layout), of_operator);
        assert_ne!(chosen(&rules("q.hr.t:b,a", MissingKey::Fail), &layout), of_operator);
    }

    #[test]
    fn a_missing_key_is_an_error_a_rowid_or_none() {
        let error = rules("", MissingKey::Fail).choose(&keyless(), |_| false).unwrap_err();
        assert_eq!(error.code, Code::Decode);
        assert!(error.what.contains("HR.T"), "{error}");
        let rowid = chosen(&rules("", MissingKey::RowId), &keyless());
        assert_eq!(rowid, (KeySource::RowId, Vec::new()));
        let none = chosen(&rules("", MissingKey::None), &keyless());
        assert_eq!(none, (KeySource::None, Vec::new()));
    }

    #[test]
    fn a_key_column_must_be_there_captured_and_of_a_plain_type() {
        let error = rules("hr.t:GONE", MissingKey::RowId).choose(&keyless(), |_| false);
        assert!(error.unwrap_err().what.contains("GONE"));
        let plain = rules("", MissingKey::Fail);
        let error = plain.choose(&sample::layout(&["ID", "A"]), |name| name == "ID").unwrap_err();
        assert_eq!(error.code, Code::Decode);
        assert!(error.what.contains("ID") && error.what.contains("cdc.columns.exclude"), "{error}");
        plain.choose(&sample::layout(&["ID", "A"]), |name| name == "A").unwrap();
        let mut layout = sample::layout(&["ID", "A"]);
        layout.columns[0].type_name = "CLOB".to_owned();
        assert_eq!(plain.choose(&layout, |_| false).unwrap_err().code, Code::Decode);
    }

    #[test]
    fn a_column_of_the_exact_name_comes_before_one_of_another_case() {
        let layout = sample::layout(&["A", "a"]);
        let key = |name| chosen(&rules(&format!("HR.T:{name}"), MissingKey::Fail), &layout).1;
        assert_eq!((key("a"), key("A")), (vec!["a".to_owned()], vec!["A".to_owned()]));
    }

    #[test]
    fn an_override_of_another_form_is_refused() {
        for text in ["HR.T", "T:A", "HR.T:", "HR.T:A,,B", ":A", "HR.T:A;hr.t:B"] {
            assert!(KeyRules::parse(text, MissingKey::Fail).is_err(), "{text:?}");
        }
        assert_eq!(KeyRules::parse(" ; ", MissingKey::Fail).unwrap(), KeyRules::default());
    }

    #[test]
    fn a_key_of_an_earlier_run_must_fit_the_rules_of_today() {
        let table = sample::layout(&["ID"]).name;
        let key = |source, columns: &[&str]| Key {
            source,
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        };
        let of_table = key(KeySource::PrimaryKey, &["ID"]);
        let of_operator = key(KeySource::Override, &["A", "B"]);
        let plain = rules("", MissingKey::RowId);
        assert!(plain.allow(&table, &of_table) && !plain.allow(&table, &of_operator));
        assert!(plain.allow(&table, &key(KeySource::RowId, &[])));
        assert!(!plain.allow(&table, &key(KeySource::None, &[])));
        let overridden = rules("hr.t:a,b", MissingKey::Fail);
        assert!(overridden.allow(&table, &of_operator) && !overridden.allow(&table, &of_table));
        assert!(!rules("hr.t:b,a", MissingKey::Fail).allow(&table, &of_operator));
        assert!(!rules("hr.t:a", MissingKey::Fail).allow(&table, &of_operator));
    }
}
