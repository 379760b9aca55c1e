//! Plans and refusals without a server.

use std::collections::BTreeMap;

use super::*;
use crate::settings::definition;

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let base = [
        ("database.hostname", "h"),
        ("database.user", "u"),
        ("database.dbname", "d"),
        ("topic.prefix", "shop"),
    ];
    let values: BTreeMap<String, String> =
        base.iter().chain(pairs).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Settings::new(&definition().parse(&values, &[]).unwrap()).unwrap()
}

fn capacity() -> Capacity {
    Capacity { wal_level: "logical".to_owned(), slots: 10, slots_used: 0, in_recovery: false }
}

fn table(oid: u32, name: &str) -> Table {
    Table {
        oid,
        name: TableName::new("public", name),
        partitioned: false,
        identity: ReplicaIdentity::Default,
        identity_columns: vec!["id".to_owned()],
        columns: 2,
        readable: true,
        ancestors: Vec::new(),
    }
}

fn published(oid: u32, name: &str) -> Published {
    Published {
        oid,
        name: TableName::new("public", name),
        columns: None,
        filter: None,
        partitioned: false,
        rows: Vec::new(),
    }
}

fn publication(tables: Vec<Published>) -> Publication {
    Publication {
        row: "1:1".to_owned(),
        all_tables: false,
        insert: true,
        update: true,
        delete: true,
        truncate: true,
        via_root: false,
        members: Vec::new(),
        tables,
    }
}

fn plan_of(
    pairs: &[(&str, &str)],
    tables: &[Table],
    publication: Option<&Publication>,
    first: bool,
) -> Result<Plan, &'static str> {
    let capacity = capacity();
    let found = Found { capacity: &capacity, tables, publication, new_slots: 1, first };
    check(&settings(pairs), &found).map_err(|refusal| refusal.code)
}

fn names(names: &[&str]) -> Vec<TableName> {
    names.iter().map(|name| TableName::new("public", *name)).collect()
}

#[test]
fn a_publication_is_made_for_the_captured_tables() {
    let tables = [table(1, "a"), table(2, "b")];
    let plan = plan_of(&[("table.include.list", "public.a")], &tables, None, true);
    assert_eq!(plan, Ok(Plan::Create(names(&["a"]))));
    let all = plan_of(&[("publication.autocreate.mode", "all_tables")], &tables, None, true);
    assert_eq!(all, Ok(Plan::CreateForAll));
}

#[test]
fn only_what_is_missing_is_added() {
    let tables = [table(1, "a"), table(2, "b")];
    let found = publication(vec![published(1, "a")]);
    assert_eq!(plan_of(&[], &tables, Some(&found), false), Ok(Plan::Add(names(&["b"]))));
    let found = publication(vec![published(1, "a"), published(2, "b")]);
    assert_eq!(plan_of(&[], &tables, Some(&found), false), Ok(Plan::Keep));
    let found = Publication { all_tables: true, ..publication(vec![published(1, "a")]) };
    assert_eq!(plan_of(&[], &tables, Some(&found), false), Ok(Plan::Keep));
}

#[test]
fn partitions_are_published_through_their_root() {
    let root = Table { partitioned: true, identity_columns: Vec::new(), ..table(1, "r") };
    let leaf = Table { ancestors: vec![1], ..table(2, "leaf") };
    let tables = [root, leaf.clone()];
    assert_eq!(plan_of(&[], &tables, None, true), Ok(Plan::Create(names(&["r"]))));
    // Only the leaf is wanted.
    let plan = plan_of(&[("table.include.list", "public.leaf")], &tables, None, true);
    assert_eq!(plan, Ok(Plan::Create(names(&["leaf"]))));
    // The root is in the publication already: the stream shows its leaves.
    let found = Publication { members: vec![1], ..publication(vec![published(2, "leaf")]) };
    assert_eq!(plan_of(&[], &tables, Some(&found), false), Ok(Plan::Keep));
    let leaf_alone = [("table.include.list", "public.leaf")];
    assert_eq!(plan_of(&leaf_alone, &tables, Some(&found), false), Ok(Plan::Keep));
    // Only the leaf is in it: partitions to come would be missed.
    let found = Publication { members: vec![2], ..publication(vec![published(2, "leaf")]) };
    assert_eq!(plan_of(&[], &tables, Some(&found), false), Ok(Plan::Add(names(&["r"]))));
    // A leaf without identity breaks the application although its root is named.
    let bare = Table { identity_columns: Vec::new(), ..leaf };
    let refused = plan_of(&[], &[tables[0].clone(), bare], None, true);
    assert_eq!(refused, Err(code::REPLICA_IDENTITY));
}

