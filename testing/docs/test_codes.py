"""Each thing that codes.py looks for, missing once."""

import unittest

import codes

CODE = 'fn a() { Err(refusal("PG_SLOT_LOST", what)) }'
PAGE = "# PG_SLOT_LOST\n\nIt is lost.\n\n" + "\n\n".join(codes.PARTS)
INDEX = "| [PG_SLOT_LOST](errors/PG_SLOT_LOST.md) | It is lost. |"


def problems(pages, index=INDEX):
    """What is said of pages beside the code above."""
    found = dict.fromkeys(codes.codes_in("postgres/src/error.rs", CODE), "postgres/src/error.rs")
    return list(codes.problems(found, pages, index))


class Codes(unittest.TestCase):
    """Where codes are found."""

    def test_each_way_to_write_one(self):
        for path, text in {
            "worker/src/tail.rs": 'stop("LOG_BEHIND", what)',
            "highwater/src/api.rs": 'Failure::new(\n    Exit::Failed,\n    "IO", error)',
            "log/src/error.rs": 'pub(crate) const CONFIG: &str = "CONFIG";',
            "oracle/src/error.rs": 'Self::LogGap => "CDC-2001",',
            "streams/src/rest.rs": 'bad_request("body_malformed", what, todo)',
        }.items():
            self.assertEqual(len(codes.codes_in(path, text)), 1, path)

    def test_other_texts_are_none(self):
        for path, text in {
            "worker/src/rest.rs": 'env!("CARGO_PKG_VERSION"), "highwater.offsets", "error_code"',
            "oracle/src/schema.rs": '"BINARY_FLOAT", "see CDC-2001"',
            "streams/src/format.rs": '"op_type", "highwater_stream_records_total"',
        }.items():
            self.assertEqual(codes.codes_in(path, text), set(), path)


class Pages(unittest.TestCase):
    """What must be right about them."""

    def test_a_whole_page(self):
        self.assertEqual(problems({"PG_SLOT_LOST": PAGE}), [])

    def test_a_code_without_a_page(self):
        self.assertIn("has no page", problems({})[0])

    def test_a_page_without_a_code(self):
        self.assertIn("no such code", problems({"PG_SLOT_LOST": PAGE, "PG_GONE": PAGE}, INDEX + "](errors/PG_GONE.md)")[0])

    def test_a_page_without_a_part(self):
        for part in codes.PARTS:
            self.assertEqual(len(problems({"PG_SLOT_LOST": PAGE.replace(part, "")})), 1, part)

    def test_two_codes_that_differ_by_case_alone(self):
        both = dict.fromkeys(("PG_SLOT_LOST", "pg_slot_lost"), "error.rs")
        self.assertIn("differ by case", list(codes.problems(both, {"PG_SLOT_LOST": PAGE}, INDEX))[1])

    def test_a_page_that_the_index_leaves_out(self):
        self.assertIn("does not list", problems({"PG_SLOT_LOST": PAGE}, "")[0])


if __name__ == "__main__":
    unittest.main()
