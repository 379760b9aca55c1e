use proptest::prelude::*;

use super::*;
use crate::schema::refreshes_objects;

fn renamed_to(owner: Option<&str>, name: &str) -> DdlClass {
    DdlClass::Rename { to: written(owner, name) }
}

fn written(owner: Option<&str>, name: &str) -> WrittenName {
    WrittenName { owner: owner.map(str::to_owned), name: name.to_owned() }
}

/// Each statement as it stands, in small letters, and with a comment between any two words.
fn all_are(class: &DdlClass, statements: &[&str]) {
    for statement in statements {
        let commented = statement.replace(' ', " /* drop table */ -- alter\n ");
        for sql in [(*statement).to_owned(), commented, format!("{statement};")] {
            assert_eq!(classify(&sql), *class, "{sql}");
        }
    }
}

fn all_refresh(statements: &[&str]) {
    for sql in statements {
        assert!(refreshes_objects(sql), "{sql}");
    }
}

const CREATES: &[&str] = &[
    "CREATE TABLE t (id NUMBER)",
    "create table hr.t(id number)",
    "CREATE TABLE \"Hr\".\"t\" AS SELECT * FROM u WHERE x = 'DROP TABLE'",
    "CREATE TABLE \"INDEX\" (id NUMBER)",
    "CREATE TABLE IF NOT EXISTS t (id NUMBER)",
    "CREATE OR REPLACE TABLE t (id NUMBER)",
    "CREATE GLOBAL TEMPORARY TABLE t (id NUMBER) ON COMMIT DELETE ROWS",
    "CREATE PRIVATE TEMPORARY TABLE ora$ptt_t (id NUMBER)",
    "CREATE SHARDED TABLE t (id NUMBER)",
    "CREATE DUPLICATED TABLE t (id NUMBER)",
    "CREATE BLOCKCHAIN TABLE t (id NUMBER) NO DROP UNTIL 31 DAYS IDLE",
    "CREATE IMMUTABLE TABLE t (id NUMBER)",
    "CREATE IMMUTABLE BLOCKCHAIN TABLE t (id NUMBER)",
    "CREATE JSON COLLECTION TABLE t",
    "CREATE SOMETHING NEW TABLE t (id NUMBER)",
    "CREATE TABLE p FOR EXCHANGE WITH TABLE t",
    "CREATE MATERIALIZED VIEW m AS SELECT 1 a FROM dual",
    "FLASHBACK TABLE hr.t TO BEFORE DROP",
    "FLASHBACK TABLE \"BIN$x==$0\" TO BEFORE DROP RENAME TO t",
];

#[test]
fn a_table_is_created() {
    all_are(&DdlClass::Create, CREATES);
    all_refresh(CREATES);
}

#[test]
fn columns_change() {
    all_are(
        &DdlClass::Columns,
        &[
            "ALTER TABLE t ADD (c NUMBER(10,2) DEFAULT 0 NOT NULL, CONSTRAINT x UNIQUE (c))",
            "alter table hr.t add c varchar2(10) default 'CONSTRAINT'",
            "ALTER TABLE \"ADD\".\"CONSTRAINT\" ADD c NUMBER",
            "ALTER TABLE \"RENAME TO\" ADD \"CONSTRAINT\" NUMBER",
            "ALTER TABLE t ADD (\"PRIMARY\" NUMBER)",
            "ALTER TABLE IF EXISTS t ADD c NUMBER",
            "ALTER TABLE t MODIFY c VARCHAR2(20)",
            "ALTER TABLE t MODIFY (c VARCHAR2(20), d NUMBER)",
            "ALTER TABLE t MODIFY c INVISIBLE",
            "ALTER TABLE t MODIFY \"PARTITION\" NUMBER",
            "ALTER TABLE t DROP COLUMN c CASCADE CONSTRAINTS",
            "ALTER TABLE t DROP (c, d)",
            "ALTER TABLE t DROP COLUMNS CONTINUE",
            "ALTER TABLE t RENAME COLUMN a TO b",
            "ALTER TABLE t RENAME COLUMN \"TO\" TO \"COLUMN\"",
            "ALTER TABLE t SET UNUSED (c)",
            "ALTER TABLE t SET UNUSED COLUMN c ONLINE",
            "ALTER TABLE t NOLOGGING ADD (c NUMBER)",
            "ALTER TABLE t PCTFREE 20 STORAGE (NEXT 1M) DROP COLUMN c",
        ],
    );
}

