//! Keys of records: a JSON object of the key columns, or of the row's id.

use bytes::Bytes;
use highwater_connector::Json;

use super::error;
use super::image::{Cell, Row, Written};
use super::shape::{KeyPlaces, Shape};
use crate::OracleError;

/// The key of a row with these cells; `None` where the table has no key, or the redo not the whole of it.
///
/// # Errors
/// When a value of it has no JSON form.
pub(crate) fn key(
    json: &mut Json,
    shape: &Shape,
    row: &Row<'_>,
    cells: &[Cell],
    row_id: Option<&str>,
) -> Result<Option<Bytes>, OracleError> {
    json.discard();
    match (&shape.key, row_id) {
        (KeyPlaces::Columns(places), _) => {
            let is_whole = columns(json, shape, places, row, cells)?;
            Ok(is_whole.then(|| json.finish()))
        }
        (KeyPlaces::RowId, Some(row_id)) => {
            json.raw(r#"{"ROWID":"#);
            json.string(row_id);
            json.raw("}");
            Ok(Some(json.finish()))
        }
        (KeyPlaces::RowId, None) | (KeyPlaces::None, _) => Ok(None),
    }
}

/// Writes the key columns; false where one of them has no value.
fn columns(
    json: &mut Json,
    shape: &Shape,
    places: &[usize],
    row: &Row<'_>,
    cells: &[Cell],
) -> Result<bool, OracleError> {
    let mut separator = "{";
    for place in places {
        let (Some(column), Some(cell)) = (shape.columns.get(*place), cells.get(*place)) else {
            return Ok(false);
        };
        let Some(Written::Literal(literal)) = row.value(*cell) else { return Ok(false) };
        json.raw(std::mem::replace(&mut separator, ","));
        json.raw(&column.member);
        let written = column.form.write(json, literal);
        written.map_err(|misfit| error::misfit(shape, column, &misfit))?;
    }
    json.raw("}");
    Ok(true)
}
