//! What the server's catalog says: questions over an ordinary connection.

use std::collections::HashMap;
use std::time::Duration;

use highwater_connector::{Column, ConnectorError, ErrorKind};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, CopyOutStream, Row};

use crate::checkup::Room;
use crate::column_form::ColumnFacts;
use crate::error::{code, from_query};
use crate::holding::Holding;
use crate::lsn::Lsn;
use crate::name::TableName;
use crate::pgoutput::{Relation, ReplicaIdentity};
use crate::preflight::{Capacity, Publication, Published, Table};
use crate::relation::RelationFacts;
use crate::session::{NEVER_IDLE, PINNED, silent};
use crate::settings::Login;
use crate::shape::{JsonKind, type_id};
use crate::start_decision::Slot;
use crate::table_form::TableFacts;
use crate::transport::{Established, Transport};

/// An ordinary connection to the database.
pub(crate) struct Catalog {
    client: Client,
    driver: JoinHandle<()>,
    login: Login,
    /// `server_version_num`, such as 150018.
    version: i32,
}

impl Drop for Catalog {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Oldest server that is read: partitioned tables in publications and `wal_status` came with it.
const OLDEST: i32 = 130_000;

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Catalog {
    /// Connects.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub(crate) async fn connect(login: &Login) -> Result<Self, ConnectorError> {
        match timeout(login.connect_timeout, Self::prepared(login)).await {
            Ok(catalog) => catalog,
            Err(_) => Err(silent(login, login.connect_timeout)),
        }
    }

    async fn prepared(login: &Login) -> Result<Self, ConnectorError> {
        let mut catalog = Self::log_in(login).await?;
        catalog.statement("preparing the connection", NEVER_IDLE).await?;
        let version = catalog.one(
            "reading the version",
            "SELECT current_setting('server_version_num')::int4",
            &[],
        );
        catalog.version = version.await?.get(0);
        if catalog.version < OLDEST {
            return Err(ConnectorError::stop(
                code::VERSION,
                ErrorKind::Source,
                format!(
                    "the server has version {}; 13 and later are read",
                    catalog.version / 10_000
                ),
                "upgrade the server",
            ));
        }
        Ok(catalog)
    }

    async fn log_in(login: &Login) -> Result<Self, ConnectorError> {
        let transport = Transport::open(login).await?;
        let mut config = tokio_postgres::Config::new();
        // The transport has agreed on TLS already, or on doing without.
        let mode = if transport.is_encrypted() { SslMode::Require } else { SslMode::Disable };
        config
            .user(&login.user)
            .dbname(&login.database)
            .application_name("highwater")
            .ssl_mode(mode)
            .ssl_negotiation(SslNegotiation::Direct)
            .options(options());
        if !login.password.is_empty() {
            config.password(&login.password);
        }
        let (client, connection) = config
            .connect_raw(transport, Established)
            .await
            .map_err(|error| from_query("connecting", &error))?;
        let driver = tokio::spawn(async move {
            // Whoever waits for an answer is told of the error.
            let _ = connection.await;
        });
        Ok(Self { client, driver, login: login.clone(), version: 0 })
    }