#[test]
fn constraints_change() {
    all_are(
        &DdlClass::Constraints,
        &[
            "ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY (id) USING INDEX pk",
            "ALTER TABLE t ADD PRIMARY KEY (id)",
            "ALTER TABLE t ADD UNIQUE (a, b)",
            "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (id)",
            "ALTER TABLE t ADD CHECK (a > 0)",
            "ALTER TABLE t ADD (CONSTRAINT pk PRIMARY KEY (id))",
            "ALTER TABLE t ADD (PRIMARY KEY (id))",
            "ALTER TABLE t DROP CONSTRAINT pk CASCADE",
            "ALTER TABLE t DROP PRIMARY KEY KEEP INDEX",
            "ALTER TABLE t DROP UNIQUE (a)",
            "ALTER TABLE t MODIFY CONSTRAINT pk DISABLE",
            "ALTER TABLE t MODIFY PRIMARY KEY RELY",
            "ALTER TABLE t ENABLE CONSTRAINT pk",
            "ALTER TABLE t ENABLE NOVALIDATE PRIMARY KEY",
            "ALTER TABLE t ENABLE VALIDATE CONSTRAINT pk",
            "ALTER TABLE t DISABLE UNIQUE (a)",
            "ALTER TABLE t DISABLE VALIDATE CONSTRAINT pk",
        ],
    );
}

#[test]
fn logging_changes() {
    all_are(
        &DdlClass::Logging,
        &[
            "ALTER TABLE t ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
            "ALTER TABLE t ADD SUPPLEMENTAL LOG GROUP g (a, b) ALWAYS",
            "ALTER TABLE t DROP SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS",
            "ALTER TABLE t DISABLE LOGICAL REPLICATION",
        ],
    );
}

#[test]
fn a_table_is_renamed() {
    all_are(&renamed_to(None, "U"), &["ALTER TABLE hr.t RENAME TO u", "RENAME t TO u"]);
    all_are(
        &renamed_to(None, "To"),
        &["RENAME \"TO\" TO \"To\"", "alter table t rename to \"To\""],
    );
    // What DROP TABLE does first where there is a recycle bin.
    all_are(
        &renamed_to(Some("HR"), "BIN$aB+/c==$0"),
        &["ALTER TABLE \"HR\".\"T\" RENAME TO \"HR\".\"BIN$aB+/c==$0\""],
    );
    all_refresh(&["ALTER TABLE hr.t RENAME TO u", "RENAME t TO u", "RENAME t"]);
    all_refresh(&["ALTER TABLE t ADD (n nt) NESTED TABLE n STORE AS s"]);
}

const PARTITION: &[&str] = &[
    "ALTER TABLE t ADD PARTITION p VALUES LESS THAN (10)",
    "ALTER TABLE t ADD SUBPARTITION p VALUES (1)",
    "ALTER TABLE t DROP PARTITION p UPDATE INDEXES",
    "ALTER TABLE t DROP SUBPARTITIONS p, q",
    "ALTER TABLE t SPLIT PARTITION p AT (5) INTO (PARTITION a, PARTITION b)",
    "ALTER TABLE t MERGE PARTITIONS a, b INTO PARTITION c",
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u INCLUDING INDEXES",
    "ALTER TABLE t EXCHANGE SUBPARTITION p WITH TABLE u",
    "ALTER TABLE t COALESCE PARTITION",
    "ALTER TABLE t COALESCE SUBPARTITION p",
    "ALTER TABLE t TRUNCATE PARTITION p DROP STORAGE",
    "ALTER TABLE t MODIFY PARTITION p ADD VALUES (3)",
    "ALTER TABLE t MODIFY PARTITION BY HASH (id) PARTITIONS 4 ONLINE",
    "ALTER TABLE t MODIFY DEFAULT ATTRIBUTES TABLESPACE x",
    "ALTER TABLE t SET INTERVAL (NUMTOYMINTERVAL(1, 'MONTH'))",
    "ALTER TABLE t SET STORE IN (x)",
    "ALTER TABLE \"PARTITION\" ADD PARTITION p VALUES (1)",
];

