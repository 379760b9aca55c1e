-- The demo's shop. Three tables are captured; the ledger is not: it is the witness.
-- psql variables: customers, orders, lines_each (rows that exist before the connector starts).

CREATE ROLE shop_owner;
CREATE ROLE highwater LOGIN REPLICATION PASSWORD 'capture-password' IN ROLE shop_owner;
GRANT CREATE ON DATABASE shop TO highwater;
GRANT CREATE ON SCHEMA public TO shop_owner;

SET ROLE shop_owner;

CREATE TABLE customers (
    id integer PRIMARY KEY,
    name text NOT NULL,
    email varchar(80),
    balance numeric(12, 2) NOT NULL DEFAULT 0,
    active boolean NOT NULL DEFAULT true,
    note text,
    joined timestamptz NOT NULL DEFAULT now()
);
-- Big values go out of line uncompressed, so that an UPDATE can leave them unsent (TOAST).
ALTER TABLE customers ALTER note SET STORAGE EXTERNAL;

CREATE TABLE orders (
    id bigint PRIMARY KEY,
    customer_id integer NOT NULL,
    status text NOT NULL,
    total numeric NOT NULL,
    rating double precision,
    tags text[],
    doc jsonb,
    placed date
);
ALTER TABLE orders ALTER doc SET STORAGE EXTERNAL;
-- Its changes carry the whole old row.
ALTER TABLE orders REPLICA IDENTITY FULL;

CREATE TABLE order_lines (
    order_id bigint,
    line integer,
    product text NOT NULL,
    quantity smallint NOT NULL,
    price numeric(10, 2),
    PRIMARY KEY (order_id, line)
);

RESET ROLE;

CREATE TABLE ledger (
    writer integer,
    n integer,
    events integer NOT NULL,
    wal pg_lsn NOT NULL,
    PRIMARY KEY (writer, n)
);
CREATE INDEX ON ledger (wal);

-- The comparator's own view of the source, independent of the connector's slot: it knows
-- the tables from their first row on.
SELECT slot_name FROM pg_create_logical_replication_slot('truth', 'test_decoding');

BEGIN;
INSERT INTO customers
SELECT id, 'Customer ' || id || ' Zoë', CASE WHEN id % 7 > 0 THEN 'c' || id || '@example.org' END,
    id * 1.25, id % 11 > 0,
    CASE WHEN id % 20 = 0 THEN repeat(md5(id::text), 150) WHEN id % 3 = 0 THEN '' END,
    timestamptz '2024-02-29 12:00:00.5+00' + id * interval '1 minute'
FROM generate_series(1, :customers) AS id;
INSERT INTO ledger VALUES (-1, 1, :customers, pg_current_wal_insert_lsn());
COMMIT;

BEGIN;
INSERT INTO orders
SELECT id, 1 + id % :customers, 'new', id / 8.0, CASE WHEN id % 4 > 0 THEN id / 7.0::float8 END,
    ARRAY['a' || id % 5, 'b c'],
    CASE WHEN id % 25 = 0 THEN jsonb_build_object('big', repeat(md5(id::text), 120)) END,
    date '2024-01-01' + (id % 365)::integer
FROM generate_series(1, :orders) AS id;
INSERT INTO ledger VALUES (-1, 2, :orders, pg_current_wal_insert_lsn());
COMMIT;

BEGIN;
INSERT INTO order_lines
SELECT id, line, 'product ' || (id * 31 + line) % 997, 1 + line % 9,
    CASE WHEN line % 10 > 0 THEN (id + line) / 4.0 END
FROM generate_series(1, :orders) AS id, generate_series(1, :lines_each) AS line;
INSERT INTO ledger VALUES (-1, 3, :orders * :lines_each, pg_current_wal_insert_lsn());
COMMIT;
