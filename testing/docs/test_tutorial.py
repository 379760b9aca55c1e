"""How the tutorial is read, and what its texts stand for."""

import unittest

import tutorial

PAGE = "```sh\none\n```\n\n```text\n1\n```\n\n```console\n$ no\n```\n\n```sh\ntwo\n```\n"


class Reading(unittest.TestCase):
    """Blocks of the page."""

    def test_a_text_belongs_to_the_commands_before_it(self):
        self.assertEqual(tutorial.steps(PAGE), [("one\n", "1\n"), ("two\n", None)])


class Comparing(unittest.TestCase):
    """What was printed, and what the page shows."""

    def test_an_ellipsis_stands_for_anything(self):
        for shown, printed in (("a…z\n", "a 123 z\n"), ("…\nend\n", "x\ny\nend\n"), ("…\nend\n", "end\n")):
            self.assertFalse(tutorial.different(shown, printed), printed)

    def test_everything_else_must_be_there(self):
        for shown, printed in (("a\n", "b\n"), ("a\n", "a\nb\n"), ("a\nb\n", "a\n"), ("a…z\n", "a\nz\n"), ("a\n", "")):
            self.assertTrue(tutorial.different(shown, printed), printed)

    def test_what_the_page_does_not_show_is_not_compared(self):
        self.assertFalse(tutorial.different(None, "noise\n"))


if __name__ == "__main__":
    unittest.main()
