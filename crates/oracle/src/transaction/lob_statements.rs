//! The rows that statements on large objects give, seen on a database of release 23ai, and the changes
//! that they are. Tests of the assembler.

use std::sync::Arc;

use super::lob_assembler::{LobAssembler, LobMode, LobSettings};
use super::lob_image::{ImageValue, RowImage};
use super::lob_piece::{
    LobAssignment, LobData, LobEdit, LobHead, LobKind, LobLiteral, LobPiece, LobTarget, RowPiece,
};
use super::lob_row_id::PLACEHOLDER;
use crate::{
    Change, Image, LobValue, RedoAddress, RedoPoint, RedoThread, Scn, TableName, TransactionKey,
    Verb,
};

pub(super) const REAL: &str = "AAAR9zAAHAAAACrAAB";
pub(super) const OTHER: &str = "AAAR9zAAHAAAACrAAC";

/// A row of a transaction, before it has a place in the redo.
#[derive(Clone, Debug)]
pub(super) enum Row {
    Piece(RowPiece),
    Lob(LobPiece),
    /// A row that closes what is open: one of a rollback, of another table, or the COMMIT.
    Else,
}

pub(super) fn at(block: u64) -> RedoPoint {
    let address = RedoAddress { sequence: 1, block, byte: 16, ssn: 0 };
    RedoPoint { thread: RedoThread(1), scn: Scn(block), address: Some(address) }
}

pub(super) fn key() -> TransactionKey {
    "3:5.12.614".parse().unwrap()
}

fn change(verb: Verb, row_id: &str, image: Image) -> Change {
    let table = TableName { pdb: None, owner: "SHOP".into(), table: "BOOK".into() };
    Change {
        at: at(0),
        verb,
        table: Arc::new(table),
        table_version: 1,
        row_id: row_id.into(),
        image,
        sql: "".into(),
        lobs: Vec::new(),
    }
}

fn image(columns: &[(&str, &str)]) -> RowImage {
    let value = |text: &str| match text {
        "NULL" => ImageValue::Null,
        text => ImageValue::Text(text.to_owned()),
    };
    columns.iter().map(|(column, text)| ((*column).to_owned(), value(text))).collect()
}

fn target(column: &str) -> LobTarget {
    let kind = if column == "B" { LobKind::Binary } else { LobKind::Text };
    LobTarget { column: column.to_owned(), kind, is_captured: column != "HIDDEN" }
}

fn literal(column: &str, value: &str) -> LobLiteral {
    match value {
        "NULL" => LobLiteral::Null,
        "EMPTY" => LobLiteral::Empty,
        bytes if column == "B" => LobLiteral::Bytes(bytes.as_bytes().to_vec()),
        text => LobLiteral::Text(text.to_owned()),
    }
}

fn piece(
    verb: Verb,
    row_id: &str,
    before: &[(&str, &str)],
    after: &[(&str, &str)],
    lobs: &[(&str, &str)],
) -> Row {
    let assignment = |&(column, value): &(&str, &str)| LobAssignment {
        target: target(column),
        value: literal(column, value),
    };
    Row::Piece(RowPiece {
        change: change(verb, row_id, Image::Statement),
        before: image(before),
        after: image(after),
        lobs: lobs.iter().map(assignment).collect(),
    })
}

/// The row that most tests write.
const ROW: &[(&str, &str)] = &[("ID", "7"), ("NAME", "a")];

/// Its INSERT, where no value of a large object is in the row.
pub(super) fn insert(row: &[(&str, &str)]) -> Row {
    let lobs = [("C", "EMPTY"), ("NC", "EMPTY"), ("B", "EMPTY")];
    piece(Verb::Insert, PLACEHOLDER, &[], row, &lobs)
}

/// An UPDATE of the row.
pub(super) fn update(row_id: &str, set: &[(&str, &str)], lobs: &[(&str, &str)]) -> Row {
    piece(Verb::Update, row_id, ROW, set, lobs)
}

fn lob(row_id: &str, head: Option<LobHead>, edit: LobEdit) -> Row {
    Row::Lob(LobPiece { change: change(Verb::Update, row_id, Image::Locator), head, edit })
}

