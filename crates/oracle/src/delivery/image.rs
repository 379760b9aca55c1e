//! The row before and after a change: which column has its value where, and which has none.

use super::error;
use super::form::Form;
use super::shape::Shape;
use crate::statement::{Columns, Literal};
use crate::{LobColumn, LobValue, OracleError, Verb};

/// Where the value of a column stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    /// Nowhere: the image lacks the column.
    Absent,
    /// In the WHERE clause, at this place.
    Before(usize),
    /// In SET, or among the values of an INSERT.
    After(usize),
    /// Among the large objects that the change wrote.
    Large(usize),
    /// Nowhere: a large object that the statement did not touch.
    Unchanged,
    /// Nowhere: a large object that changed, or may have.
    Unavailable,
}

/// How large objects are shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LargeObjects {
    /// Not at all (`cdc.lob.mode=skip`).
    LeftOut,
    /// With their values where redo has them, else with this text in their place.
    Shown {
        /// `cdc.unavailable.placeholder`.
        placeholder: String,
    },
}

/// What a change says of a row: the parts of its statement, and its large objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) verb: Verb,
    /// Columns of the WHERE clause.
    pub(crate) before: &'a Columns<'a>,
    /// Columns of SET, or of an INSERT.
    pub(crate) after: &'a Columns<'a>,
    pub(crate) lobs: &'a [LobColumn],
}

/// A value to write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Written<'a> {
    Literal(&'a Literal<'a>),
    Large(&'a LobValue),
}

impl<'a> Row<'a> {
    /// The value of a cell; `None` where there is none.
    pub(crate) fn value(&self, cell: Cell) -> Option<Written<'a>> {
        let literal = |columns: &'a Columns<'a>, at: usize| {
            columns.get(at).map(|(_, literal)| Written::Literal(literal))
        };
        match cell {
            Cell::Before(at) => literal(self.before, at),
            Cell::After(at) => literal(self.after, at),
            Cell::Large(at) => self.lobs.get(at).map(|lob| Written::Large(&lob.value)),
            Cell::Absent | Cell::Unchanged | Cell::Unavailable => None,
        }
    }
}

/// Both images of a row, one cell a column, in the table's order. One value serves all changes.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// The row as it was; all absent for an INSERT.
    pub(crate) before: Vec<Cell>,
    /// The row as it is; all absent for a DELETE.
    pub(crate) after: Vec<Cell>,
    /// Whether SET names a column of the key.
    pub(crate) sets_key: bool,
}

impl Images {
    /// Finds the columns of a change.
    ///
    /// # Errors
    /// When it names a column that the shape does not have, or one twice, or a large object is too large
    /// or cannot be read.
    pub(crate) fn read(&mut self, shape: &Shape, row: &Row<'_>) -> Result<(), OracleError> {
        for image in [&mut self.before, &mut self.after] {
            image.clear();
            image.resize(shape.columns.len(), Cell::Absent);
        }
        find(shape, row.before, &mut self.before, Cell::Before)?;
        find(shape, row.after, &mut self.after, Cell::After)?;
        let mut set = shape.columns.iter().zip(&self.after);
        self.sets_key = set.any(|(column, cell)| column.is_key && *cell != Cell::Absent);
        for (at, lob) in row.lobs.iter().enumerate() {
            let place = shape.place(&lob.column, at);
            let place = place.ok_or_else(|| error::unknown_column(shape, &lob.column))?;
            if let Some(cell) = self.after.get_mut(place) {
                *cell = Cell::Large(at);
            }
        }
        match row.verb {
            Verb::Insert => self.complete(shape, false),
            Verb::Update => self.complete(shape, true),
            Verb::Delete => {}
        }
        Ok(())
    }

    /// Fills the row as it is: what an UPDATE did not set is as it was.
    fn complete(&mut self, shape: &Shape, is_update: bool) {
        let cells = self.before.iter().zip(&mut self.after);
        for (column, (before, after)) in shape.columns.iter().zip(cells) {
            *after = match (*after, column.form) {
                // Its parts stand in rows that are not put together.
                (_, Form::Xml) => Cell::Unavailable,
                (Cell::Absent, form) if form.is_large() && *before == Cell::Absent => {
                    if is_update {
                        Cell::Unchanged
                    } else {
                        Cell::Unavailable
                    }
                }
                (Cell::Absent, _) => *before,
                (found, _) => found,
            };
        }
    }
}

fn find(
    shape: &Shape,
    columns: &Columns<'_>,
    image: &mut [Cell],
    cell: impl Fn(usize) -> Cell,
) -> Result<(), OracleError> {
    let mut expected = 0;
    for (at, (name, _)) in columns.iter().enumerate() {
        let place = shape.place(name, expected);
        let place = place.ok_or_else(|| error::unknown_column(shape, name))?;
        expected = place + 1;
        if let Some(found) = image.get_mut(place)
            && std::mem::replace(found, cell(at)) != Cell::Absent
        {
            return Err(error::named_twice(shape, name));
        }
    }
    Ok(())
}