#[test]
fn only_tables_that_are_added_need_an_identity() {
    let bare = Table { identity_columns: Vec::new(), ..table(2, "bare") };
    let tables = [table(1, "a"), bare.clone()];
    assert_eq!(plan_of(&[], &tables, None, true), Err(code::REPLICA_IDENTITY));
    let found = publication(vec![published(1, "a"), published(2, "bare")]);
    assert_eq!(plan_of(&[], &tables, Some(&found), true), Ok(Plan::Keep));
    let found = publication(vec![published(1, "a")]);
    assert_eq!(plan_of(&[], &tables, Some(&found), false), Err(code::REPLICA_IDENTITY));
    let full = Table { identity: ReplicaIdentity::Full, ..bare };
    let tables = [table(1, "a"), full];
    assert_eq!(plan_of(&[], &tables, None, true), Ok(Plan::Create(names(&["a", "bare"]))));
    // All tables of the database count, captured or not, when all are published.
    let bare =
        Table { identity: ReplicaIdentity::Nothing, identity_columns: Vec::new(), ..table(3, "c") };
    let pairs = [("publication.autocreate.mode", "all_tables"), ("table.include.list", "public.a")];
    assert_eq!(plan_of(&pairs, &[table(1, "a"), bare], None, true), Err(code::REPLICA_IDENTITY));
}

#[test]
fn a_column_list_must_hold_the_identity() {
    let listed = |columns: &[&str]| {
        let columns = Some(columns.iter().map(|column| (*column).to_owned()).collect());
        publication(vec![Published { columns, ..published(1, "a") }])
    };
    let tables = [table(1, "a")];
    assert_eq!(plan_of(&[], &tables, Some(&listed(&["id"])), true), Ok(Plan::Keep));
    assert_eq!(plan_of(&[], &tables, Some(&listed(&["v"])), true), Err(code::COLUMN_LIST));
    let full = [Table { identity: ReplicaIdentity::Full, ..table(1, "a") }];
    assert_eq!(plan_of(&[], &full, Some(&listed(&["id"])), true), Err(code::COLUMN_LIST));
    assert_eq!(plan_of(&[], &full, Some(&listed(&["id", "v"])), true), Ok(Plan::Keep));
}

#[test]
fn the_server_must_be_able_to_serve() {
    let tables = [table(1, "a")];
    let refused = |capacity: Capacity| {
        let found = Found {
            capacity: &capacity,
            tables: &tables,
            publication: None,
            new_slots: 1,
            first: true,
        };
        check(&settings(&[]), &found).unwrap_err().code
    };
    assert_eq!(
        refused(Capacity { wal_level: "replica".to_owned(), ..capacity() }),
        code::WAL_LEVEL
    );
    assert_eq!(refused(Capacity { slots_used: 10, ..capacity() }), code::SLOTS_FULL);
    assert_eq!(refused(Capacity { in_recovery: true, ..capacity() }), code::STANDBY);
}

#[test]
fn a_missing_publication_behind_a_position_is_refused() {
    assert_eq!(plan_of(&[], &[table(1, "a")], None, false), Err(code::PUBLICATION));
}

#[test]
fn statements_name_tables_exactly() {
    let settings =
        settings(&[("publication.name", "my \"pub\""), ("publish.via.partition.root", "true")]);
    let tables = vec![TableName::new("My.S", "t")];
    assert_eq!(
        Plan::Create(tables.clone()).statement(&settings).unwrap(),
        "CREATE PUBLICATION \"my \"\"pub\"\"\" FOR TABLE ONLY \"My.S\".\"t\" WITH \
         (publish_via_partition_root = true)"
    );
    assert_eq!(
        Plan::Add(tables).statement(&settings).unwrap(),
        "ALTER PUBLICATION \"my \"\"pub\"\"\" ADD TABLE ONLY \"My.S\".\"t\""
    );
    assert_eq!(Plan::Keep.statement(&settings), None);
}