fn head(row: &[(&str, &str)], column: &str) -> Option<LobHead> {
    Some(LobHead { target: target(column), row: image(row) })
}

pub(super) fn write_edit(column: &str, offset: u64, value: &str) -> LobEdit {
    let data = match column {
        "B" => LobData::Bytes(value.as_bytes().to_vec()),
        _ => LobData::Text(value.to_owned()),
    };
    LobEdit::Write { offset, amount: value.chars().count() as u64, data }
}

/// A row of operation 9, which has no text in this release.
pub(super) fn internal(row_id: &str) -> Row {
    lob(row_id, None, LobEdit::Locator)
}

pub(super) fn edit_of(row: &[(&str, &str)], row_id: &str, column: &str, edit: LobEdit) -> Row {
    lob(row_id, head(row, column), edit)
}

fn write(row_id: &str, column: &str, offset: u64, value: &str) -> Row {
    edit_of(ROW, row_id, column, write_edit(column, offset, value))
}

fn trim(column: &str, length: u64) -> Row {
    edit_of(ROW, PLACEHOLDER, column, LobEdit::Trim { length })
}

fn erase(column: &str, offset: u64, amount: u64) -> Row {
    edit_of(ROW, PLACEHOLDER, column, LobEdit::Erase { offset, amount })
}

pub(super) fn assembler(mode: LobMode) -> LobAssembler {
    LobAssembler::new(LobSettings { mode, max_bytes: 1000 })
}

/// Gives a row, as the redo at this block, to the assembler.
pub(super) fn give(assembler: &mut LobAssembler, row: Row, block: u64) -> Vec<Change> {
    match row {
        Row::Piece(mut piece) => {
            piece.change.at = at(block);
            assembler.row(key(), piece)
        }
        Row::Lob(mut piece) => {
            piece.change.at = at(block);
            assembler.lob(key(), piece)
        }
        Row::Else => assembler.close(key()).into_iter().collect(),
    }
}

/// A change in a line: verb, block, row id, and each large object with the block of its last row.
pub(super) fn line(change: &Change) -> String {
    let verb = format!("{:?}", change.verb).to_lowercase();
    let block = |point: RedoPoint| point.scn.0;
    let row_id = match &*change.row_id {
        REAL => "real".to_owned(),
        OTHER => "other".to_owned(),
        id => id.replace(PLACEHOLDER, ""),
    };
    let mut line = format!("{verb} {} {row_id}", block(change.at));
    for lob in &change.lobs {
        let value = match &lob.value {
            LobValue::Text(text) => format!("'{text}'"),
            LobValue::Bytes(bytes) => format!("x'{}'", String::from_utf8_lossy(bytes)),
            other => format!("{other:?}").to_lowercase(),
        };
        line += &format!(" {}={value}@{}", lob.column, block(lob.last));
    }
    line
}

fn changes_in(mode: LobMode, rows: &[Row]) -> Vec<String> {
    let mut assembler = assembler(mode);
    let ended = rows.iter().cloned().chain([Row::Else]);
    let given = ended.zip(1..).flat_map(|(row, block)| give(&mut assembler, row, block));
    given.map(|change| line(&change)).collect()
}

fn changes(rows: &[Row]) -> Vec<String> {
    changes_in(LobMode::Inline, rows)
}

/// The id that a change from this block on is given.
fn made(block: u64) -> String {
    format!("#0x000001.{block:08x}.0010/0")
}

/// Rows of a value that is set by a bind variable: two writes, and a trim where there was one before.
fn bind(column: &str, trims: bool) -> Vec<Row> {
    let mut rows = vec![
        internal(PLACEHOLDER),
        write(PLACEHOLDER, column, 1, "large"),
        write(PLACEHOLDER, column, 6, " value"),
    ];
    if trims {
        rows.push(trim(column, 11));
    }
    rows
}

/// The same with basic storage, which has a row of operation 9 before the trim.
fn bind_basic(column: &str) -> Vec<Row> {
    [bind(column, false), vec![internal(PLACEHOLDER), trim(column, 11)]].concat()
}