#[test]
fn partitions_change() {
    all_are(&DdlClass::Partition, PARTITION);
    all_refresh(PARTITION);
}

#[test]
fn rows_or_a_table_are_gone() {
    all_are(
        &DdlClass::Truncate,
        &["TRUNCATE TABLE t", "truncate table hr.\"T\" drop storage", "TRUNCATE TABLE t CASCADE"],
    );
    const DROPS: &[&str] = &[
        "DROP TABLE t",
        "drop table hr.\"View\" cascade constraints purge",
        "DROP TABLE IF EXISTS t",
        "DROP TABLE preserve",
        "DROP TABLE t AS \"BIN$aB+/c==$0\"",
        "DROP MATERIALIZED VIEW m",
    ];
    all_are(&DdlClass::Drop, DROPS);
    all_refresh(DROPS);
}

#[test]
fn unique_indexes_come_and_go() {
    let class = |index: WrittenName, on: Option<WrittenName>| DdlClass::Index { index, on };
    let on = |table| Some(written(Some("HR"), table));
    all_are(
        &class(written(None, "I"), on("T")),
        &[
            "CREATE UNIQUE INDEX i ON hr.t (a, b)",
            "create unique index if not exists i on hr.\"T\"(a) tablespace x",
        ],
    );
    all_are(
        &class(written(Some("HR"), "I"), None),
        &[
            "DROP INDEX hr.i",
            "DROP INDEX IF EXISTS hr.i ONLINE",
            "ALTER INDEX hr.i UNUSABLE",
            "ALTER INDEX hr.i RENAME TO j",
            "ALTER INDEX hr.i REBUILD ONLINE",
        ],
    );
}

#[test]
fn the_rest_changes_nothing() {
    let words = STORAGE.map(|word| format!("ALTER TABLE hr.t {word} x"));
    all_are(&DdlClass::NoChange, &words.each_ref().map(String::as_str));
    all_are(
        &DdlClass::NoChange,
        &[
            "ALTER TABLE t RENAME CONSTRAINT a TO b",
            "ALTER TABLE t RENAME PARTITION a TO b",
            "ALTER TABLE t DROP UNUSED COLUMNS CHECKPOINT 100",
            "ALTER TABLE t MODIFY LOB (c) (RETENTION)",
            "ALTER TABLE t MODIFY VARRAY v (PCTVERSION 5)",
            "ALTER TABLE t MODIFY NESTED TABLE n RETURN AS LOCATOR",
            "ALTER TABLE t MOVE PARTITION p TABLESPACE x",
            "ALTER TABLE t SHRINK SPACE CASCADE",
            "ALTER TABLE t ENABLE ROW MOVEMENT",
            "ALTER TABLE t DISABLE TABLE LOCK",
            "ALTER TABLE t ENABLE ALL TRIGGERS",
            "ALTER TABLE t COALESCE",
            "ALTER TABLE t ILM ADD POLICY COMPRESS AFTER 30 DAYS",
            "ALTER TABLE t NO DROP UNTIL 16 DAYS IDLE",
            "ALTER TABLE t STORAGE (ADD 1)",
            "COMMENT ON TABLE t IS 'ALTER TABLE t ADD c NUMBER'",
            "GRANT SELECT ON t TO u",
            "REVOKE ALL ON t FROM u",
            "ANALYZE TABLE t COMPUTE STATISTICS",
            "AUDIT SELECT ON t",
            "NOAUDIT SELECT ON t",
            "PURGE TABLE t",
            "ASSOCIATE STATISTICS WITH COLUMNS t.c USING s",
            "DISASSOCIATE STATISTICS FROM COLUMNS t.c",
            "CREATE INDEX i ON t (a)",
            "CREATE BITMAP INDEX i ON t (a)",
            "CREATE OR REPLACE FORCE EDITIONABLE VIEW v AS SELECT * FROM TABLE(f)",
            "CREATE TYPE n AS TABLE OF NUMBER",
            "CREATE OR REPLACE TYPE n AS TABLE OF NUMBER",
            "CREATE OR REPLACE TRIGGER t BEFORE CREATE ON SCHEMA BEGIN DROP TABLE t; END;",
            "CREATE MATERIALIZED VIEW LOG ON t WITH PRIMARY KEY",
            "CREATE SEQUENCE s START WITH 1",
            "CREATE SYNONYM \"TABLE\" FOR t",
            "CREATE USER u IDENTIFIED BY \"p\" DEFAULT TABLESPACE x",
            "ALTER INDEX i COALESCE",
            "ALTER SEQUENCE s INCREMENT BY 2",
            "ALTER TRIGGER t ENABLE",
            "DROP VIEW v",
            "DROP SEQUENCE s",
            "DROP USER u CASCADE",
            "DROP MATERIALIZED VIEW m PRESERVE TABLE",
            "FLASHBACK TABLE t TO SCN 5",
        ],
    );
}

