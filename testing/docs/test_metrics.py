"""What metrics.py looks for, missing once."""

import unittest

import metrics


class Metrics(unittest.TestCase):
    """Where metrics are found, and how they are compared."""

    def test_a_crate_is_none(self):
        text = 'counter!("highwater_stream_bytes_total"); target: "highwater_log"'
        self.assertEqual(metrics.metrics_in(text, ["log"]), {"highwater_stream_bytes_total"})

    def test_both_ways(self):
        self.assertEqual(list(metrics.problems({"a"}, {"a"})), [])
        self.assertEqual(len(list(metrics.problems({"a"}, set()))), 1)
        self.assertEqual(len(list(metrics.problems(set(), {"a"}))), 1)


if __name__ == "__main__":
    unittest.main()