#[test]
fn an_insert_of_small_literals_is_one_change_with_the_rows_id() {
    let locator = update(REAL, &[], &[("C", "small"), ("NC", "NULL"), ("B", "bin")]);
    let rows = [insert(ROW), locator];
    assert_eq!(changes(&rows), ["insert 1 real C='small'@2 NC=null@2 B=x'bin'@2"]);
}

#[test]
fn an_insert_of_large_values_is_one_change() {
    let rows = [vec![insert(ROW)], bind("C", false), bind("NC", false), bind("B", false)].concat();
    let values = "C='large value'@4 NC='large value'@7 B=x'large value'@10";
    assert_eq!(changes(&rows), [format!("insert 1 {} {values}", made(1))]);
}

#[test]
fn an_insert_of_one_large_value_takes_the_others_from_its_update() {
    let locator = update(REAL, &[], &[("NC", "NULL"), ("B", "NULL")]);
    let rows = [vec![insert(ROW)], bind("C", false), vec![locator]].concat();
    assert_eq!(changes(&rows), ["insert 1 real C='large value'@4 NC=null@5 B=null@5"]);
    // Where the update also names what was written, it has the locator alone.
    let locator = update(REAL, &[], &[("C", "EMPTY"), ("NC", "short"), ("B", "NULL")]);
    let rows = [vec![insert(ROW)], bind("C", false), vec![locator]].concat();
    assert_eq!(changes(&rows), ["insert 1 real C='large value'@4 NC='short'@5 B=null@5"]);
}

#[test]
fn what_an_insert_does_not_name_was_empty() {
    let statement = piece(Verb::Insert, PLACEHOLDER, &[], ROW, &[]);
    let rows = [vec![statement], bind("C", false)].concat();
    assert_eq!(changes(&rows), [format!("insert 1 {} C='large value'@4", made(1))]);
}

#[test]
fn an_update_after_an_insert_is_its_own_when_the_insert_lacks_nothing() {
    let small = update(REAL, &[], &[("C", "small"), ("NC", "NULL"), ("B", "NULL")]);
    let rows = [insert(ROW), small.clone(), small];
    let whole = "insert 1 real C='small'@2 NC=null@2 B=null@2";
    assert_eq!(changes(&rows), [whole, "update 3 real"]);
    let large = [vec![insert(ROW)], bind("C", false), bind("NC", false), bind("B", false)].concat();
    let rows = [large, vec![update(REAL, &[], &[("C", "EMPTY")])]].concat();
    assert_eq!(changes(&rows)[1], "update 11 real");
}

#[test]
fn an_update_of_another_row_or_of_other_columns_completes_no_insert() {
    let other = piece(Verb::Update, OTHER, &[("ID", "8"), ("NAME", "a")], &[], &[("C", "x")]);
    let columns = update(REAL, &[("NAME", "b")], &[("C", "x"), ("NC", "y"), ("B", "z")]);
    let written = update(REAL, &[], &[("C", "x"), ("NC", "NULL"), ("B", "NULL")]);
    let rows = [vec![insert(ROW)], bind("C", false), vec![written]].concat();
    assert_eq!(changes(&rows)[1], "update 5 real", "an update of what was written is another");
    let whereless = piece(Verb::Update, REAL, &[], &[], &[("C", "x")]);
    for (row, row_id) in [(other, "other"), (columns, "real"), (whereless, "real")] {
        let expected = [format!("insert 1 {}", made(1)), format!("update 2 {row_id}")];
        assert_eq!(changes(&[insert(ROW), row]), expected);
    }
}

#[test]
fn an_update_of_a_large_value_is_known_by_its_trim() {
    for rows in [bind("C", true), bind_basic("C")] {
        let last = rows.len() as u64;
        let expected = format!("update 1 {} C='large value'@{last}", made(1));
        assert_eq!(changes(&rows), [expected]);
    }
}

#[test]
fn an_update_without_a_trim_may_leave_more_behind_it() {
    let expected = format!("update 1 {} C=unavailable@3", made(1));
    assert_eq!(changes(&bind("C", false)), [expected]);
}

