#!/usr/bin/env python3
"""The demo's workload: two sessions that write to the shop at the same time, from a seed.

Each transaction that commits writes one line into the ledger, last: its writer and number, how many
row changes to the captured tables it made, and the WAL position just before its commit. What is
rolled back never shows there. The sessions own the rows of even and odd ids, so that each knows
what it changed, and share a few hot rows, so that they also wait for each other.

Ends on SIGTERM, with a last transaction that inserts the customer LAST_CUSTOMER.
"""

import argparse
import random
import signal
import sys
import threading
import time

from postgres import Postgres

LAST_CUSTOMER = 2_000_000_000
HOT_CUSTOMERS = 4
COLUMN_ADDED_AT = 700
MOST_TRANSACTIONS = 200_000
WORDS = ["plain", "naïve", "日本語", "🚀 lift-off", "O'Brien", 'say "hi"', "back\\slash", "tab\tline\nfeed", " ", "null"]  # fmt: skip


def quote(text):
    """An SQL literal; None is NULL."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


class Shop:
    """What one writer knows of the rows it owns."""

    def __init__(self, writer, customers, orders, lines_each):
        self.customers = [i for i in range(1, customers + 1) if self.owns(i, writer) and i > HOT_CUSTOMERS]
        self.lines = {i: set(range(1, lines_each + 1)) for i in range(1, orders + 1) if self.owns(i, writer)}
        self.next_customer = 1_000_000 + writer
        self.next_order = 10_000_000 + writer

    @staticmethod
    def owns(identifier, writer):
        """Whether a row's id is this writer's."""
        return identifier % 2 == writer

    def new_customer(self):
        """An id that no row has had."""
        self.next_customer += 2
        return self.next_customer

    def new_order(self):
        """An id that no row has had."""
        self.next_order += 2
        return self.next_order


class Planner:
    """Plans single changes: each is (statements, number of row changes, what to note if kept)."""

    def __init__(self, rng, shop):
        self.rng = rng
        self.shop = shop
        self.column_added = False

    def text(self):
        """Some text, often awkward."""
        return self.rng.choice(WORDS) + str(self.rng.randrange(1000))

    def big(self, least):
        """An SQL expression of a value that is stored out of line."""
        return f"repeat(md5('{self.rng.random()}'), {least + self.rng.randrange(200)})"

    def customer(self):
        """An own customer; few enough are picked that rows are changed again and again."""
        return self.rng.choice(self.shop.customers)

    def order(self):
        """An own order."""
        return self.rng.choice(list(self.shop.lines))

    def insert_customer(self):
        """A new customer, with or without an out-of-line note."""
        new = self.shop.new_customer()
        note = self.rng.choice(["NULL", "''", quote(self.text()), self.big(100)])
        sql = f"INSERT INTO customers (id, name, note) VALUES ({new}, {quote(self.text())}, {note});"
        return [sql], 1, lambda: self.shop.customers.append(new)

    def update_customer(self):
        """Some columns; a big note stays unsent."""
        email = self.rng.choice([None, self.text()[:60]])
        sql = (
            f"UPDATE customers SET email = {quote(email)}, balance = balance + 0.10,"
            f" active = NOT active WHERE id = {self.customer()};"
        )
        return [sql], 1, None

    def rewrite_note(self):
        """A big value written anew, then the row again without touching it."""
        customer = self.customer()
        return [
            f"UPDATE customers SET note = {self.big(100)} WHERE id = {customer};",
            f"UPDATE customers SET balance = balance - 1 WHERE id = {customer};",
        ], 2, None  # fmt: skip

    def move_customer(self):
        """A key change."""
        old, new = self.customer(), self.shop.new_customer()

        def note():
            self.shop.customers.remove(old)
            self.shop.customers.append(new)

        return [f"UPDATE customers SET id = {new} WHERE id = {old};"], 1, note

    def delete_customer(self):
        """A customer goes."""
        old = self.customer()
        sql = f"DELETE FROM customers WHERE id = {old};"
        return [sql], 1, lambda: self.shop.customers.remove(old)

    def insert_order(self):
        """An order with its lines, for a customer whose balance changes with it."""
        new, lines = self.shop.new_order(), self.rng.randrange(1, 6)
        columns = "id, customer_id, status, total, rating, tags, doc, placed"
        rating = self.rng.choice(["NULL", "'NaN'", "1e300", "0.1", "-0.5", str(self.rng.random())])
        doc = self.rng.choice(["NULL", f"jsonb_build_object('k', {self.big(80)})", "'{\"ä\": [1, null]}'"])
        tags = self.rng.choice(["NULL", "'{}'", "ARRAY['x', NULL, 'y,z']"])
        values = f"{new}, {self.customer()}, 'new', {self.rng.randrange(10**6)}.50, {rating}, {tags}, {doc}, current_date"
        if self.column_added:
            columns += ", coupon"
            values += ", " + quote(self.rng.choice([None, "", self.text()]))
        rows = ", ".join(f"({new}, {i}, {quote(self.text())}, {i}, {i}.25)" for i in range(1, lines + 1))
        statements = [
            f"INSERT INTO orders ({columns}) VALUES ({values});",
            f"INSERT INTO order_lines VALUES {rows};",
            f"UPDATE customers SET balance = balance + 9.99 WHERE id = {self.customer()};",
        ]
        return statements, lines + 2, lambda: self.shop.lines.update({new: set(range(1, lines + 1))})

    def update_order(self):
        """A status; the out-of-line document stays unsent."""
        coupon = f", coupon = {quote(self.rng.choice([None, self.text()]))}" if self.column_added else ""
        sql = f"UPDATE orders SET status = {quote(self.text())}, rating = NULL{coupon} WHERE id = {self.order()};"
        return [sql], 1, None

    def reprice_lines(self):
        """Every line of an order in one statement."""
        order = self.order()
        sql = (
            f"UPDATE order_lines SET price = price + 1, quantity = quantity % 9 + 1 WHERE order_id = {order};"
        )
        return [sql], len(self.shop.lines[order]), None

    def move_lines(self):
        """Key changes of all lines of an order, in one statement."""
        order = self.order()
        lines = set(self.shop.lines[order])
        sql = f"UPDATE order_lines SET line = line + 1000 WHERE order_id = {order};"
        return [sql], len(lines), lambda: self.shop.lines.update({order: {i + 1000 for i in lines}})

    def delete_order(self):
        """An order and its lines go."""
        order = self.order()
        statements = [
            f"DELETE FROM order_lines WHERE order_id = {order};",
            f"DELETE FROM orders WHERE id = {order};",
        ]
        return statements, len(self.shop.lines[order]) + 1, lambda: self.shop.lines.pop(order)

    def come_and_go(self):
        """A row that lives inside one transaction only."""
        new = self.shop.new_customer()
        return [
            f"INSERT INTO customers (id, name) VALUES ({new}, 'brief');",
            f"UPDATE customers SET name = 'briefer' WHERE id = {new};",
            f"DELETE FROM customers WHERE id = {new};",
        ], 3, None  # fmt: skip

    def touch_hot(self):
        """A row that both writers change."""
        hot = self.rng.randrange(1, HOT_CUSTOMERS + 1)
        return [f"UPDATE customers SET balance = balance + 1 WHERE id = {hot};"], 1, None

    def change(self):
        """One of them, by weight."""
        kinds = {
            self.insert_customer: 6, self.update_customer: 22, self.rewrite_note: 6, self.move_customer: 5,
            self.delete_customer: 3, self.insert_order: 16, self.update_order: 20, self.reprice_lines: 5,
            self.move_lines: 3, self.delete_order: 4, self.come_and_go: 3,
        }  # fmt: skip
        return self.rng.choices(list(kinds), list(kinds.values()))[0]()


class Writer(threading.Thread):
    """One session; plans transactions, runs them, and keeps a steady pace."""

    def __init__(self, index, arguments, stopping, column_added):
        super().__init__(name=f"writer {index}")
        self.index = index
        self.rng = random.Random(f"{arguments.seed}/{index}")
        shop = Shop(index, arguments.customers, arguments.orders, arguments.lines_each)
        self.planner = Planner(self.rng, shop)
        self.pause = 2 / arguments.rate
        self.session = Postgres(".", arguments.port).session()
        self.stopping = stopping
        self.column_added = column_added
        self.failure = None

    def run(self):
        try:
            due = time.monotonic()
            for number in range(1, MOST_TRANSACTIONS // 2):
                if self.stopping.is_set():
                    break
                self.transaction(number)
                due = max(due + self.pause, time.monotonic() - 1)
                time.sleep(max(0, due - time.monotonic()))
            self.session.close()
        except Exception as failure:  # reported by main, which ends with it
            self.failure = failure
            self.stopping.set()

    def transaction(self, number):
        """Plans and runs one."""
        if self.index == 0 and number == COLUMN_ADDED_AT:
            self.add_column(number)
            return
        self.planner.column_added = self.column_added.is_set()
        roll = self.rng.random()
        if roll < 0.08:
            self.roll_back(number)
        elif roll < 0.18:
            self.commit(number, *self.with_savepoints())
        elif roll < 0.20:
            self.commit(number, [], 0)
        else:
            self.commit(number, *self.contended(self.rng.choice([1, 1, 1, 2, 2, 3, 5])))

    def contended(self, changes):
        """Changes and sometimes a hot row: one and last, or the writers would deadlock."""
        statements, events = self.plain(changes)
        if self.rng.random() < 0.15:
            more, count, _ = self.planner.touch_hot()
            return statements + more, events + count
        return statements, events

    def plain(self, changes):
        """Some changes that are all kept, sometimes with a pause within."""
        statements, events = [], 0
        for plan in [self.planner.change] * changes:
            more, count, note = plan()
            if note:
                note()
            statements += more
            events += count
            if self.rng.random() < 0.05:
                statements.append(f"DO $$ BEGIN PERFORM pg_sleep({self.rng.random() / 50}); END $$;")
        return statements, events

    def with_savepoints(self):
        """Changes around some that are rolled back to a savepoint, and some released."""
        statements, events = self.plain(1)
        undone = [line for _ in range(self.rng.randrange(1, 4)) for line in self.planner.change()[0]]
        statements += ["SAVEPOINT undone;", *undone, "ROLLBACK TO undone;"]
        more, count = self.plain(1)
        return [*statements, "SAVEPOINT kept;", *more, "RELEASE kept;"], events + count

    def commit(self, number, statements, events):
        """Runs a transaction that commits, its line of the ledger last."""
        ledger = f"INSERT INTO ledger VALUES ({self.index}, {number}, {events}, pg_current_wal_insert_lsn());"
        self.session.run("\n".join(["BEGIN;", *statements, ledger, "COMMIT;"]))

    def roll_back(self, number):
        """Runs a transaction that is undone, its line of the ledger with it."""
        statements = [line for _ in range(self.rng.randrange(1, 4)) for line in self.planner.change()[0]]
        ledger = f"INSERT INTO ledger VALUES ({self.index}, {number}, -1, pg_current_wal_insert_lsn());"
        self.session.run("\n".join(["BEGIN;", *statements, ledger, "ROLLBACK;"]))

    def add_column(self, number):
        """The table changes between two rows of one transaction."""
        before, after = self.planner.order(), self.planner.order()
        self.commit(number, [
            f"UPDATE orders SET status = 'old shape' WHERE id = {before};",
            "ALTER TABLE orders ADD COLUMN coupon text;",
            f"UPDATE orders SET coupon = 'WELCOME' WHERE id = {after};",
        ], 2)  # fmt: skip
        self.column_added.set()


def finish(port):
    """The last transaction, by which everybody knows that nothing follows."""
    session = Postgres(".", port).session()
    session.run(
        f"BEGIN; INSERT INTO customers (id, name) VALUES ({LAST_CUSTOMER}, 'the last');"
        "INSERT INTO ledger VALUES (-1, 4, 1, pg_current_wal_insert_lsn()); COMMIT;"
    )
    session.close()


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("port", "customers", "orders", "lines-each", "rate"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seed", required=True)
    arguments = parser.parse_args()
    stopping, column_added = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    writers = [Writer(index, arguments, stopping, column_added) for index in (0, 1)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    failures = [f"{writer.name}: {writer.failure}" for writer in writers if writer.failure]
    if failures:
        sys.exit("\n".join(failures))
    finish(arguments.port)


if __name__ == "__main__":
    main()
