//! The engine on simulated histories: crash anywhere, whatever was stored, and exactly the rest
//! comes again.

use highwater_connector::{Routing, SourceOffset};
use proptest::prelude::*;

use super::*;
use crate::offset::{State, TableProgress};
use crate::pgoutput::{Cell, OldTuple, RelationColumn, ReplicaIdentity};

fn offset(lsn: u64) -> StoredOffset {
    StoredOffset {
        state: State::Streaming,
        slot: Some("s".to_owned()),
        system_id: Some("7".to_owned()),
        timeline: Some(1),
        database: Some("d".to_owned()),
        publication: None,
        lsn: Lsn(lsn),
        partial: None,
        snapshot: Vec::new(),
        rest: serde_json::Map::new(),
    }
}

fn engine_with(offset: &StoredOffset, descriptions: Vec<TableDescription>) -> Engine {
    engine_of(&trail(), offset, descriptions)
}

fn trail() -> Routing {
    Routing::Trail("shop".to_owned())
}

fn tables() -> Routing {
    Routing::Tables("shop".to_owned())
}

fn engine_of(
    routing: &Routing,
    offset: &StoredOffset,
    descriptions: Vec<TableDescription>,
) -> Engine {
    let output = Output {
        names: TopicNames::new(routing),
        tombstones: true,
        forms: None,
        schema: Arc::from("shop.schema"),
        generation: Generation::from_bits(1),
        record_limit: 10_000,
    };
    let filter = Filter::new("", "", "", r"public\.t0").unwrap();
    let tables = Tables::new(descriptions);
    Engine::new(output, Envelope::new("shop", "d", "?", false), filter, tables, offset)
}

fn engine(offset: &StoredOffset) -> Engine {
    engine_with(offset, Vec::new())
}

/// Table `t<n>` with an id and so many further columns; `t0` is not captured.
fn relation(table: u32, width: u32) -> Message {
    let column = |n: u32| RelationColumn {
        key: n == 0,
        name: if n == 0 { "id".to_owned() } else { format!("c{n}") },
        type_oid: 23,
        type_modifier: -1,
    };
    Message::Relation(Relation {
        oid: table,
        schema: "public".to_owned(),
        table: format!("t{table}"),
        identity: ReplicaIdentity::Default,
        columns: (0..=width).map(column).collect(),
    })
}

fn tuple(id: u32, width: u32) -> Tuple {
    let id = Cell::Text(Bytes::from(id.to_string()));
    Tuple(std::iter::once(id).chain((0..width).map(|_| Cell::Null)).collect())
}

fn insert(table: u32, id: u32, width: u32) -> Message {
    Message::Insert { relation: table, new: tuple(id, width) }
}

fn begin(commit: u64) -> Message {
    Message::Begin { commit_lsn: Lsn(commit), commit_time: PgTime(0), xid: 3 }
}

fn commit(commit: u64, end: u64) -> Message {
    let (commit_lsn, end_lsn) = (Lsn(commit), Lsn(end));
    Message::Commit { commit_lsn, end_lsn, commit_time: PgTime(0) }
}

/// What came out, in order.
#[derive(Clone, PartialEq, Debug)]
enum Out {
    Event { topic: String, id: String, version: Option<u32>, count: Option<u64>, value: String },
    Description(u32, String, u64),
}

fn run(engine: &mut Engine, messages: &[Message]) -> Result<Vec<SourceItem>, ConnectorError> {
    let mut items = Vec::new();
    for message in messages {
        engine.apply(message, Lsn(1), &mut items)?;
    }
    Ok(items)
}

fn records(items: Vec<SourceItem>) -> Vec<SourceRecord> {
    let record = |item| match item {
        SourceItem::Record(record) => record,
        other => panic!("the engine gives records, and no idle position by itself: {other:?}"),
    };
    items.into_iter().map(record).collect()
}

