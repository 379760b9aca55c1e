"""The comparator's own tests: small hand-made runs in which each counter moves, and only that one."""

import json
import os
import tempfile
import unittest

import compare
from damage import damage
from source import UNCHANGED, read_change
from tables import Number, Wrong, cell, copy_text, json_cell

TYPES = {"id": "integer", "name": "text", "big": "text"}


def copy_line(*fields):
    """A line of COPY's text format."""
    escaped = [f.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t") for f in map(str, fields)]
    return "\t".join(escaped) + "\n"


class Run:
    """A recorded run of one table with three columns: two rows in the snapshot, then transactions."""

    def __init__(self, identity="d"):
        self.identity = identity
        self.truth, self.ledger, self.client = [], [], []
        self.trail = ['0 hw={"v":1,"g":"a","pos":"0","i":0},x=1']
        self.rolled_back = []
        self.final = {}
        self.kills = [{"killed": "server", "in_flight": True}] * 3 + [{"killed": "client"}] * 2
        self.place = 0x100
        self.transaction("1", ("INSERT", "id[integer]:1 name[text]:'one' big[text]:null", {}))
        self.transaction("2", ("INSERT", "id[integer]:2 name[text]:'two' big[text]:'BIG'", {}))
        self.final = {1: ("1", "one", "\\N"), 2: ("2", "two", "BIG")}
        self.point = f"00000000/{self.place:08X}"
        self.snapshot()

    def snapshot(self):
        """The table as a snapshot at the point."""
        self.send("SNAPSHOT_BEGIN", point=self.point)
        self.row({"id": 1, "name": "one", "big": None})
        self.row({"id": 2, "name": "two", "big": "BIG"})
        self.send("SNAPSHOT_END", point=self.point)

    def row(self, after):
        """A row of a snapshot."""
        self.send("INSERT", snapshot=True, after=after, record_id="a:0:0:0")

    def send(self, op, **fields):
        """A record of the client's file."""
        record = {"op_type": op, "qual_table": "public.t", "pos": f"p{len(self.client)}"} | fields
        self.client.append(json.dumps({"pos": record["pos"], "record": record}) + "\n")

    def transaction(self, xid, *changes, first=0):
        """A committed transaction: each change as (op, test_decoding's columns, the images sent)."""
        self.truth.append(copy_line(f"0/{self.place:X}", xid, f"BEGIN {xid}"))
        for index, (op, columns, images) in enumerate(changes, first):
            self.truth.append(copy_line(f"0/{self.place:X}", xid, f"table public.t: {op}: {columns}"))
            if images:
                self.send(op, xid=xid, record_id=f"a:{self.place:X}:{index}:0", **images)
        self.truth.append(copy_line(f"0/{self.place:X}", xid, self.ledger_line(xid, len(changes))))
        self.place += 0x10
        self.truth.append(copy_line(f"0/{self.place:X}", xid, f"COMMIT {xid}"))

    def ledger_line(self, number, events):
        """The transaction's line of the ledger, as both witnesses have it."""
        self.ledger.append(copy_line(0, number, events))
        return (
            f"table public.ledger: INSERT: writer[integer]:0 n[integer]:{number} "
            f"events[integer]:{events} wal[pg_lsn]:'0/0'"
        )

    def compare(self):
        """What the comparator says."""
        columns = [
            copy_line("t", name, kind, 1 if name == "id" else 0, self.identity)
            for name, kind in TYPES.items()
        ]
        files = {
            "columns.txt": columns,
            "truth.txt": self.truth,
            "ledger.txt": self.ledger,
            "table-t.txt": ["\t".join(row) + "\n" for row in self.final.values()],
            "client.jsonl": self.client,
            "kills.jsonl": [json.dumps(kill) + "\n" for kill in self.kills],
            "trail.txt": [line + "\n" for line in self.trail],
            "trail-all.txt": [line + "\n" for line in self.trail + self.rolled_back],
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, lines in files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.writelines(lines)
            result, self.remarks = compare.compare(folder)
        return result


def busy_run(identity="d"):
    """A run with an insert, two updates (one of the key), a delete."""
    run = Run(identity)
    whole = identity == "f"
    run.transaction("3", (
        "INSERT", "id[integer]:3 name[text]:'it''s' big[text]:null",
        {"after": {"id": 3, "name": "it's", "big": None}},
    ), (
        "UPDATE",
        ("old-key: id[integer]:2 name[text]:'two' big[text]:'BIG' new-tuple: " if whole else "")
        + "id[integer]:2 name[text]:'zwei' big[text]:unchanged-toast-datum",
        {"after": {"id": 2, "name": "zwei", "big": "BIG"}, "before": {"id": 2, "name": "two", "big": "BIG"}}
        if whole else {"after": {"id": 2, "name": "zwei"}, "unchanged": ["big"]},
    ))  # fmt: skip
    run.transaction("4", (
        "UPDATE",
        ("old-key: id[integer]:1 name[text]:'one' new-tuple: " if whole else "old-key: id[integer]:1 new-tuple: ")
        + "id[integer]:10 name[text]:'one' big[text]:null",
        {"before": {"id": 1, "name": "one", "big": None} if whole else {"id": 1},
         "after": {"id": 10, "name": "one", "big": None}},
    ))  # fmt: skip
    run.transaction("5", (
        "DELETE", "id[integer]:3" + (" name[text]:'it''s'" if whole else ""),
        {"before": {"id": 3, "name": "it's", "big": None} if whole else {"id": 3}},
    ))  # fmt: skip
    run.final = {10: ("10", "one", "\\N"), 2: ("2", "zwei", "BIG")}
    return run


class Comparison(unittest.TestCase):
    """Each counter."""

    def expect(self, run, **wanted):
        """Compares, and checks the counters that are named; the others must not have moved."""
        result = run.compare()
        still = {
            "missing": 0,
            "duplicates": 0,
            "out_of_order": 0,
            "tables_equal": True,
            "reread": 0,
            "reappended": 0,
            "rolled_back": 0,
        }
        for name, value in (still | wanted).items():
            self.assertEqual(result[name], value, f"{name}: {run.remarks}")
        return result

    def test_a_faithful_stream_moves_nothing(self):
        for identity in ("d", "f"):
            result = self.expect(busy_run(identity), events=4, transactions=5)
            self.assertEqual(
                (result["server_kills"], result["client_kills"], result["kills_in_flight"]), (3, 2, 3)
            )

    def test_a_lost_change_is_missing(self):
        run = busy_run()
        del run.client[-2]
        self.expect(run, missing=1, tables_equal=False)

    def test_a_second_copy_is_a_duplicate(self):
        run = busy_run()
        run.client.append(run.client[-1])
        self.expect(run, duplicates=1)

    def test_a_suffix_delivered_again_counts_every_record(self):
        run = busy_run()
        run.client += run.client[-3:]
        self.expect(run, duplicates=3)

    def test_neighbours_exchanged_are_out_of_order(self):
        run = busy_run()
        run.client[-2:] = reversed(run.client[-2:])
        self.expect(run, out_of_order=1)

    def test_the_breaks_of_the_demo_move_their_counters(self):
        for kind, counter in (("drop", "missing"), ("dup", "duplicates"), ("swap", "out_of_order")):
            run = busy_run()
            run.client = [line.decode() for line in damage([line.encode() for line in run.client], kind)]
            result = run.compare()
            counters = {name: result[name] for name in ("missing", "duplicates", "out_of_order")}
            self.assertEqual(counters, dict.fromkeys(counters, 0) | {counter: 1}, kind)

    def test_a_rolled_back_change_is_one_too_many(self):
        run = busy_run()
        run.send("INSERT", xid="99", record_id="a:0:0:0", after={"id": 9, "name": "ghost", "big": None})
        self.expect(run, duplicates=1, tables_equal=False)

    def test_a_change_below_the_snapshot_point_is_one_too_many(self):
        run = busy_run()
        run.send("INSERT", xid="2", record_id="a:0:0:0", after={"id": 2, "name": "two", "big": "BIG"})
        self.expect(run, duplicates=1, tables_equal=False)

    def test_a_wrong_value_is_one_missing_and_one_too_many(self):
        for wrong in ({"name": "zwo"}, {"name": None}, {"big": None}, {"extra": 1}):
            run = busy_run()
            record = json.loads(run.client[-3])
            record["record"]["after"] |= wrong
            if "big" in wrong:  # an unchanged value shown as NULL
                record["record"]["unchanged"] = []
            run.client[-3] = json.dumps(record) + "\n"
            result = run.compare()
            self.assertEqual((result["missing"], result["duplicates"]), (1, 1), wrong)

    def test_a_changed_value_must_not_be_marked_unchanged(self):
        run = busy_run()
        run.client[-3] = run.client[-3].replace('["big"]', '["big", "name"]')
        self.expect(run, missing=1, duplicates=1, tables_equal=False)

    def test_an_old_key_must_be_the_old_key(self):
        for before in ({"id": 10}, {}, {"id": 1, "name": None}):
            run = busy_run()
            record = json.loads(run.client[-2])
            record["record"]["before"] = before
            run.client[-2] = json.dumps(record) + "\n"
            result = run.compare()
            self.assertEqual((result["missing"], result["duplicates"]), (1, 1), before)

    def test_an_added_column_is_null_in_a_whole_old_row_only(self):
        for identity, wrong in (("f", 0), ("d", 1)):
            run = busy_run(identity)
            run.client[-1] = run.client[-1].replace('"before": {', '"before": {"added": null, ')
            self.expect(run, missing=wrong, duplicates=wrong)

    def test_a_digit_string_is_not_a_number(self):
        run = busy_run()
        run.client[-2] = run.client[-2].replace('"id": 10', '"id": "10"')
        result = run.compare()
        self.assertEqual((result["missing"], result["duplicates"]), (1, 1))

    def test_rows_begun_again_are_reread(self):
        run = busy_run()
        run.client[:0] = run.client[:2]
        self.expect(run, reread=1)

    def test_a_row_lost_in_the_snapshot_is_missing(self):
        run = busy_run()
        del run.client[1]
        self.expect(run, missing=1, tables_equal=True)

    def test_a_row_twice_in_one_snapshot_is_a_duplicate(self):
        run = busy_run()
        run.client.insert(1, run.client[1])
        self.expect(run, duplicates=1)

    def test_a_row_that_the_table_never_had_is_one_too_many(self):
        run = busy_run()
        run.client.insert(1, run.client[1].replace("one", "eins"))
        self.expect(run, duplicates=1)

    def test_a_row_outside_a_snapshot_is_one_too_many(self):
        run = busy_run()
        run.client.append(run.client[1])
        self.expect(run, duplicates=1, tables_equal=False)

    def test_without_a_snapshot_everything_is_missing_that_did_not_come(self):
        run = busy_run()
        del run.client[:4]
        self.expect(run, missing=2, tables_equal=False, events=6)

    def test_a_table_change_shifts_the_ordinals_behind_it(self):
        run = Run()
        run.send("DDL", xid="3", record_id="a:0:0:0", ddl="ALTER TABLE")
        change = (
            "UPDATE",
            "id[integer]:2 name[text]:'x' big[text]:'BIG'",
            {"after": {"id": 2, "name": "x", "big": "BIG"}},
        )
        run.transaction("3", change, first=1)
        run.final[2] = ("2", "x", "BIG")
        self.expect(run, events=1)

    def test_identities_that_stand_twice_in_the_trail_are_reappended(self):
        run = busy_run()
        run.trail += [
            '1 hw={"v":1,"g":"a","pos":"0","i":0},x=1',
            '2 hw={"v":1,"g":"b","pos":"0","i":0}',
            '3 x={},hw={"v":1,"g":"b","pos":"0","i":0,"part":1}',
            "4 ",
        ]
        run.rolled_back = ['2 hw={"v":1,"g":"b","pos":"0","i":0}', '3 hw={"v":1,"g":"c","pos":"0","i":0}']
        self.expect(run, reappended=1, rolled_back=1)

    def test_witnesses_that_disagree_stop_the_comparison(self):
        run = busy_run()
        run.ledger[-1] = copy_line(0, "5", 2)
        del run.ledger[0]
        with self.assertRaisesRegex(ValueError, "contradict"):
            run.compare()
        run = busy_run()
        run.final[2] = ("2", "not what the history says", "BIG")
        with self.assertRaisesRegex(ValueError, "contradict"):
            run.compare()

    def test_a_torn_line_stops_the_comparison(self):
        run = busy_run()
        run.client[-1] = run.client[-1][:-1]
        with self.assertRaisesRegex(ValueError, "torn"):
            run.compare()


class Verdict(unittest.TestCase):
    """When a run is good."""

    GOOD = {
        "transactions": 5000, "events": 1, "missing": 0, "duplicates": 0, "out_of_order": 0, "tables_equal": True,
        "server_kills": 3, "client_kills": 2, "kills_in_flight": 1, "reappended": 1,
        "rolled_back": 1, "reread": 1,
    }  # fmt: skip

    def test_every_condition_counts(self):
        self.assertTrue(compare.is_good(self.GOOD))
        for name, value in {
            "transactions": 4999, "missing": 1, "duplicates": 1, "out_of_order": 1, "tables_equal": False,
            "server_kills": 2, "client_kills": 1, "kills_in_flight": 0, "reappended": 0, "reread": 0,
        }.items():  # fmt: skip
            self.assertFalse(compare.is_good(self.GOOD | {name: value}), name)

    def test_exactly_once_nothing_stands_twice_and_something_was_rolled_back(self):
        good = self.GOOD | {"reappended": 0}
        self.assertTrue(compare.is_good(good, exactly_once=True))
        for name, value in {"reappended": 1, "rolled_back": 0, "missing": 1}.items():
            self.assertFalse(compare.is_good(good | {name: value}, exactly_once=True), name)


class Reading(unittest.TestCase):
    """The witnesses' languages."""

    def test_a_line_of_test_decoding(self):
        change = read_change(
            "table public.t: UPDATE: old-key: id[integer]:-1 new-tuple: id[integer]:2 "
            "tags[text[]]:'{\"a new-tuple: \",''x''}' at[timestamp with time zone]:'2024-01-01 00:00:00+00' "
            "ok[boolean]:true r[double precision]:1e+20 n[numeric]:1.50 big[text]:unchanged-toast-datum "
            "none[text]:null nul[text]:'null'"
        )
        self.assertEqual(change.old, {"id": "-1"})
        self.assertEqual(change.new, {
            "id": "2", "tags": "{\"a new-tuple: \",'x'}", "at": "2024-01-01 00:00:00+00", "ok": "true",
            "r": "1e+20", "n": "1.50", "big": UNCHANGED, "none": None, "nul": "null",
        })  # fmt: skip
        self.assertIsNone(read_change("BEGIN 7"))
        with self.assertRaises(ValueError):
            read_change("table public.t: INSERT: something else")

    def test_text_of_copy(self):
        self.assertEqual(copy_text("a\\tb\\\\n\\n\\é"), "a\tb\\n\né")
        self.assertIsNone(copy_text("\\N"))

    def test_cells_of_both_sides_agree(self):
        for kind, text, value in [
            ("integer", "7", Number("7")), ("boolean", "t", True), ("boolean", "false", False),
            ("double precision", "1e+20", Number("100000000000000000000")), ("real", "NaN", "NaN"),
            ("numeric", "1.50", "1.50"), ("text", "", ""), ("text", None, None),
        ]:  # fmt: skip
            self.assertEqual(cell(text, kind), json_cell(value, kind), kind)

    def test_a_value_of_another_form_is_wrong(self):
        for kind, value in [
            ("integer", "7"), ("integer", True), ("boolean", "t"), ("numeric", Number("1.5")),
            ("text", Number("1")), ("text", {}), ("double precision", "1.5"),
        ]:  # fmt: skip
            self.assertIsInstance(json_cell(value, kind), Wrong, (kind, value))


if __name__ == "__main__":
    unittest.main()
