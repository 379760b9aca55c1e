//! Publications that change: what they left out meanwhile is read anew, or said by name.

use highwater_connector::{ConnectorError, Retry};
use highwater_postgres::code;

use crate::rig::{Event, Rig, replayed};

const BOTH: &str =
    "create table a(id int primary key, v int); create table b(id int primary key, v int);
     create publication dbz_publication for table a, b, hw_mark";

impl Rig {
    /// A rig that streams from `BOTH`, with a row in each table.
    async fn capturing(mode: &str) -> Self {
        let mut rig = Self::new(BOTH).await;
        rig.set("slot.watch.interval.ms", "100").set("publication.autocreate.mode", mode);
        rig.started().await;
        rig.sql("insert into a values(1,1); insert into b values(1,1)").await;
        rig.settle().await;
        rig
    }

    /// Ends the task in order, as `connector stop` does.
    async fn stopped(&mut self) {
        self.task.take().unwrap().stop().await;
    }

    /// The error that ends the task, and that of the next start.
    async fn fails_and_stays_so(&mut self) -> [ConnectorError; 2] {
        let error = self.fails().await;
        self.crash();
        [error, self.refused().await]
    }

    /// Takes a field out of the stored offset, as `offsets set --remove` does.
    fn forget(&self, field: &str) {
        let mut offset = self.stored.last().unwrap();
        offset.0.shift_remove(field).unwrap();
        self.stored.put(offset);
    }

    /// The ids that a consumer has of a table.
    fn ids(&self, table: &str) -> Vec<i64> {
        let rows = replayed(self.events().filter(|event| event.table() == table));
        let mut ids: Vec<i64> = rows.values().filter_map(|row| row["id"].as_i64()).collect();
        ids.sort_unstable();
        ids
    }

    /// How often a table was read.
    fn reads(&self, table: &str) -> usize {
        let of = self.events().filter(|event| event.table() == table);
        of.filter(|event| event.op() == "snapshot_end").count()
    }
}

fn is(error: &ConnectorError, code: &str, retry: Retry) {
    assert_eq!((error.code, error.retry), (code, retry), "{error}");
}

/// Each leaves out the row 2 of table b, and what stands afterwards looks as it did before.
const OUT_AND_IN: [&str; 3] = [
    "alter publication dbz_publication drop table b;;insert into b values(2,2);;\
     alter publication dbz_publication add table b",
    "begin; alter publication dbz_publication drop table b; insert into b values(2,2); \
     alter publication dbz_publication add table b; commit",
    "alter publication dbz_publication set table a, hw_mark, b where (id > 9);;\
     insert into b values(2,2);;alter publication dbz_publication set table a, hw_mark, b",
];

async fn run(rig: &Rig, statements: &str) {
    for statement in statements.split(";;") {
        rig.sql(statement).await;
    }
}

#[tokio::test]
async fn a_table_that_was_out_of_the_publication_for_a_while_is_read_anew() {
    for (number, statements) in OUT_AND_IN.into_iter().enumerate() {
        for running in [false, true] {
            let mut rig = Rig::capturing("filtered").await;
            if !running {
                rig.stopped().await;
            }
            // The look of a running task must not fall into the filter, which is told by itself.
            let whole = statements.replace(";;", ";");
            if running {
                rig.sql(&whole).await
            } else {
                run(&rig, statements).await
            }
            if running {
                let error = rig.fails().await;
                is(&error, code::PUBLICATION_CHANGED, Retry::Backoff);
                assert!(error.what.contains("public.b") && !error.what.contains("public.a"));
                rig.crash();
            }
            rig.started().await;
            rig.settle().await;
            assert_eq!((rig.ids("a"), rig.ids("b")), (vec![1], vec![1, 2]), "{number} {running}");
            assert_eq!((rig.reads("a"), rig.reads("b")), (1, 2), "{number} {running}");
            // And it stays quiet.
            rig.stopped().await;
            rig.started().await;
            rig.settle().await;
            assert_eq!(rig.reads("b"), 2, "{number} {running}");
        }
    }
}

