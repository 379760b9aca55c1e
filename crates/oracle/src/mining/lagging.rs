//! Rows that the present dictionary does not decode, because a DDL has changed their table since.

use crate::row::{Operation, RedoRow};

/// `STATUS` of a row whose statement cannot be run.
const NOT_EXECUTABLE: u32 = 2;

/// Whether a row names columns only by their place, as `"COL 1"`: the present dictionary has another
/// layout than the row. Rows that take something back and those of large objects do not tell.
pub(super) fn is_lagging(row: &RedoRow) -> bool {
    let is_change =
        matches!(row.operation, Operation::Insert | Operation::Update | Operation::Delete);
    let sql = row.sql_redo.as_deref().unwrap_or_default();
    is_change && !row.is_undo && row.status == NOT_EXECUTABLE && names_places(sql)
}

/// Whether a quoted name of the form `COL n` stands outside of a literal.
fn names_places(sql: &str) -> bool {
    // Text between quotes of a literal is left out: every second part, as a doubled quote inside one
    // only ends and begins it again.
    sql.split('\'').step_by(2).any(|part| part.split("\"COL ").skip(1).any(begins_with_place))
}

fn begins_with_place(rest: &str) -> bool {
    let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    digits > 0 && rest.get(digits..).is_some_and(|rest| rest.starts_with('"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mining::fake::{row, transaction};

    fn with(status: u32, sql: &str) -> RedoRow {
        let row = row(1, 10, 1, Operation::Update, transaction(1));
        RedoRow { status, sql_redo: Some(sql.to_owned()), ..row }
    }

    const GENERIC: &str = "update \"HR\".\"EMP\" set \"COL 2\" = HEXTORAW('78') where \"COL 1\" = \
                           HEXTORAW('c102')";

    #[test]
    fn names_of_places_are_found() {
        assert!(is_lagging(&with(2, GENERIC)));
        assert!(is_lagging(&with(
            2,
            "delete from \"A\".\"B\" where \"NAME\" = 'it''s' and \"COL 12\" \
                                     IS NULL"
        )));
    }

    #[test]
    fn other_rows_are_not_taken_for_it() {
        assert!(!is_lagging(&with(0, GENERIC)));
        assert!(!is_lagging(&with(3, GENERIC)));
        assert!(!is_lagging(&with(2, "update \"A\".\"B\" set \"COL A\" = '1'")));
        assert!(!is_lagging(&with(2, "update \"A\".\"B\" set \"COL \" = '1'")));
        assert!(!is_lagging(&with(2, "update \"A\".\"B\" set \"N\" = 'it''s \"COL 1\" here'")));
        assert!(!is_lagging(&RedoRow { is_undo: true, ..with(2, GENERIC) }));
        assert!(!is_lagging(&RedoRow { operation: Operation::LobWrite, ..with(2, GENERIC) }));
        assert!(!is_lagging(&RedoRow { sql_redo: None, ..with(2, GENERIC) }));
    }
}
