"""The tables of the reference are read as they stand, and what they lack or make up is noticed."""

import unittest

import client_settings

PAGE = """
| key | values | default | importance | what it does |
|---|---|---|---|---|
| `producer.override.linger.ms` | 0 to 60000 | `5` | low | How long. |

| setting | of | what is done anyway | why it changes nothing |
|---|---|---|---|
| `acks` | producer | `all`, `-1` | it is so |
| `client.id`, `metrics.context.*` | producer, admin |  | it is so |
| `sasl.*` | admin |  | it is so |
"""
LISTED = {("producer", "linger.ms"), ("producer", "acks"), ("admin", "sasl.*")} | {
    (client, name) for client in ("producer", "admin") for name in ("client.id", "metrics.context.*")
}


class Settings(unittest.TestCase):
    """See the module's text."""

    def test_the_tables_are_read(self):
        """Those with one client a row, and those with several."""
        self.assertEqual(client_settings.listed(PAGE), LISTED)

    def test_a_setting_that_has_no_fate_is_noticed(self):
        """That of one client is not that of another."""
        theirs = {("producer", "linger.ms"), ("producer", "acks"), ("producer", "client.id"), ("admin", "client.id")}
        theirs |= {("admin", "sasl.mechanism")}
        self.assertEqual(client_settings.differences(theirs, LISTED), [])
        self.assertEqual(client_settings.differences(theirs | {("admin", "acks")}, LISTED), ["lacks admin acks"])

    def test_a_setting_that_nobody_has_is_noticed(self):
        """But for those that older clients had."""
        theirs = {("producer", "linger.ms")}
        made_up = client_settings.differences(theirs, {*theirs, ("producer", "linger"), ("admin", "auto.include.jmx.reporter")})
        self.assertEqual(made_up, ["has producer linger, which is none"])


if __name__ == "__main__":
    unittest.main()
