"""What promises.py looks for, missing once."""

import unittest

import promises

SOURCE = """
#[test]
#[should_panic]
fn plain() {}

#[tokio::test(flavor = "multi_thread")]
async fn on_tokio() {}

proptest! {
    #[test]
    fn a_property(x in 0..9) {}
}

fn no_test() {}
"""
ROW = "| promise | rule | proved by |\n|---|---|---|\n| It holds | P1 | `a.rs::plain` |\n"


class Tests(unittest.TestCase):
    """What counts as a test."""

    def test_each_kind(self):
        for name in ("plain", "on_tokio", "a_property"):
            self.assertTrue(promises.is_test(SOURCE, name), name)

    def test_a_function_is_none(self):
        self.assertFalse(promises.is_test("fn no_test() {}", "no_test"))


class Proofs(unittest.TestCase):
    """Proofs that are named."""

    def test_one_that_exists(self):
        self.assertEqual(list(promises.missing("p", ROW, lambda _: SOURCE)), [])

    def test_one_that_does_not(self):
        self.assertEqual(len(list(promises.missing("p", "`a.rs::gone`", lambda _: SOURCE))), 1)
        self.assertEqual(len(list(promises.missing("p", ROW, lambda _: None))), 1)

    def test_a_promise_without_either(self):
        self.assertEqual(list(promises.unproved(ROW)), [])
        self.assertEqual(len(list(promises.unproved(ROW.replace("P1", "")))), 1)
        self.assertEqual(len(list(promises.unproved(ROW.replace("`a.rs::plain`", "the demo")))), 1)


if __name__ == "__main__":
    unittest.main()