fn shown(record: &SourceRecord) -> Out {
    let value = record.value.as_deref().unwrap_or(b"null");
    let value: serde_json::Value = serde_json::from_slice(value).unwrap();
    match &record.hw {
        Some(hw) => Out::Event {
            topic: record.topic.to_string(),
            id: hw.record_id().to_string(),
            version: hw.table_version,
            count: hw.count,
            value: format!(
                "{} {} {} {}",
                value["op"], value["before"], value["after"], value["ddl"]
            ),
        },
        None => {
            let description: TableDescription = serde_json::from_value(value).unwrap();
            let TableDescription { version, from_position, from_index, .. } = description;
            Out::Description(version, from_position, from_index)
        }
    }
}

fn stored(offset: &SourceOffset) -> StoredOffset {
    StoredOffset::read(offset).unwrap()
}

#[test]
fn positions_inside_and_behind_a_transaction() {
    let mut engine = engine(&offset(10));
    let messages = [begin(20), relation(1, 0), insert(1, 1, 0), insert(1, 2, 0), commit(20, 25)];
    let records = records(run(&mut engine, &messages).unwrap());
    let at = |n: usize| stored(&records[n].position.offset());
    // The description covers nothing, the first row the first event, the last row everything.
    assert_eq!((at(0).lsn, at(0).partial), (Lsn(10), None));
    let first = Partial { commit_lsn: Lsn(20), event_index: 1 };
    assert_eq!((at(1).lsn, at(1).partial), (Lsn(10), Some(first)));
    assert_eq!((at(2).lsn, at(2).partial), (Lsn(25), None));
    let boundaries: Vec<bool> = records.iter().map(|record| record.boundary).collect();
    assert_eq!(boundaries, [false, false, true]);
    let counts: Vec<_> = records.iter().filter_map(|r| r.hw.as_ref()).map(|hw| hw.count).collect();
    assert_eq!(counts, [None, Some(2)]);
}

