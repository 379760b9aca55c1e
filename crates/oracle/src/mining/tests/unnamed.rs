//! Rows of objects that neither the dictionary nor the miner knows.

use super::{apply, from_scn, miner, step, texts};
use crate::Code;
use crate::mining::fake::{Fake, row, transaction};
use crate::mining::{MiningError, Step};
use crate::row::{ObjectId, Operation, RedoRow};
use crate::session::Dictionary;

const GONE: ObjectId = ObjectId { container: 0, number: 50 };

/// Writes a row of an object that is gone from the dictionary.
fn write_unnamed(fake: &mut Fake) -> RedoRow {
    let scn = fake.tick();
    let row = row(1, scn, fake.next_block(1), Operation::Insert, transaction(1));
    let row = fake.write_row(RedoRow { object: GONE, owner: None, table: None, ..row });
    fake.tick();
    row
}

/// A fake whose first logs hold a dictionary.
fn with_dictionary() -> Fake {
    let mut fake = Fake::new(1);
    fake.switch(1);
    fake.log(1, 1).begins_dictionary = true;
    fake.log(1, 1).ends_dictionary = true;
    fake
}

#[test]
fn rows_of_an_object_that_came_and_went_are_read_by_a_dictionary_in_the_redo() {
    let mut fake = with_dictionary();
    let scn = fake.scn;
    write_unnamed(&mut fake);
    let mut miner = miner(&mut fake, from_scn(scn));
    let Ok(Step::Lagging { tables, objects }) = step(&mut miner, &mut fake) else { panic!() };
    assert_eq!((tables.len(), objects), (0, [GONE].into()));
    // The fake gives the same row again: not even that dictionary has a name for it.
    let error = match miner.replay(&mut fake, &mut std::iter::empty()) {
        Err(MiningError::Stop(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error.code, Code::DictionaryUnavailable);
    assert!(error.what.contains("object 50"), "{error}");
    assert_eq!(fake.starts.last().unwrap().dictionary, Dictionary::Redo);
    assert!(fake.queries.last().unwrap().objects.contains(&GONE));
}

#[test]
fn rows_without_a_name_from_after_the_dictionary_was_asked_are_of_others() {
    let mut fake = with_dictionary();
    let scn = fake.scn;
    let mut miner = miner(&mut fake, from_scn(scn));
    let asked = fake.queries.len();
    fake.tick();
    write_unnamed(&mut fake);
    let rows = apply(&mut miner, &mut fake);
    assert_eq!(rows.len(), 1, "the fake gives it, and nobody asked for it: {:?}", texts(&rows));
    let query = fake.queries.get(asked).unwrap();
    assert!(query.unnamed_until <= rows[0].at.scn);
}

#[test]
fn tables_of_others_that_come_and_go_are_no_reason_to_doubt() {
    let mut fake = with_dictionary();
    let scn = fake.scn;
    let mut miner = miner(&mut fake, from_scn(scn));
    for (owner, is_doubted) in [("STAGING", false), ("HR", true)] {
        let scn = fake.tick();
        let ddl = row(1, scn, fake.next_block(1), Operation::Ddl, transaction(2));
        fake.write_row(RedoRow {
            owner: Some(owner.to_owned()),
            table: Some("T".to_owned()),
            sql_redo: Some(format!("create table {owner}.t (id number)")),
            ..ddl
        });
        write_unnamed(&mut fake);
        assert_eq!(apply(&mut miner, &mut fake).len(), 1);
        let next = step(&mut miner, &mut fake);
        assert_eq!(matches!(next, Ok(Step::Lagging { .. })), is_doubted, "{next:?}");
        if let Ok(Step::Rows(step)) = next {
            miner.applied(*step);
        }
    }
}
