"""Each house rule has a twin here that breaks it."""

import io
import unittest
from contextlib import redirect_stdout

import house
from rust_source import functions


class Graph(unittest.TestCase):
    def test_an_arrow_down_is_fine(self):
        self.assertEqual(list(house.graph({"worker": ({"kafka"}, {"broker"})})), [])

    def test_an_arrow_up_is_found(self):
        (found,) = house.graph({"log": ({"broker"}, set())})
        self.assertIn("crate log uses broker", found)

    def test_an_arrow_aside_is_found_in_tests_too(self):
        (found,) = house.graph({"streams": (set(), {"worker"})})
        self.assertIn("tests of crate streams use worker", found)

    def test_a_crate_without_a_place_is_found(self):
        (found,) = house.graph({"attic": (set(), set())})
        self.assertIn("attic", found)

    def test_names_of_other_people_are_no_edges(self):
        manifest = {"dependencies": {"tokio": "1", "highwater-log": {}}, "dev-dependencies": {"proptest": "1"}}
        self.assertEqual(house.edges(manifest), ({"log"}, set()))


class Measures(unittest.TestCase):
    def measure(self, sizes):
        with redirect_stdout(io.StringIO()):
            return list(house.measure("files", sizes, median=10, longest=20))

    def test_what_is_short_is_fine(self):
        self.assertEqual(self.measure({"a": 1, "b": 10, "c": 20}), [])

    def test_the_longest_and_the_median_are_found(self):
        self.assertEqual(len(self.measure({"a": 21, "b": 12, "c": 1})), 2)


class Words(unittest.TestCase):
    def test_an_empty_name_is_found(self):
        self.assertEqual(len(list(house.names(["crates/log/src/utils.rs", "crates/log/src/cut.rs"]))), 1)

    def test_an_allowance_wants_a_reason(self):
        text = '#[allow(dead_code)]\n#[allow(dead_code, reason = "kept for the shim")]\n'
        text += '#[expect(dead_code)]\n#![expect(dead_code, reason = "a later lint says so")]\n'
        self.assertEqual(len(list(house.allowances("x.rs", text))), 2)


class Functions(unittest.TestCase):
    def test_braces_in_text_do_not_count(self):
        text = 'fn a<\'x>(s: &\'x str) -> [u8; 2] {\n    // {\n    let c = \'{\';\n    f("}{", r#"{"#)\n}\nfn b();\nfn c() {}\n'
        self.assertEqual([(f.name, f.first, f.last) for f in functions(text)], [("a", 1, 5), ("c", 7, 7)])


if __name__ == "__main__":
    unittest.main()