#[test]
fn a_changed_key_is_a_row_deleted_and_a_row_created() {
    let key = |n: u32| Bytes::from(format!(r#"{{"id":{n}}}"#));
    let (old, new) = (Some(OldTuple::Key(tuple(1, 1))), tuple(2, 1));
    let delete = Message::Delete { relation: 1, old: OldTuple::Key(tuple(2, 1)) };
    let messages = [
        begin(20),
        relation(1, 1),
        Message::Update { relation: 1, old, new },
        delete,
        commit(20, 25),
    ];
    let mut engine = engine_of(&tables(), &offset(10), Vec::new());
    let records = records(run(&mut engine, &messages).unwrap());
    let seen: Vec<_> = records[1..]
        .iter()
        .map(|record| {
            let hw = record.hw.as_ref().unwrap();
            let op = record.value.as_deref().map(|value| {
                serde_json::from_slice::<serde_json::Value>(value).unwrap()["op"].to_string()
            });
            let partial = stored(&record.position.offset()).partial;
            let at = partial.map(|partial| partial.event_index);
            (hw.index, hw.part, op, record.key.clone().unwrap(), record.other_key.clone(), at)
        })
        .collect();
    let op = |op: &str| Some(format!("\"{op}\""));
    let expected = [
        (0, 0, op("d"), key(1), Some(OtherKey::New(key(2))), None),
        (0, 1, None, key(1), Some(OtherKey::New(key(2))), None),
        (0, 2, op("c"), key(2), Some(OtherKey::Old(key(1))), Some(1)),
        (1, 0, op("d"), key(2), None, Some(1)),
        // The last record of the transaction covers all of it.
        (1, 1, None, key(2), None, None),
    ];
    assert_eq!(seen, expected);
    assert!(records[1..].iter().all(|record| record.topic.as_ref() == "shop.public.t1"));
    assert!(records[1..].iter().all(|record| record.partition.is_none()));
    assert_eq!(records.last().unwrap().hw.as_ref().unwrap().count, Some(2));
}

#[test]
fn a_record_without_key_has_its_partition() {
    let (cascade, restart_identity, relations) = (false, false, vec![1]);
    let truncate = Message::Truncate { relations, cascade, restart_identity };
    let mut engine = engine_of(&tables(), &offset(10), Vec::new());
    let out = run(&mut engine, &[begin(20), relation(1, 0), truncate, commit(20, 25)]).unwrap();
    let last = records(out).pop().unwrap();
    assert_eq!((last.key, last.partition), (None, Some(0)));
}

#[test]
fn what_lies_below_a_tables_point_is_part_of_its_snapshot() {
    let mut offset = offset(10);
    let table = TableName::new("public", "t1");
    offset.snapshot = vec![TableProgress { table, point: Some(Lsn(30)), done: true }];
    let mut engine = engine(&offset);
    let transaction = |lsn| {
        [
            begin(lsn),
            relation(1, 0),
            insert(1, 1, 0),
            relation(2, 0),
            insert(2, 2, 0),
            commit(lsn, lsn + 1),
        ]
    };
    let below = records(run(&mut engine, &transaction(29)).unwrap());
    let rows = |records: &[SourceRecord]| records.iter().filter(|r| r.hw.is_some()).count();
    assert_eq!(rows(&below), 1);
    assert_eq!(below.last().unwrap().hw.as_ref().unwrap().count, Some(1));
    let at = records(run(&mut engine, &transaction(30)).unwrap());
    assert_eq!(rows(&at), 2);
    // Points are stored as long as they matter.
    assert_eq!(stored(&below.last().unwrap().position.offset()).snapshot.len(), 0);
}

#[test]
fn idle_is_never_said_too_early() {
    let mut engine = engine(&offset(10));
    let nothing = (Lsn(10), None);
    assert!(engine.idle(nothing).is_none(), "nothing new");
    engine.reached(Lsn(15)).unwrap();
    assert_eq!(engine.idle(nothing).unwrap().reached(), (Lsn(15), None));
    let _ = run(&mut engine, &[begin(20), relation(1, 0), insert(1, 1, 0)]).unwrap();
    engine.reached(Lsn(99)).unwrap();
    assert!(engine.idle(nothing).is_none(), "inside a transaction");
    let _ = run(&mut engine, &[commit(20, 25)]).unwrap();
    engine.reached(Lsn(30)).unwrap();
    assert!(engine.idle(nothing).is_none(), "a record is not stored");
    assert_eq!(engine.idle((Lsn(25), None)).unwrap().reached(), (Lsn(30), None));
    // A transaction without events of ours is covered by the same way.
    let _ = run(&mut engine, &[begin(40), commit(40, 45)]).unwrap();
    assert_eq!(engine.idle((Lsn(30), None)).unwrap().reached(), (Lsn(45), None));
}

#[test]
fn a_transaction_that_does_not_come_again_is_missed() {
    let mut partly = offset(10);
    partly.partial = Some(Partial { commit_lsn: Lsn(20), event_index: 2 });
    let code = |result: Result<Vec<SourceItem>, ConnectorError>| result.unwrap_err().code;
    assert_eq!(code(run(&mut engine(&partly), &[begin(30)])), code::TRANSACTION);
    assert_eq!(engine(&partly).reached(Lsn(21)).unwrap_err().code, code::TRANSACTION);
    assert!(engine(&partly).reached(Lsn(20)).is_ok());
    let shorter = [begin(20), relation(1, 0), insert(1, 1, 0), insert(1, 2, 0), commit(20, 25)];
    assert_eq!(code(run(&mut engine(&partly), &shorter)), code::TRANSACTION);
}

#[test]
fn a_description_that_was_lost_takes_no_position_back() {
    let mut partly = offset(10);
    let partial = Partial { commit_lsn: Lsn(20), event_index: 2 };
    partly.partial = Some(partial);
    let messages = [begin(20), relation(1, 0), insert(1, 1, 0), insert(1, 2, 0), insert(1, 3, 0)];
    let description = records(run(&mut engine(&partly), &messages).unwrap()).swap_remove(0);
    assert_eq!(description.kind, RecordKind::TableDescription);
    assert_eq!(stored(&description.position.offset()).partial, Some(partial));
}

#[test]
fn what_does_not_belong_into_the_stream_is_refused() {
    let refused = |messages: &[Message]| {
        let code = run(&mut engine(&offset(10)), messages).unwrap_err().code;
        assert_eq!(code, code::STREAM, "{messages:?}");
    };
    refused(&[Message::StreamStart { xid: 1, first: true }]);
    refused(&[begin(20), begin(30)]);
    refused(&[commit(20, 25)]);
    refused(&[begin(20), insert(1, 1, 0)]);
    refused(&[relation(1, 0), insert(1, 1, 0)]);
}

#[test]
fn a_row_above_the_limit_is_named_only_where_it_matters() {
    let cut = |table: u32| {
        let mut wire = vec![b'I'];
        wire.extend(table.to_be_bytes());
        wire.extend(b"N\0\x02t\0\0\0\x0242t");
        let mut engine = engine(&offset(10));
        let _ = run(&mut engine, &[begin(20), relation(table, 1)]).unwrap();
        engine.cut(Bytes::from(wire), 99_999)
    };
    let error = cut(1).unwrap_err();
    assert_eq!(error.code, code::TOO_LARGE);
    assert!(error.what.contains("public.t1") && error.what.contains("id=42"), "{error}");
    assert!(error.what.contains("99999"), "{error}");
    assert!(cut(0).is_ok());
}

/// One change of a history.
#[derive(Clone, Debug)]
enum Step {
    Insert(u32),
    Delete(u32),
    Rekey(u32),
    Truncate,
    /// The table gets so many further columns, which its next row shows.
    Widen(u32, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let table = || 0..3_u32;
    prop_oneof![
        4 => table().prop_map(Step::Insert),
        2 => table().prop_map(Step::Delete),
        1 => table().prop_map(Step::Rekey),
        1 => Just(Step::Truncate),
        2 => (table(), 0..3_u32).prop_map(|(table, width)| Step::Widen(table, width)),
    ]
}

/// Transactions, each a list of changes; positions grow by ten.
type History = Vec<Vec<Step>>;

fn history() -> impl Strategy<Value = History> {
    prop::collection::vec(prop::collection::vec(step(), 0..6), 0..6)
}

fn commit_lsn(n: usize) -> u64 {
    100 + 10 * u64::try_from(n).unwrap()
}

/// What a server sends of a history from an LSN on: a shape comes before the first row that has
/// it, in each session anew.
fn sent(history: &History, from: Lsn) -> Vec<Message> {
    let mut widths = [0_u32; 3];
    let mut told = [None; 3];
    let mut messages = Vec::new();
    for (n, steps) in history.iter().enumerate() {
        let lsn = commit_lsn(n);
        let mut transaction = vec![begin(lsn)];
        for (id, step) in (0_u32..).zip(steps) {
            let mut tell = |table: u32, transaction: &mut Vec<Message>| {
                let at = usize::try_from(table).unwrap();
                if lsn >= from.0 && told[at] != Some(widths[at]) {
                    transaction.push(relation(table, widths[at]));
                    told[at] = Some(widths[at]);
                }
                widths[at]
            };
            match *step {
                Step::Insert(table) => {
                    let width = tell(table, &mut transaction);
                    transaction.push(insert(table, id, width));
                }
                Step::Delete(table) => {
                    let width = tell(table, &mut transaction);
                    let old = OldTuple::Key(tuple(id, width));
                    transaction.push(Message::Delete { relation: table, old });
                }
                Step::Rekey(table) => {
                    let width = tell(table, &mut transaction);
                    let old = Some(OldTuple::Key(tuple(id, width)));
                    let new = tuple(id + 100, width);
                    transaction.push(Message::Update { relation: table, old, new });
                }
                Step::Truncate => {
                    for table in 0..3 {
                        tell(table, &mut transaction);
                    }
                    let (cascade, restart_identity) = (false, false);
                    let relations = vec![0, 1, 2];
                    transaction.push(Message::Truncate { relations, cascade, restart_identity });
                }
                Step::Widen(table, width) => widths[usize::try_from(table).unwrap()] = width,
            }
        }
        transaction.push(commit(lsn, lsn + 5));
        if lsn >= from.0 {
            messages.extend(transaction);
        }
    }
    messages
}

/// A number of test histories that `HW_CASES` scales.
fn cases() -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// The central property: whatever the history, wherever the crashes, whatever was stored.
    #[test]
    fn exactly_the_rest_comes_again(
        routing in prop_oneof![Just(trail()), Just(tables())],
        history in history(),
        point in 95..140_u64,
        crashes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5),
    ) {
        let mut begin = offset(90);
        let table = TableName::new("public", "t2");
        begin.snapshot = vec![TableProgress { table, point: Some(Lsn(point)), done: true }];
        let messages = sent(&history, begin.lsn);
        let mut first = engine_of(&routing, &begin, Vec::new());
        let whole = records(run(&mut first, &messages).unwrap());
        let events: Vec<&SourceRecord> = whole.iter().filter(|record| record.hw.is_some()).collect();
        let mut descriptions: Vec<TableDescription> = Vec::new();
        let (mut least, mut from) = (0, begin);
        for (read, acknowledged) in crashes {
            // A run reads some messages, and some of its records are acknowledged, in order.
            let messages = sent(&history, from.lsn);
            let messages = &messages[..read.index(messages.len() + 1)];
            let mut engine = engine_of(&routing, &from, descriptions.clone());
            let out = records(run(&mut engine, messages).unwrap());
            let written = &out[..acknowledged.index(out.len() + 1)];
            let got: Vec<Out> = written.iter().filter(|r| r.hw.is_some()).map(shown).collect();
            let expected: Vec<Out> =
                events[least..].iter().take(got.len()).map(|record| shown(record)).collect();
            prop_assert_eq!(&got, &expected);
            // The parts of an event are safe together, and come again together.
            least += got.len();
            while events.get(least).and_then(|next| next.hw.as_ref()).is_some_and(|hw| hw.part > 0) {
                least -= 1;
            }
            for record in written.iter().filter(|record| record.hw.is_none()) {
                descriptions.push(serde_json::from_slice(record.value.as_deref().unwrap()).unwrap());
            }
            if let Some(last) = written.last() {
                from = stored(&last.position.offset());
            }
        }
        // In the end all of it arrives, and each description was written once.
        let out = records(
            run(&mut engine_of(&routing, &from, descriptions.clone()), &sent(&history, from.lsn)).unwrap(),
        );
        let rest: Vec<Out> = out.iter().filter(|record| record.hw.is_some()).map(shown).collect();
        let expected: Vec<Out> = events[least..].iter().map(|record| shown(record)).collect();
        prop_assert_eq!(rest, expected);
        for record in out.iter().filter(|record| record.hw.is_none()) {
            descriptions.push(serde_json::from_slice(record.value.as_deref().unwrap()).unwrap());
        }
        let first: Vec<TableDescription> = whole
            .iter()
            .filter(|record| record.hw.is_none())
            .map(|record| serde_json::from_slice(record.value.as_deref().unwrap()).unwrap())
            .collect();
        prop_assert_eq!(descriptions, first);
    }

    /// Record identities are unique, and their text sorts as the records come (rule P5).
    #[test]
    fn identities_are_in_order(
        routing in prop_oneof![Just(trail()), Just(tables())],
        history in history(),
    ) {
        let begin = offset(90);
        let mut engine = engine_of(&routing, &begin, Vec::new());
        let whole = records(run(&mut engine, &sent(&history, begin.lsn)).unwrap());
        let places: Vec<(String, u64, u32)> = whole
            .iter()
            .filter_map(|record| record.hw.as_ref())
            .map(|hw| (hw.position.clone(), hw.index, hw.part))
            .collect();
        prop_assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", places);
    }
}
