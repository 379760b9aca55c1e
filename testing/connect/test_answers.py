"""The comparison notices what it should, and nothing else."""

import json
import unittest

import calls
import exceptions
from compare import Answer, differences

JSON = {"content-type": "application/json"}


def answer(body, status=200, **headers):
    """An answer with this JSON."""
    return Answer(status, JSON | headers, json.dumps(body))


def kinds(judge, ours, words=()):
    """What is different, as (kind, place)."""
    return sorted((each.kind, each.at) for each in differences(set(words), judge, ours))


class Comparison(unittest.TestCase):
    """See the module's text."""

    def test_equal_answers_have_no_difference(self):
        """Nor has who answered, and what ours has beside."""
        judge = answer({"version": "4", "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "a"}]})
        ours = answer({"version": "5", "highwater": {}, "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "b", "highwater": {}}]})
        self.assertEqual(kinds(judge, ours), [])

    def test_a_status_a_member_a_type_and_a_value_are_noticed(self):
        """Each at its place."""
        self.assertEqual(kinds(answer({}), answer({}, 201)), [("status", "")])
        self.assertEqual(kinds(answer({"a": 1}), answer({"b": 1})), [("extra", ".b"), ("missing", ".a")])
        self.assertEqual(kinds(answer({"a": 1}), answer({"a": "1"})), [("type", ".a")])
        self.assertEqual(kinds(answer({"a": True}), answer({"a": 1})), [("type", ".a")])
        self.assertEqual(kinds(answer({"a": {"b": 1}}), answer({"a": {"b": 2}})), [("value", ".a.b")])

    def test_lists_have_no_order(self):
        """But each of their elements."""
        self.assertEqual(kinds(answer(["a", "b"]), answer(["b", "a"])), [])
        self.assertEqual(kinds(answer(["a"]), answer([])), [("missing", '["a"]')])
        self.assertEqual(kinds(answer(["a"]), answer(["a", "a"])), [("value", ".length")])
        tasks = lambda *states: [{"id": number, "state": state} for number, state in enumerate(states)]
        self.assertEqual(kinds(answer(tasks("A", "B")), answer(tasks("B", "B")[::-1])), [("value", "[0].state")])

    def test_a_definition_is_known_by_its_name(self):
        """Wherever it stands in the list."""
        entry = lambda name, kind: {"definition": {"name": name, "type": kind}, "value": {"name": name}}
        judge, ours = answer([entry("a", "INT"), entry("b", "INT")]), answer([entry("b", "INT"), entry("a", "LONG")])
        self.assertEqual(kinds(judge, ours), [("value", "[a].definition.type")])

    def test_what_is_wrong_with_a_value_is_said_in_other_words(self):
        """And a version is whoever's."""
        key = lambda errors, version="": {"name": "connector.plugin.version", "errors": errors, "value": version}
        self.assertEqual(kinds(answer([key(["x"])]), answer([key(["y", "z"])])), [])
        self.assertEqual(kinds(answer([key([])]), answer([key(["y"])])), [("extra", '[connector.plugin.version].errors["\\u2026"]')])
        self.assertEqual(kinds(answer([key([], "4")]), answer([key([], "5")])), [])

    def test_an_error_says_the_same_in_other_words(self):
        """It must name what the other one names, and may have parts of its own."""
        judge = answer({"error_code": 404, "message": "Connector shop not found"}, 404)
        ours = {"error_code": 404, "message": "there is no shop", "code": "X", "what": "", "kept": "", "do": ""}
        self.assertEqual(kinds(judge, answer(ours, 404), ["shop"]), [])
        mute = answer(ours | {"message": "there is none"}, 404)
        self.assertEqual(kinds(judge, mute, ["shop"]), [("names", "message")])
        self.assertEqual(kinds(judge, mute, ["shopping"]), [])

    def test_headers_that_clients_read_are_compared(self):
        """Without what says where the server is."""
        at = lambda host: answer({}, 201, location=f"{host}/connectors/a")
        self.assertEqual(kinds(at("http://a:1"), at("")), [])
        self.assertEqual(kinds(at(""), answer({}, 201)), [("location", "")])
        page = Answer(400, {"content-type": "text/html;charset=x"}, "<html>")
        self.assertEqual(kinds(page, answer({}, 400)), [("content-type", ""), ("type", "")])
        options = lambda names: Answer(200, {"content-type": "text/plain", "allow": names}, names)
        self.assertEqual(kinds(options("GET, PUT"), options("PUT,GET")), [])
        self.assertEqual(kinds(options("GET"), options("PUT"))[0], ("allow", ""))

    def test_the_reference_lists_the_exceptions(self):
        """As they are."""
        self.assertEqual(*exceptions.page_with(exceptions.ALL))

    def test_the_words_of_a_request_are_its_names(self):
        """Of paths, configurations and bodies."""
        body = json.dumps({"name": " shop ", "config": {"batch.size": "1"}})
        self.assertEqual(calls.words_of("/connectors", body), {"shop", "batch.size"})
        self.assertEqual(calls.words_of("/connectors/market/config?x=y", "{"), {"market"})


if __name__ == "__main__":
    unittest.main()