#[test]
fn an_update_of_a_column_and_a_large_value_is_one_change() {
    let statement = update(PLACEHOLDER, &[("NAME", "b")], &[]);
    let row: &[(&str, &str)] = &[("ID", "7"), ("NAME", "b")];
    let rows = [
        statement,
        internal(PLACEHOLDER),
        edit_of(row, PLACEHOLDER, "C", write_edit("C", 1, "new")),
        edit_of(row, PLACEHOLDER, "C", LobEdit::Trim { length: 3 }),
    ];
    assert_eq!(changes(&rows), [format!("update 1 {} C='new'@4", made(1))]);
}

#[test]
fn a_block_may_name_the_row_as_it_was() {
    let rows = [vec![update(PLACEHOLDER, &[("NAME", "b")], &[])], bind("C", true)].concat();
    assert_eq!(changes(&rows), [format!("update 1 {} C='large value'@5", made(1))]);
}

#[test]
fn a_null_that_becomes_a_large_value_needs_no_trim() {
    for literal in ["EMPTY", "NULL"] {
        let statement = update(PLACEHOLDER, &[], &[("NC", literal)]);
        let rows = [vec![statement], bind("NC", false)].concat();
        assert_eq!(changes(&rows), [format!("update 1 {} NC='large value'@4", made(1))]);
    }
}

#[test]
fn offsets_and_amounts_count_code_points() {
    let rows = [
        internal(PLACEHOLDER),
        write(PLACEHOLDER, "C", 1, "a\u{1f600}b"),
        write(PLACEHOLDER, "C", 4, "é"),
        trim("C", 4),
    ];
    assert_eq!(changes(&rows), [format!("update 1 {} C='a\u{1f600}bé'@4", made(1))]);
}

#[test]
fn a_row_with_its_id_is_a_change_as_it_is() {
    let rows = [
        update(REAL, &[("NAME", "b")], &[]),
        update(REAL, &[], &[("C", "EMPTY")]),
        piece(Verb::Delete, REAL, ROW, &[], &[]),
    ];
    assert_eq!(changes(&rows), ["update 1 real", "update 2 real", "delete 3 real"]);
}

#[test]
fn a_call_of_dbms_lob_on_an_unseen_value_is_unavailable() {
    let append = [internal(REAL), write(REAL, "C", 12, "!")];
    assert_eq!(changes(&append), ["update 1 real C=unavailable@2"]);
    let trim = [internal(REAL), trim("C", 5)];
    assert_eq!(changes(&trim), ["update 1 real C=unavailable@2"]);
    let erase = [internal(REAL), erase("B", 2, 3)];
    assert_eq!(changes(&erase), ["update 1 real B=unavailable@2"]);
}

#[test]
fn calls_that_say_all_of_a_value_make_it_known() {
    let rows = [
        internal(REAL),
        trim("C", 0),
        internal(REAL),
        write(REAL, "C", 1, "abcdef"),
        internal(REAL),
        erase("C", 2, 2),
        internal(REAL),
        write(REAL, "C", 9, "z"),
        internal(REAL),
        trim("C", 8),
    ];
    assert_eq!(changes(&rows), ["update 1 real C='a  def  '@10"]);
}

#[test]
fn rows_of_a_trim_belong_to_the_calls_before_them() {
    let rows = [write(REAL, "C", 4, "def"), write(REAL, "C", 1, "abc"), trim("C", 6)];
    let expected = ["update 1 real C=unavailable@1", "update 2 real C=unavailable@3"];
    assert_eq!(changes(&rows), expected, "a write from 1 is another statement's");
    let rows = [write(REAL, "C", 1, "abc"), write(REAL, "C", 4, "def"), trim("C", 6)];
    assert_eq!(changes(&rows), ["update 1 real C='abcdef'@3"]);
}

#[test]
fn two_rows_of_one_statement_are_two_changes() {
    let other: &[(&str, &str)] = &[("ID", "8"), ("NAME", "a")];
    let second = [
        internal(PLACEHOLDER),
        edit_of(other, PLACEHOLDER, "C", write_edit("C", 1, "second")),
        edit_of(other, PLACEHOLDER, "C", LobEdit::Trim { length: 6 }),
    ];
    let rows = [bind("C", true), second.to_vec()].concat();
    let expected = [
        format!("update 1 {} C='large value'@4", made(1)),
        format!("update 5 {} C='second'@7", made(5)),
    ];
    assert_eq!(changes(&rows), expected);
}