#[tokio::test]
async fn in_a_publication_that_is_not_ours_it_stops_by_name() {
    for running in [false, true] {
        let mut rig = Rig::capturing("disabled").await;
        if !running {
            rig.stopped().await;
        }
        rig.sql(OUT_AND_IN[1]).await;
        if running {
            is(&rig.fails().await, code::PUBLICATION_CHANGED, Retry::Never);
            rig.crash();
        }
        let refusal = rig.refused().await;
        is(&refusal, code::PUBLICATION_CHANGED, Retry::Never);
        for part in ["table.exclude.list", "--remove publication", "begin again"] {
            assert!(refusal.remedy.contains(part), "{part} is missing in {refusal}");
        }
        // Both ways out that keep what was delivered.
        if running {
            rig.set("table.include.list", "public.a,public.hw_mark");
        } else {
            rig.forget("publication");
        }
        rig.started().await;
        rig.sql("insert into b values(3,3)").await;
        rig.settle().await;
        assert_eq!(rig.ids("b"), if running { vec![1] } else { vec![1, 3] });
    }
}

#[tokio::test]
async fn operations_that_were_left_out_for_a_while_stop_by_name() {
    let narrowed = "alter publication dbz_publication set (publish = 'insert');
                    update a set v = 2;
                    alter publication dbz_publication set (publish = 'insert,update,delete,truncate')";
    for mode in ["filtered", "disabled"] {
        let mut rig = Rig::capturing(mode).await;
        rig.sql(narrowed).await;
        is(&rig.fails().await, code::PUBLICATION_CHANGED, Retry::Never);
        rig.crash();
        let refusal = rig.refused().await;
        is(&refusal, code::PUBLICATION_CHANGED, Retry::Never);
        assert!(refusal.what.contains("itself was altered"), "{refusal}");
    }
}

#[tokio::test]
async fn what_leaves_the_publication_as_it_is_is_no_trouble() {
    let mut rig = Rig::capturing("disabled").await;
    rig.stopped().await;
    rig.sql("create table c(id int primary key); alter publication dbz_publication add table c")
        .await;
    rig.sql("comment on publication dbz_publication is 'ours'").await;
    rig.sql("alter publication dbz_publication set table a, b, c, hw_mark").await;
    for catalog in ["pg_publication", "pg_publication_rel"] {
        rig.sql(&format!("vacuum (full, freeze) {catalog}")).await;
    }
    rig.started().await;
    rig.sql("insert into b values(2,2); insert into c values(1)").await;
    rig.settle().await;
    assert_eq!((rig.ids("b"), rig.ids("c")), (vec![1, 2], vec![1]));
}

#[tokio::test]
async fn p16_a_row_filter_on_a_captured_table_is_refused_before_anything_is_made() {
    let mut rig = Rig::new(
        "create table t(id int primary key, v int); create table other(id int primary key);
         create publication dbz_publication for table t where (id > 10), other where (id > 10)",
    )
    .await;
    rig.set("table.include.list", "public.t,public.hw_mark");
    let refusal = rig.refused().await;
    is(&refusal, code::FILTER, Retry::Never);
    assert!(refusal.what.contains("public.t") && !refusal.what.contains("other"), "{refusal}");
    assert!(rig.stored.last().is_none());
    rig.sql(&refusal.remedy).await;
    rig.sql("insert into t values(1,1)").await;
    rig.started().await;
    rig.settle().await;
    assert_eq!(rig.ids("t"), [1]);
}

#[tokio::test]
async fn a_row_filter_that_appears_while_changes_are_read_stops_by_name() {
    let mut rig = Rig::capturing("disabled").await;
    rig.sql("alter publication dbz_publication set table a, hw_mark, b where (id > 9)").await;
    for error in rig.fails_and_stays_so().await {
        is(&error, code::FILTER, Retry::Never);
        assert!(error.what.contains("public.b") && error.remedy.contains("begin again"), "{error}");
    }
}

/// The table under its name again; what stood in the old one is gone.
const REMADE: &str = "drop table b; create table b(id int primary key, v int)";

#[tokio::test]
async fn a_table_that_is_dropped_and_made_again_is_read_anew() {
    let mut rig = Rig::capturing("filtered").await;
    rig.sql(REMADE).await;
    rig.sql("insert into b values(2,2)").await;
    is(&rig.fails().await, code::PUBLICATION_CHANGED, Retry::Backoff);
    rig.crash();
    rig.started().await;
    rig.sql("insert into b values(3,3)").await;
    rig.settle().await;
    assert_eq!((rig.ids("a"), rig.ids("b")), (vec![1], vec![2, 3]));
}