#[test]
fn what_is_not_known_is_said_to_be_so() {
    let unknown = [
        "",
        "/* nothing */",
        "'literal'",
        "(",
        "REFASHION TABLE t",
        "\"CREATE\" TABLE t (id NUMBER)",
        "ALTER TABLE",
        "ALTER TABLE t",
        "ALTER TABLE t FOLD COLUMN c",
        "ALTER TABLE t \"ADD\" (c NUMBER)",
        "ALTER TABLE t (",
        "ALTER TABLE t DROP c",
        "ALTER TABLE t RENAME b",
        "ALTER TABLE t SET WHATEVER",
        "TRUNCATE CLUSTER c",
        "RENAME t",
    ];
    for sql in unknown {
        assert_eq!(classify(sql), DdlClass::Unknown, "{sql}");
    }
    all_refresh(&unknown);
}

#[test]
fn an_error_shows_no_literal() {
    let shown = head("ALTER TABLE hr.t FOLD (c VARCHAR2(9) DEFAULT 'secret')");
    assert_eq!(shown, "ALTER TABLE HR.T FOLD ( C VARCHAR2 (");
}

const VOCABULARY: &[&str] = &[
    "CREATE",
    "ALTER",
    "DROP",
    "RENAME",
    "TRUNCATE",
    "FLASHBACK",
    "TABLE",
    "PARTITION",
    "SUBPARTITION",
    "ADD",
    "MODIFY",
    "SPLIT",
    "SET",
    "INTERVAL",
    "TO",
    "BEFORE",
    "GLOBAL",
    "TEMPORARY",
    "MATERIALIZED",
    "VIEW",
    "INDEX",
    "UNIQUE",
    "ON",
    "IF",
    "EXISTS",
    "COLUMN",
    "(",
    ")",
    "t",
    "hr.t",
    "\"ADD\"",
    "'x'",
    "MOVE",
    "ENABLE",
    "CONSTRAINT",
    "COALESCE",
];

proptest! {
    /// The cut behind a statement is never missed where the class says that numbers change.
    #[test]
    fn what_changes_numbers_is_always_a_reason_to_resolve_them(
        words in prop::collection::vec(prop::sample::select(VOCABULARY), 1..8),
    ) {
        let sql = words.join(" ");
        let changes = matches!(
            classify(&sql),
            DdlClass::Create | DdlClass::Drop | DdlClass::Rename { .. } | DdlClass::Partition
        );
        prop_assert!(!changes || refreshes_objects(&sql), "{sql}");
    }

    #[test]
    fn no_text_makes_it_panic(sql in ".{0,60}") {
        let _ = (classify(&sql), refreshes_objects(&sql), head(&sql));
    }
}