#[test]
fn a_value_written_twice_is_two_changes() {
    let rows = [bind("C", true), bind_basic("C")].concat();
    let expected = [
        format!("update 1 {} C='large value'@4", made(1)),
        format!("update 5 {} C='large value'@9", made(5)),
    ];
    assert_eq!(changes(&rows), expected);
    let insert = [vec![insert(ROW)], bind("C", false), bind("C", true)].concat();
    let expected = [
        format!("insert 1 {} C='large value'@4", made(1)),
        format!("update 5 {} C='large value'@8", made(5)),
    ];
    assert_eq!(changes(&insert), expected);
}

#[test]
fn calls_of_dbms_lob_do_not_join_a_statement() {
    let append = [internal(REAL), write(REAL, "C", 12, "!"), internal(REAL), trim("C", 12)];
    let rows = [bind("C", true), append.to_vec()].concat();
    let statement = format!("update 1 {} C='large value'@4", made(1));
    assert_eq!(changes(&rows), [statement, "update 5 real C=unavailable@8".to_owned()]);
}

#[test]
fn calls_on_two_rows_are_two_changes() {
    let rows = [write(REAL, "C", 5, "x"), write(OTHER, "C", 6, "y"), write(OTHER, "B", 7, "z")];
    let second = "update 2 other C=unavailable@2 B=unavailable@3";
    assert_eq!(changes(&rows), ["update 1 real C=unavailable@1", second]);
}

#[test]
fn a_savepoint_in_between_closes_what_is_open() {
    let append = |offset| vec![internal(REAL), write(REAL, "C", offset, "x")];
    let rows = [append(5), vec![Row::Else], append(6)].concat();
    let expected = ["update 1 real C=unavailable@2", "update 4 real C=unavailable@5"];
    assert_eq!(changes(&rows), expected);
    let joined = [append(5), append(6)].concat();
    assert_eq!(changes(&joined), ["update 1 real C=unavailable@4"]);
}

#[test]
fn rows_of_a_failed_insert_are_one_change_for_its_undo() {
    let locator = update(REAL, &[], &[("NC", "NULL"), ("B", "NULL")]);
    let rows =
        [vec![update(OTHER, &[("NAME", "b")], &[]), insert(ROW)], bind("C", false), vec![locator]];
    let expected = ["update 1 other", "insert 2 real C='large value'@5 NC=null@6 B=null@6"];
    assert_eq!(changes(&rows.concat()), expected);
}

#[test]
fn rows_of_large_objects_find_their_row_by_value() {
    let row = [("ID", "7.0"), ("NAME", "a")];
    let rows = [insert(ROW), edit_of(&row, PLACEHOLDER, "C", write_edit("C", 1, "x"))];
    assert_eq!(changes(&rows), [format!("insert 1 {} C='x'@2", made(1))]);
    for row in [[("ID", "8"), ("NAME", "a")], [("ID", "7"), ("NAME", "NULL")]] {
        let rows = [insert(ROW), edit_of(&row, PLACEHOLDER, "C", write_edit("C", 1, "x"))];
        let second = format!("update 2 {} C=unavailable@2", made(2));
        assert_eq!(changes(&rows), [format!("insert 1 {}", made(1)), second]);
    }
    let row = [("ID", "7"), ("NAME", "a"), ("ADDED", "NULL")];
    let rows = [insert(ROW), edit_of(&row, PLACEHOLDER, "C", write_edit("C", 1, "x"))];
    assert_eq!(changes(&rows), [format!("insert 1 {} C='x'@2", made(1))], "not inserted is NULL");
}

#[test]
fn an_update_joins_no_insert_that_it_cannot_name() {
    let image: &[(&str, &str)] = &[("ID", "7"), ("PRICE", "2")];
    let statement = update(PLACEHOLDER, &[("NAME", "b")], &[]);
    let rows = [statement, edit_of(image, PLACEHOLDER, "C", write_edit("C", 1, "x"))];
    assert_eq!(changes(&rows).len(), 2, "what an update does not name is not NULL");
}