#[tokio::test]
async fn a_table_that_is_made_again_stops_a_publication_that_is_not_ours() {
    let put_in = format!(
        "begin; {REMADE}; insert into b values(2,2);
         alter publication dbz_publication add table b; commit"
    );
    for statements in [REMADE, &put_in] {
        let mut rig = Rig::capturing("disabled").await;
        rig.sql(statements).await;
        for error in rig.fails_and_stays_so().await {
            is(&error, code::PUBLICATION_CHANGED, Retry::Never);
            assert!(error.what.contains("public.b"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_publication_that_is_made_again_is_not_tried_for_ever() {
    for known in [true, false] {
        let mut rig = Rig::capturing("disabled").await;
        rig.stopped().await;
        rig.sql("drop publication dbz_publication").await;
        rig.sql("insert into b values(2,2)").await;
        rig.sql("create publication dbz_publication for table a, b, hw_mark").await;
        // An offset of an earlier release does not tell: the server does.
        let error = if known {
            rig.refused().await
        } else {
            rig.forget("publication");
            rig.started().await;
            rig.fails().await
        };
        is(&error, code::PUBLICATION, Retry::Never);
        for part in ["begin again", "pg_drop_replication_slot"] {
            assert!(error.remedy.contains(part), "{part} is missing in {error}");
        }
    }
}

#[tokio::test]
async fn a_table_that_is_taken_out_of_the_publication_is_read_anew() {
    let mut rig = Rig::new(
        "create table a(id int primary key, v int); create table b(id int primary key, v int)",
    )
    .await;
    rig.set("slot.watch.interval.ms", "100");
    rig.started().await;
    rig.settle().await;
    rig.sql("insert into a values(1,1)").await;
    rig.sql("alter publication dbz_publication drop table a").await;
    rig.sql("insert into a values(2,2)").await;
    let error = rig.fails().await;
    assert_eq!((error.code, error.retry), (code::PUBLICATION_CHANGED, Retry::Backoff), "{error}");
    assert!(error.what.contains("public.a") && error.what.contains("read anew"), "{error}");
    rig.crash();
    rig.started().await;
    rig.sql("insert into a values(3,3)").await;
    rig.settle().await;
    let of_a = || rig.events().filter(|event| event.table() == "a");
    let rows = replayed(of_a());
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(of_a().filter(|event| event.op() == "snapshot_end").count(), 2, "read twice");
}

#[tokio::test]
async fn a_publication_that_is_not_ours_to_mend_stops_by_name() {
    let both =
        "create table a(id int primary key, v int); create table b(id int primary key, v int);
                create publication dbz_publication for table a, b, hw_mark";
    for (statement, expected) in [
        ("alter publication dbz_publication drop table a", code::PUBLICATION_CHANGED),
        ("alter publication dbz_publication set (publish = 'insert')", code::PUBLISH),
        ("drop publication dbz_publication", code::PUBLICATION),
    ] {
        let mut rig = Rig::new(both).await;
        rig.set("slot.watch.interval.ms", "100").set("publication.autocreate.mode", "disabled");
        rig.started().await;
        rig.sql("insert into a values(1,1); insert into b values(1,1)").await;
        rig.settle().await;
        rig.sql(statement).await;
        let error = rig.fails().await;
        assert_eq!((error.code, error.retry), (expected, Retry::Never), "{statement}: {error}");
        // And so does the next start, also when nobody looked meanwhile.
        rig.crash();
        let refusal = rig.refused().await;
        assert_eq!(
            (refusal.code, refusal.retry),
            (expected, Retry::Never),
            "{statement}: {refusal}"
        );
        if expected == code::PUBLICATION_CHANGED {
            rig.set("table.exclude.list", "public.a");
            rig.started().await;
        }
    }
}

#[tokio::test]
async fn a_captured_table_that_is_dropped_is_no_trouble_and_one_that_joins_is_read_from_then_on() {
    let mut rig =
        Rig::new("create table a(id int primary key); create table b(id int primary key)").await;
    rig.set("slot.watch.interval.ms", "100");
    rig.started().await;
    rig.settle().await;
    rig.sql("drop table a; create table c(id int primary key); insert into c values(1)").await;
    rig.sql("alter publication dbz_publication add table c; insert into c values(2)").await;
    // The server is looked at behind all of that: what it says then is no error.
    let lag = |rig: &Rig| rig.held().map(|hold| hold.facts);
    let before = lag(&rig);
    rig.sql("select pg_switch_wal()").await;
    rig.until("a later look", |rig| lag(rig) != before).await;
    rig.settle().await;
    let of_c: Vec<String> =
        rig.events().filter(|event| event.table() == "c").map(Event::line).collect();
    assert_eq!(of_c, [r#"c +{"id":2}"#]);
}
