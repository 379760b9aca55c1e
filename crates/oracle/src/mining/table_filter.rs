//! Which tables and columns are captured, by patterns.

use regex::{Regex, RegexBuilder};

use crate::TableName;

/// Regular expressions, any of which may match a whole name.
#[derive(Clone, Debug, Default)]
struct Patterns(Vec<Regex>);

impl Patterns {
    fn new(patterns: &[String], is_case_sensitive: bool) -> Result<Self, regex::Error> {
        let compile = |pattern: &String| {
            RegexBuilder::new(&format!(r"\A(?:{pattern})\z"))
                .case_insensitive(!is_case_sensitive)
                .build()
        };
        patterns.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(name))
    }
}

/// Which tables are captured. A pattern is a regular expression that has to match the whole of
/// `PDB.OWNER.TABLE`, or of `OWNER.TABLE` in a database without containers.
#[derive(Clone, Debug, Default)]
pub struct TableFilter {
    include: Patterns,
    exclude: Patterns,
}

impl TableFilter {
    /// The filter of these patterns. Without a pattern to include, no table is captured.
    ///
    /// # Errors
    /// When a pattern is no regular expression.
    pub fn new(
        include: &[String],
        exclude: &[String],
        is_case_sensitive: bool,
    ) -> Result<Self, regex::Error> {
        Ok(Self {
            include: Patterns::new(include, is_case_sensitive)?,
            exclude: Patterns::new(exclude, is_case_sensitive)?,
        })
    }

    /// Whether a table is captured. What lies in the recycle bin is not, whatever the patterns say.
    pub fn captures(&self, table: &TableName) -> bool {
        let name = table.to_string();
        let is_in_recycle_bin = table.table.starts_with("BIN$");
        !is_in_recycle_bin && self.include.matches(&name) && !self.exclude.matches(&name)
    }
}

/// Which columns are left out. A pattern has to match the whole of the table's name with a dot and the
/// column's name behind it.
#[derive(Clone, Debug, Default)]
pub struct ColumnFilter {
    exclude: Patterns,
}

impl ColumnFilter {
    /// The filter of these patterns.
    ///
    /// # Errors
    /// When a pattern is no regular expression.
    pub fn new(exclude: &[String], is_case_sensitive: bool) -> Result<Self, regex::Error> {
        Ok(Self { exclude: Patterns::new(exclude, is_case_sensitive)? })
    }

    /// Whether a column is left out.
    pub fn excludes(&self, table: &TableName, column: &str) -> bool {
        self.exclude.matches(&format!("{table}.{column}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(pdb: Option<&str>, owner: &str, table: &str) -> TableName {
        TableName { pdb: pdb.map(str::to_owned), owner: owner.to_owned(), table: table.to_owned() }
    }

    fn filter(include: &[&str], exclude: &[&str], is_case_sensitive: bool) -> TableFilter {
        let texts = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        TableFilter::new(&texts(include), &texts(exclude), is_case_sensitive).unwrap()
    }

    #[test]
    fn a_pattern_matches_the_whole_name() {
        let filter = filter(&["HR.EMP", r"HR\.DEP.*"], &[], false);
        assert!(filter.captures(&table(None, "HR", "EMP")));
        assert!(filter.captures(&table(None, "hr", "departments")));
        assert!(!filter.captures(&table(None, "HR", "EMPLOYEE")));
        assert!(!filter.captures(&table(None, "XHR", "EMP")));
        assert!(!filter.captures(&table(Some("PDB1"), "HR", "EMP")));
    }

    #[test]
    fn alternatives_are_held_together() {
        let filter = filter(&[r"HR\.A|HR\.B"], &[], false);
        assert!(filter.captures(&table(None, "HR", "B")));
        assert!(!filter.captures(&table(None, "HR", "AX")));
    }

    #[test]
    fn exclusion_wins_and_containers_count() {
        let filter = filter(&[r"PDB1\.HR\..*"], &[r".*\.TMP_.*"], false);
        assert!(filter.captures(&table(Some("PDB1"), "HR", "EMP")));
        assert!(!filter.captures(&table(Some("PDB1"), "HR", "TMP_1")));
        assert!(!filter.captures(&table(Some("PDB2"), "HR", "EMP")));
    }

    #[test]
    fn case_counts_where_it_is_told_to() {
        let filter = filter(&[r"HR\.Emp"], &[], true);
        assert!(filter.captures(&table(None, "HR", "Emp")));
        assert!(!filter.captures(&table(None, "HR", "EMP")));
    }

    #[test]
    fn nothing_is_captured_without_a_pattern_and_nothing_in_the_recycle_bin() {
        assert!(!filter(&[], &[], false).captures(&table(None, "HR", "EMP")));
        assert!(!filter(&[".*"], &[], false).captures(&table(None, "HR", "BIN$x==$0")));
    }

    #[test]
    fn what_is_no_regular_expression_is_refused() {
        assert!(TableFilter::new(&["HR.(".to_owned()], &[], false).is_err());
        assert!(ColumnFilter::new(&["*".to_owned()], false).is_err());
    }

    #[test]
    fn columns_are_left_out_by_their_whole_name() {
        let filter = ColumnFilter::new(&[r"HR\.EMP\.S.*".to_owned()], false).unwrap();
        assert!(filter.excludes(&table(None, "HR", "EMP"), "SALARY"));
        assert!(!filter.excludes(&table(None, "HR", "EMP"), "NAME"));
        assert!(!filter.excludes(&table(None, "HR", "EMPX"), "SALARY"));
    }
}