#[test]
fn a_call_without_a_head_goes_on_from_its_locator() {
    let locator = lob(REAL, head(ROW, "C"), LobEdit::Locator);
    let call = |edit| lob(REAL, None, edit);
    let rows = [
        locator.clone(),
        call(write_edit("C", 1, "once ")),
        call(write_edit("C", 6, "upon")),
        locator,
        call(LobEdit::Trim { length: 9 }),
    ];
    assert_eq!(changes(&rows), ["update 1 real C='once upon'@5"]);
}

#[test]
fn a_call_without_a_head_or_a_locator_of_its_own_opens_nothing() {
    let locator = lob(REAL, head(ROW, "C"), LobEdit::Locator);
    let call = |edit| lob(REAL, None, edit);
    let write = || call(write_edit("C", 1, "once"));
    let rows = [locator.clone(), write(), write(), locator, write()];
    let expected = ["update 1 real C=unavailable@3", "update 4 real C=unavailable@5"];
    assert_eq!(changes(&rows), expected);
}

#[test]
fn a_call_that_follows_no_locator_is_an_error_of_its_own() {
    let rows = [update(PLACEHOLDER, &[], &[]), lob(PLACEHOLDER, None, LobEdit::Trim { length: 9 })];
    let lines = changes(&rows);
    assert_eq!(lines[0], format!("update 1 {}", made(1)));
    assert!(lines[1].starts_with(&format!("update 2 {} =undecodable", made(2))), "{}", lines[1]);
}

#[test]
fn a_locator_alone_changes_nothing() {
    assert_eq!(changes(&[internal(REAL)]), Vec::<String>::new());
    assert_eq!(changes(&[lob(REAL, head(ROW, "C"), LobEdit::Locator)]), Vec::<String>::new());
}

#[test]
fn rows_that_are_not_understood_are_an_error_if_they_commit() {
    let undo = edit_of(ROW, REAL, "C", LobEdit::NotUnderstood("an undo".to_owned()));
    assert_eq!(changes(&[undo]), ["update 1 real C=undecodable(\"an undo\")@1"]);
}

#[test]
fn skipped_values_are_grouped_and_not_kept() {
    let rows = [vec![insert(ROW)], bind("C", false)].concat();
    let expected = format!("insert 1 {} C=unavailable@4", made(1));
    assert_eq!(changes_in(LobMode::Skip, &rows), [expected]);
    let hidden = edit_of(ROW, REAL, "HIDDEN", write_edit("HIDDEN", 1, "x"));
    let cut = edit_of(ROW, REAL, "HIDDEN", LobEdit::Trim { length: 1 });
    assert_eq!(changes(&[hidden, cut]), ["update 1 real HIDDEN=unavailable@2"]);
    let locator = update(REAL, &[], &[("C", "small"), ("NC", "NULL"), ("B", "NULL")]);
    let kept = changes_in(LobMode::Skip, &[insert(ROW), locator]);
    assert_eq!(kept, ["insert 1 real C=unavailable@2 NC=unavailable@2 B=unavailable@2"]);
}

#[test]
fn what_is_open_is_told_until_it_is_closed() {
    let mut assembler = assembler(LobMode::Reselect);
    assert!(give(&mut assembler, internal(PLACEHOLDER), 4).is_empty());
    assert_eq!(assembler.open().collect::<Vec<_>>(), [(key(), at(4))], "a locator is work, too");
    assert!(give(&mut assembler, write(PLACEHOLDER, "C", 1, "abcdef"), 5).is_empty());
    assert!(give(&mut assembler, internal(PLACEHOLDER), 6).is_empty());
    assert_eq!(assembler.open().collect::<Vec<_>>(), [(key(), at(4))]);
    assert_eq!(assembler.bytes(), 6 + PLACEHOLDER.len() as u64);
    assembler.forget(key());
    assert_eq!((assembler.open().count(), assembler.bytes()), (0, 0));
    assert_eq!(assembler.close(key()), None);
}