    /// Whether the connection still stands.
    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// What the server gives, or the error that it does not.
    async fn answer<T>(
        &self,
        doing: &str,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ConnectorError> {
        match timeout(self.login.answer_timeout, asked).await {
            Ok(answer) => answer.map_err(|error| from_query(doing, &error)),
            Err(_) => Err(silent(&self.login, self.login.answer_timeout)),
        }
    }

    /// Whether rows that were waited for so long may still come: a COPY has no other bound.
    ///
    /// # Errors
    /// When they may not.
    pub(crate) fn check_silence(&self, waited: Duration) -> Result<(), ConnectorError> {
        let bound = self.login.answer_timeout;
        if waited < bound { Ok(()) } else { Err(silent(&self.login, bound)) }
    }

    /// Runs statements without parameters.
    ///
    /// # Errors
    /// When the server refuses them or does not answer in time.
    pub(crate) async fn statement(&self, doing: &str, sql: &str) -> Result<(), ConnectorError> {
        self.answer(doing, self.client.batch_execute(sql)).await
    }

    /// Begins to read what a `COPY … TO STDOUT` gives.
    ///
    /// # Errors
    /// When the server refuses it or does not answer in time.
    pub(crate) async fn copy(&self, sql: &str) -> Result<CopyOutStream, ConnectorError> {
        self.answer(sql, self.client.copy_out(sql)).await
    }

    async fn rows(
        &self,
        doing: &str,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, ConnectorError> {
        self.answer(doing, self.client.query(sql, parameters)).await
    }

    /// The one row of a question.
    ///
    /// # Errors
    /// When the server refuses it or does not answer in time.
    pub(crate) async fn one(
        &self,
        doing: &str,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<Row, ConnectorError> {
        self.answer(doing, self.client.query_one(sql, parameters)).await
    }

    /// What the server has room for.
    pub(crate) async fn capacity(&self) -> Result<Capacity, ConnectorError> {
        let row = self
            .one(
                "reading the server's settings",
                "SELECT current_setting('wal_level'), current_setting('max_replication_slots')::int8,
                        (SELECT count(*) FROM pg_replication_slots), pg_is_in_recovery()",
                &[],
            )
            .await?;
        Ok(Capacity {
            wal_level: row.get(0),
            slots: row.get(1),
            slots_used: row.get(2),
            in_recovery: row.get(3),
        })
    }

    /// How many readers of slots the server has room for.
    pub(crate) async fn room(&self) -> Result<Room, ConnectorError> {
        let sql = "SELECT current_setting('max_wal_senders')::int8,
                          (SELECT count(*) FROM pg_stat_get_wal_senders())";
        let row = self.one("counting WAL senders", sql, &[]).await?;
        Ok(Room { senders: row.get(0), senders_used: row.get(1) })
    }

    /// A replication slot.
    pub(crate) async fn slot(&self, name: &str) -> Result<Option<Slot>, ConnectorError> {
        let sql = "SELECT plugin::text, database::text, wal_status, restart_lsn::text,
                          confirmed_flush_lsn::text, active_pid
                   FROM pg_replication_slots WHERE slot_name::text = $1";
        let rows = self.rows("reading the slot", sql, &[&name]).await?;
        Ok(rows.first().map(|row| Slot {
            plugin: row.get(0),
            database: row.get(1),
            wal_status: row.get(2),
            restart_lsn: lsn(row.get(3)),
            confirmed_flush: lsn(row.get(4)),
            active_pid: row.get(5),
        }))
    }

    /// What a replication slot holds.
    pub(crate) async fn holding(&self, name: &str) -> Result<Option<Holding>, ConnectorError> {
        let rows = self.rows("reading what the slot holds", HOLDING, &[&name]).await?;
        let bytes = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        Ok(rows.first().map(|row| Holding {
            wal_status: row.get(0),
            restart_lsn: lsn(row.get(1)),
            held: bytes(row.get(2)),
            behind: bytes(row.get(3)),
            limit: bytes(row.get(4)),
            lag_seconds: row.get(5),
        }))
    }

    /// All tables that can be published.
    pub(crate) async fn tables(&self) -> Result<Vec<Table>, ConnectorError> {
        let rows = self.rows("reading the tables", TABLES, &[]).await?;
        rows.iter().map(table).collect()
    }

    /// A publication with its tables, as they appear in the stream.
    pub(crate) async fn publication(
        &self,
        name: &str,
    ) -> Result<Option<Publication>, ConnectorError> {
        let doing = "reading the publication";
        let rows = self.rows(doing, PUBLICATION, &[&name]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        // Column lists, row filters and whole schemas came with release 15.
        let (attnames, rowfilter, schemas) = if self.version >= 150_000 {
            ("(SELECT array_agg(a::text) FROM unnest(p.attnames) a)", "p.rowfilter", SCHEMA_ROWS)
        } else {
            ("NULL::text[]", "NULL::text", "")
        };
        let sql = format!(
            "SELECT c.oid, p.schemaname::text, p.tablename::text, {attnames}, {rowfilter},
                    c.relkind = 'p', ARRAY({TABLE_ROWS} {schemas} ORDER BY 1)
             FROM pg_publication_tables p JOIN pg_publication pub ON pub.pubname = p.pubname
             JOIN pg_namespace n ON n.nspname = p.schemaname
             JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
             WHERE p.pubname::text = $1 ORDER BY p.schemaname, p.tablename"
        );
        let tables = self.rows(doing, &sql, &[&name]).await?;
        let stood: String = row.get(7);
        let stands = self.rows(doing, PUBLICATION, &[&name]).await?;
        if stands.first().is_none_or(|row| row.get::<_, String>(7) != stood) {
            let what = format!("publication {name} was altered while it was looked at");
            return Err(ConnectorError::again(code::STATEMENT, ErrorKind::Source, what));
        }
        Ok(Some(Publication {
            row: stood,
            all_tables: row.get(0),
            insert: row.get(1),
            update: row.get(2),
            delete: row.get(3),
            truncate: row.get(4),
            via_root: row.get(5),
            members: row.get(6),
            tables: tables.iter().map(published).collect(),
        }))
    }

    /// About how many rows these tables have, with their partitions; those without statistics are
    /// left out.
    pub(crate) async fn row_estimates(
        &self,
        oids: Vec<u32>,
    ) -> Result<HashMap<u32, u64>, ConnectorError> {
        let sql = "SELECT t.oid, sum(c.reltuples)::int8
                   FROM unnest($1::oid[]) AS t(oid), pg_class c
                   WHERE c.relkind = 'r' AND (c.oid = t.oid
                         OR c.oid IN (SELECT relid FROM pg_partition_tree(t.oid::regclass)))
                   GROUP BY t.oid HAVING bool_and(c.reltuples >= 0)";
        let rows = self.rows("estimating the rows of tables", sql, &[&oids]).await?;
        let count = |row: &Row| u64::try_from(row.get::<_, i64>(1)).unwrap_or(0);
        Ok(rows.iter().map(|row| (row.get(0), count(row))).collect())
    }

    /// Columns of a table that the stream shows, of those that its publication lists.
    pub(crate) async fn columns(&self, table: &Published) -> Result<Vec<Column>, ConnectorError> {
        // Generated columns can be published from release 18 on, and are listed there only then.
        let generated = self.version >= 180_000 && table.columns.is_some();
        let rows = self
            .rows("reading the columns", COLUMNS, &[&table.oid, &table.columns, &generated])
            .await?;
        Ok(rows.iter().map(column).collect())
    }

    /// What Debezium's forms need to know of a table.
    pub(crate) async fn table_facts(&self, oid: u32) -> Result<TableFacts, ConnectorError> {
        let doing = "looking up the forms of a table";
        let columns = self.rows(doing, FORMED_COLUMNS, &[&oid]).await?;
        let key = self.rows(doing, FORMED_KEY, &[&oid]).await?;
        Ok(TableFacts {
            columns: columns.iter().map(formed).collect(),
            key: key.iter().map(|row| row.get(0)).collect(),
        })
    }

    /// What the stream does not say of a table; with `formed` what Debezium's forms need, too.
    pub(crate) async fn facts(
        &self,
        relation: &Relation,
        formed: bool,
    ) -> Result<RelationFacts, ConnectorError> {
        let doing = "looking up a table of the stream";
        let (oids, modifiers): (Vec<u32>, Vec<i32>) =
            relation.columns.iter().map(|column| (column.type_oid, column.type_modifier)).unzip();
        let sql = "SELECT DISTINCT o, m, format_type(o, m)
                   FROM unnest($1::oid[], $2::int4[]) AS t(o, m)
                   WHERE EXISTS (SELECT FROM pg_type WHERE oid = o)";
        let types = self.rows(doing, sql, &[&oids, &modifiers]).await?;
        let key = self.rows(doing, PRIMARY_KEY, &[&relation.oid]).await?;
        let above = self.rows(doing, ANCESTORS, &[&relation.oid]).await?;
        let exists = "SELECT EXISTS (SELECT FROM pg_class WHERE oid = $1)";
        let table =
            if formed { self.table_facts(relation.oid).await? } else { TableFacts::default() };
        Ok(RelationFacts {
            table,
            exists: self.one(doing, exists, &[&relation.oid]).await?.get(0),
            ancestors: above
                .iter()
                .map(|row| TableName::new(row.get::<_, String>(0), row.get::<_, String>(1)))
                .collect(),
            primary_key: key.iter().map(|row| row.get(0)).collect(),
            type_names: types
                .iter()
                .map(|row| ((row.get(0), row.get(1)), row.get(2)))
                .collect::<HashMap<_, _>>(),
        })
    }

    /// Transactions that are open, oldest first: what a new slot has to wait for.
    pub(crate) async fn open_transactions(&self) -> Result<Vec<String>, ConnectorError> {
        let sql = "SELECT format('transaction %s of process %s (user %s, open for %s s)',
                          backend_xid, pid, usename, extract(epoch FROM now() - xact_start)::int8)
                   FROM pg_stat_activity
                   WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
                   ORDER BY xact_start LIMIT 5";
        let rows = self.rows("looking for open transactions", sql, &[]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

fn options() -> String {
    let settings = PINNED.into_iter().chain([("lock_timeout", "10000")]);
    settings.map(|(name, value)| format!("-c {name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The setting is in megabytes, -1 for no bound.
const HOLDING: &str = "
    SELECT s.wal_status, s.restart_lsn::text, (w.lsn - s.restart_lsn)::int8,
           (w.lsn - s.confirmed_flush_lsn)::int8,
           (SELECT nullif(setting::int8, -1) * 1048576 FROM pg_settings
            WHERE name = 'max_slot_wal_keep_size'),
           (SELECT extract(epoch FROM r.flush_lag)::float8 FROM pg_stat_replication r
            WHERE r.pid = s.active_pid)
    FROM pg_replication_slots s, (
        SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
                    ELSE pg_current_wal_lsn() END AS lsn) w
    WHERE s.slot_name::text = $1";

const TABLES: &str = "
    SELECT c.oid, n.nspname::text, c.relname::text, c.relkind = 'p', c.relreplident::text,
           ARRAY(SELECT a.attname::text FROM pg_index i
                 JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
                 WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
                 AND CASE c.relreplident WHEN 'd' THEN i.indisprimary
                                         WHEN 'i' THEN i.indisreplident ELSE false END),
           (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
            AND NOT a.attisdropped AND a.attgenerated = ''),
           has_table_privilege(c.oid, 'SELECT'),
           ARRAY(WITH RECURSIVE up(oid) AS (
                     SELECT inhparent FROM pg_inherits WHERE inhrelid = c.oid AND c.relispartition
                     UNION SELECT h.inhparent FROM pg_inherits h JOIN up ON h.inhrelid = up.oid)
                 SELECT oid FROM up)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    ORDER BY 2, 3";

const PUBLICATION: &str = "
    SELECT puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot,
           ARRAY(SELECT prrelid FROM pg_publication_rel r WHERE r.prpubid = p.oid),
           p.oid::text || ':' || p.xmin::text
    FROM pg_publication p WHERE pubname::text = $1";

/// What puts a table into a publication: its own row, or one of a partitioned table above it.
const TABLE_ROWS: &str = "
    WITH RECURSIVE up(oid) AS (
        SELECT c.oid
        UNION SELECT h.inhparent FROM up JOIN pg_inherits h ON h.inhrelid = up.oid
              JOIN pg_class part ON part.oid = up.oid AND part.relispartition)
    SELECT r.oid::text || ':' || r.xmin::text FROM pg_publication_rel r JOIN up ON r.prrelid = up.oid
    WHERE r.prpubid = pub.oid";

/// Or one of a schema.
const SCHEMA_ROWS: &str = "
    UNION ALL SELECT s.oid::text || ':' || s.xmin::text
    FROM pg_publication_namespace s JOIN pg_class t ON t.relnamespace = s.pnnspid
    JOIN up ON t.oid = up.oid WHERE s.pnpubid = pub.oid";

const ANCESTORS: &str = "
    WITH RECURSIVE up(oid) AS (
        SELECT h.inhparent FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
        WHERE h.inhrelid = $1 AND c.relispartition
        UNION SELECT h.inhparent FROM pg_inherits h JOIN up ON h.inhrelid = up.oid)
    SELECT n.nspname::text, c.relname::text
    FROM up JOIN pg_class c ON c.oid = up.oid JOIN pg_namespace n ON n.oid = c.relnamespace";

const PRIMARY_KEY: &str = "
    SELECT a.attname::text FROM pg_index i
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
    WHERE i.indrelid = $1 AND i.indisprimary ORDER BY a.attnum";

/// Columns with the type under their domain, as JDBC describes them to Debezium.
const FORMED_COLUMNS: &str = "
    SELECT a.attname::text, base.oid, base.typname::text, base.modifier,
           NOT (a.attnotnull OR t.typtype = 'd' AND t.typnotnull),
           pg_get_expr(d.adbin, d.adrelid),
           ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = base.oid
                 ORDER BY e.enumsortorder),
           a.atttypid, a.atttypmod
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated = ''
    CROSS JOIN LATERAL (
        WITH RECURSIVE down(oid, typname, typtype, typbasetype, typtypmod, modifier) AS (
            SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typtypmod, a.atttypmod
            UNION ALL SELECT n.oid, n.typname, n.typtype, n.typbasetype, n.typtypmod, down.typtypmod
            FROM pg_type n JOIN down ON down.typtype = 'd' AND n.oid = down.typbasetype)
        SELECT oid, typname, modifier FROM down WHERE typtype <> 'd' LIMIT 1) base
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped";

/// The primary key in its own order; without one, the first unique index by its name, as Debezium
/// takes it (`JdbcConnection.readTableUniqueIndices`). One over an expression or a part of the
/// rows is none.
const FORMED_KEY: &str = "
    WITH chosen AS (
        SELECT i.* FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = $1 AND i.indisunique AND i.indexprs IS NULL AND i.indpred IS NULL
        ORDER BY i.indisprimary DESC, c.relname LIMIT 1)
    SELECT a.attname::text FROM chosen
    CROSS JOIN generate_series(0, chosen.indnkeyatts - 1) at
    JOIN pg_attribute a ON a.attrelid = chosen.indrelid AND a.attnum = chosen.indkey[at]
    ORDER BY at";

/// The key is what the stream flags (primary key or chosen index), or the primary key where the
/// stream flags nothing of use.
const COLUMNS: &str = "
    SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
           EXISTS (SELECT FROM pg_index i
                   WHERE i.indrelid = c.oid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
                   AND CASE c.relreplident WHEN 'i' THEN i.indisreplident
                                           ELSE i.indisprimary END),
           a.atttypid, a.atttypmod,
           (WITH RECURSIVE down AS (
                SELECT t.oid, t.typtype, t.typbasetype FROM pg_type t WHERE t.oid = a.atttypid
                UNION ALL SELECT t.oid, t.typtype, t.typbasetype
                FROM pg_type t JOIN down ON down.typtype = 'd' AND t.oid = down.typbasetype)
            SELECT oid FROM down WHERE typtype <> 'd' LIMIT 1)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.oid = $1 AND a.attnum > 0 AND NOT a.attisdropped
      AND (a.attgenerated = '' OR $3) AND ($2::text[] IS NULL OR a.attname::text = ANY ($2))
    ORDER BY a.attnum";

fn column(row: &Row) -> Column {
    let (oid, modifier): (u32, i32) = (row.get(4), row.get(5));
    let base: Option<u32> = row.get(6);
    Column {
        name: row.get(0),
        source_type: row.get(1),
        json_type: JsonKind::of_type(base.unwrap_or(oid)).name().to_owned(),
        nullable: row.get(2),
        key: row.get(3),
        type_id: type_id(oid, modifier),
    }
}

fn formed(row: &Row) -> (String, ColumnFacts) {
    let facts = ColumnFacts {
        oid: row.get(1),
        type_name: row.get(2),
        modifier: row.get(3),
        optional: row.get(4),
        default: row.get(5),
        labels: row.get(6),
        type_id: type_id(row.get(7), row.get(8)),
    };
    (row.get(0), facts)
}

fn table(row: &Row) -> Result<Table, ConnectorError> {
    let letter: String = row.get(4);
    let identity_columns: Vec<String> = row.get(5);
    Ok(Table {
        oid: row.get(0),
        name: TableName::new(row.get::<_, String>(1), row.get::<_, String>(2)),
        partitioned: row.get(3),
        identity: ReplicaIdentity::from_letter(letter.bytes().next().unwrap_or(0))?,
        identity_columns,
        columns: usize::try_from(row.get::<_, i64>(6)).unwrap_or(0),
        readable: row.get(7),
        ancestors: row.get(8),
    })
}

fn published(row: &Row) -> Published {
    Published {
        oid: row.get(0),
        name: TableName::new(row.get::<_, String>(1), row.get::<_, String>(2)),
        columns: row.get(3),
        filter: row.get(4),
        partitioned: row.get(5),
        rows: row.get(6),
    }
}

fn lsn(text: Option<String>) -> Option<Lsn> {
    text.and_then(|text| text.parse().ok())
}
