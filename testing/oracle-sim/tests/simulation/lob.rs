//! Large objects, as far as their redo tells them.

use std::collections::BTreeMap;

use crate::sql::{Edit, Values};

/// The large objects of the table that has some.
pub(crate) const COLUMNS: [&str; 3] = ["BODY", "NOTE", "SCAN"];

/// What is known of an object.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Object {
    text: Option<String>,
    /// Whether nothing follows the text.
    is_whole: bool,
    is_lost: bool,
    /// Digits of a byte.
    width: usize,
}

impl Object {
    /// An object of which nothing is known.
    pub(crate) fn unknown(column: &str) -> Self {
        Self { width: if column == "SCAN" { 2 } else { 1 }, ..Self::default() }
    }

    /// An object whose value a statement gives.
    pub(crate) fn given(column: &str, value: Option<String>) -> Self {
        Self { text: value, is_whole: true, ..Self::unknown(column) }
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.text.as_ref().is_some_and(|text| !text.is_empty())
    }

    pub(crate) fn edit(&mut self, edit: Edit) {
        let text = self.text.get_or_insert_default();
        let length = text.chars().count() / self.width;
        match edit {
            Edit::Write { offset, data } if offset == length + 1 => text.push_str(&data),
            Edit::Trim(to) if to == length => self.is_whole = true,
            _ => self.is_lost = true,
        }
    }

    /// The value, if it is known whole.
    pub(crate) fn value(&self) -> Option<&Option<String>> {
        (self.is_whole && !self.is_lost).then_some(&self.text)
    }
}

/// Takes the values of objects out of what a statement gives.
pub(crate) fn taken(given: &mut Values) -> BTreeMap<String, Object> {
    let columns = COLUMNS.iter().filter_map(|column| given.remove_entry(*column));
    columns.map(|(column, value)| (column.clone(), Object::given(&column, value))).collect()
}
