"""Tests without services: values, errors, and answers that break off."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import unittest
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock
from uuid import UUID

import fhaim
from fhaim import holders, transport
from fhaim.codec import decode, encode
from fhaim.models import (
    Credentials,
    HappeningComputing,
    HappeningState,
    Job,
    JobEvent,
    Member,
    Session,
    Terms,
)
from fhaim.where import conditions

JOB = "0198c0de-0000-7000-8000-000000000001"
PROBLEM = {
    "type": "urn:fhaim:problem:not-found",
    "kind": "not-found",
    "title": "Not found",
    "status": 404,
    "request_id": "7",
}
OTHER = "0198c0de-0000-7000-8000-000000000002"
A_JOB = {
    "id": JOB,
    "dataset": JOB,
    "state": "done",
    "releases": 0,
    "attempts": 1,
    "spent": {"exact": "0", "rho": 0.0},
    "created_at": "2026-01-02T03:04:05Z",
    "updated_at": "2026-01-02T03:04:05Z",
}
A_DATASET = {
    "id": JOB,
    "name": "t",
    "state": "ready",
    "budget": {"exact": "1", "rho": 1.0},
    "runs_left": 1,
    "created_at": "2026-01-02T03:04:05Z",
    "terms": {
        "schema": {},
        "epsilon": 1.0,
        "delta": 1e-9,
        "mechanism": "staged",
        "record_bound": 4,
        "runs": 1,
        "model_bytes": 64,
        "target_weight": 1,
    },
}
GOLDEN = Path(__file__).parents[3] / "compat" / "v1"
Answer = Callable[[BaseHTTPRequestHandler], None]


class Values(unittest.TestCase):
    """JSON to dataclasses and back."""

    def test_job_of_a_newer_service_is_read(self) -> None:
        job = {
            "id": JOB,
            "dataset": JOB,
            "state": "resting",
            "releases": 3,
            "spent": {"exact": "1", "rho": 1},
            "attempts": 1,
            "created_at": "2026-01-02T03:04:05.123456789Z",
            "updated_at": "2026-01-02T03:04:05Z",
            "mood": "new",
        }
        read = decode(Job, job)
        self.assertEqual(read.id, UUID(JOB))
        self.assertEqual(read.state, "resting")
        self.assertIsNone(read.progress)
        self.assertEqual(read.created_at, datetime(2026, 1, 2, 3, 4, 5, 123456, timezone.utc))
        self.assertEqual(read.spent.rho, 1.0)
        self.assertEqual(decode(Job, encode(read)), read)

    def test_forms_are_distinguished_by_their_kind(self) -> None:
        event = {"number": 1, "at": "2026-01-02T03:04:05Z"}
        what = {"kind": "computing", "seconds": 2.5}
        self.assertIsInstance(decode(JobEvent, {**event, "what": what}).what, HappeningComputing)
        what = {"kind": "state", "state": "done"}
        self.assertIsInstance(decode(JobEvent, {**event, "what": what}).what, HappeningState)

    def test_values_of_the_wrong_type_are_rejected(self) -> None:
        values: list[object] = [
            {},
            [],
            None,
            {**session("a", "r"), "access_token": 1},
            {**session("a", "r"), "expires_in": True},
        ]
        for value in values:
            with self.assertRaises(fhaim.Error) as caught:
                decode(Session, value)
            self.assertEqual(caught.exception.kind, "unreadable")

    def test_secrets_are_not_printed(self) -> None:
        self.assertNotIn("wort", repr(Credentials(email="a@b", password="Passwort")))

    def test_fingerprint_equals_that_of_the_program(self) -> None:
        terms = decode(Terms, json.loads((GOLDEN / "terms.records.json").read_text()))
        shown = (GOLDEN / "fingerprint").read_text()
        self.assertEqual(fhaim.fingerprint(terms.roster.holders[0]), shown)
        self.assertNotEqual(fhaim.fingerprint(terms.roster.holders[1]), shown)
        # Terms that a service sent are sent back unchanged.
        self.assertEqual(encode(terms), json.loads((GOLDEN / "terms.records.json").read_text()))

    def test_cards_make_a_roster(self) -> None:
        cards = [Member(account=name, key="00" * 32, record_bound=n) for name, n in (("a", 5), ("b", 7))]
        made, bound = holders.roster(cards, 1)
        self.assertEqual((made.partition, bound, made.holders), ("records", 12, cards))
        cards[1] = replace(cards[1], columns=["x"])
        made, bound = holders.roster(cards, 2)
        self.assertEqual((made.partition, bound, made.honest), ("columns", 7, 2))

    def test_invalid_record_bound_is_rejected(self) -> None:
        """0 is not a valid bound. It must not be replaced by the bounds of the cards."""
        client = fhaim.Client("http://127.0.0.1:9")
        card = Member(account="a", key="00" * 32, record_bound=5)
        for bound in (0, -1):
            with self.assertRaises(fhaim.Error) as refused:
                client.create_dataset({"columns": []}, epsilon=1, record_bound=bound, holders=[card])
            self.assertEqual((refused.exception.kind, refused.exception.detail), ("invalid", f"{bound} records"))

    def test_holders_without_signature_are_named(self) -> None:
        one = fhaim.Standing(0, "a@b.example", "", True, False, True, 3, 3)
        other = replace(one, number=1, email="c@d.example", signed=False, objects=None)
        self.assertTrue(one.ready and not other.ready)
        holders.must_agree([])
        holders.must_agree([one])
        for standing, word in ((other, "not signed"), (replace(one, withdrawn=True), "withdrew")):
            with self.assertRaises(fhaim.Error) as caught:
                holders.must_agree([one, standing])
            self.assertEqual(caught.exception.kind, "not-agreed")
            self.assertEqual(caught.exception.detail, f"{word}: {standing.email}")

    def test_conditions_are_quoted(self) -> None:
        where = {"race": "Asian", "city": "Leuven, Belgium", "say": '"hm"', "age": 3, "x": None}
        expected = 'race=Asian,"city=Leuven, Belgium","say=""hm""",age=3,x='
        self.assertEqual(conditions(where), expected)


class Rules(unittest.TestCase):
    """Proposed rules of a draft, with a native module that is only a mock."""

    SCHEMA = {"name": "t", "columns": []}
    FIRST = {
        "columns": ["net", "gross"],
        "rule": '"net" is at most "gross"',
        "records": 120,
        "change": {"constraint": {"at_most": ["net", "gross"]}},
    }
    SECOND = {**FIRST, "rule": "another", "change": {"constraint": {"missing_together": ["net", "gross"]}}}

    def draft(self) -> fhaim.Schema:
        answer = (json.dumps(self.SCHEMA), ["a note"], json.dumps([self.FIRST, self.SECOND]))
        with mock.patch("fhaim.native.call", return_value=answer):
            return fhaim.Schema.draft("t.csv")

    def test_rules_are_proposed_and_not_in_the_schema(self) -> None:
        draft = self.draft()
        first, second = draft.rules
        self.assertEqual((first.text, first.columns, first.records), ('"net" is at most "gross"', ("net", "gross"), 120))
        self.assertEqual(second.change, self.SECOND["change"])
        self.assertEqual(draft.to_dict(), self.SCHEMA)

    def test_accepted_rules_are_passed_on_as_they_were_drafted(self) -> None:
        draft = self.draft()
        changed = {**self.SCHEMA, "constraints": [{"at_most": ["net", "gross"]}]}
        with mock.patch("fhaim.native.call", return_value=json.dumps(changed)) as call:
            accepted = draft.accept(draft.rules[0])
        _, function, schema, rules = call.call_args.args
        self.assertEqual((function, json.loads(schema), json.loads(rules)), ("accept", self.SCHEMA, [self.FIRST]))
        self.assertEqual(accepted.to_dict(), changed)
        self.assertEqual((accepted.notes, accepted.rules), (draft.notes, draft.rules[1:]))
        self.assertEqual(draft.to_dict(), self.SCHEMA)


class Answers(unittest.TestCase):
    """A server with prepared answers."""

    def setUp(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, str, str | None]] = []
        test = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                token = self.headers.get("Authorization")
                test.asked.append((self.command, self.path, token))
                test.answers.pop(0)(self)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=partial(self.server.serve_forever, 0.01), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        memory = mock.patch.dict(os.environ, {"FHAIM_MEMORY_DIR": folder.name})
        memory.start()
        self.addCleanup(memory.stop)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.client = fhaim.Client(self.address, timeout=5)
        transport._BACKOFF = 0.01

    def signed_in(self) -> None:
        self.answers.append(says(201, session("first", "again")))
        self.client.sign_in("a@b.example", "a password")

    def failure(self, call: Callable[[], object]) -> fhaim.Error:
        with self.assertRaises(fhaim.Error) as caught:
            call()
        return caught.exception

    def test_a_problem_becomes_an_error(self) -> None:
        self.signed_in()
        self.answers.append(says(404, PROBLEM, "application/problem+json"))
        error = self.failure(lambda: self.client.job(JOB))
        self.assertEqual((error.kind, error.status, error.request_id), ("not-found", 404, "7"))
        self.assertEqual(error.title, "Not found")
        self.assertIn("identifier", error.way_out or "")

    def test_a_refused_token_is_renewed_once(self) -> None:
        self.signed_in()
        refused = says(401, {**PROBLEM, "kind": "unauthenticated"}, "application/problem+json")
        self.answers += [refused, says(201, session("second", "third")), refused]
        error = self.failure(self.client.account)
        self.assertEqual(error.kind, "unauthenticated")
        tokens = [token for _, path, token in self.asked if path.endswith("account")]
        self.assertEqual(tokens, ["Bearer first", "Bearer second"])

    def test_ended_session_is_reported(self) -> None:
        self.signed_in()
        refused = says(401, {**PROBLEM, "kind": "unauthenticated"}, "application/problem+json")
        self.answers += [refused, refused]
        self.assertEqual(self.failure(self.client.account).kind, "signed-out")
        self.assertEqual(self.failure(self.client.account).kind, "signed-out")

    def test_only_repeatable_calls_are_retried(self) -> None:
        self.signed_in()
        busy = says(503, {**PROBLEM, "kind": "unavailable"}, "application/problem+json")
        self.answers += [busy, busy, says(200, [])]
        self.assertEqual(self.client.releases(JOB), [])
        self.answers += [says(200, A_JOB), says(200, receipt(1)), busy]
        again = lambda: self.client.retry(JOB)  # noqa: E731
        self.assertEqual(self.failure(again).kind, "unavailable")
        self.assertEqual(self.answers, [])

    def test_a_lost_answer_starts_one_job(self) -> None:
        self.signed_in()
        # First there is no answer, then half of one.
        self.answers += [says(200, A_DATASET), says(200, ledger(1)), lose, says(201, "{", headers={"Content-Length": "900"}), says(201, A_JOB)]
        self.assertEqual(self.client.run(JOB).id, UUID(JOB))
        asked = {(method, path) for method, path, _ in self.asked if "/jobs/" in path}
        self.assertEqual(len(asked), 1)
        self.answers += [says(200, A_DATASET), says(200, ledger(1)), *[lose] * transport.TRIES]
        error = self.failure(lambda: self.client.run(JOB, job=OTHER))
        self.assertEqual(error.kind, "unreachable")
        self.assertIn(f"job='{OTHER}'", error.way_out or "")
        self.assertTrue(self.asked[-1][1].endswith(f"/v1/datasets/{JOB}/jobs/{OTHER}"))

    def test_ledger_that_was_set_back_is_detected(self) -> None:
        self.signed_in()
        self.answers += [says(200, A_DATASET), says(200, ledger(3)), says(201, A_JOB)]
        self.client.run(JOB)
        # Another program on this machine detects it, too.
        other = fhaim.Client(self.address, timeout=5)
        self.answers += [says(201, session("other", "again"))]
        other.sign_in("a@b.example", "a password")
        for height, head in ((2, "a"), (3, "b")):
            self.answers += [says(200, A_DATASET), says(200, ledger(height, head))]
            error = self.failure(lambda: other.run(JOB))
            self.assertEqual(error.kind, "restored")
            self.answers += [says(200, A_JOB), says(200, receipt(height, head))]
            error = self.failure(lambda: other.retry(JOB))
            self.assertEqual(error.kind, "restored")
        self.assertEqual(self.answers, [])
        self.answers += [says(200, A_DATASET), says(200, ledger(4)), says(201, A_JOB)]
        other.run(JOB)

    def test_job_that_the_generation_service_forgot_runs_before_another(self) -> None:
        self.signed_in()
        page: dict[str, object] = {"items": [], "damaged": []}
        before = [says(200, A_DATASET), says(200, ledger(1, runs=[JOB]))]
        self.answers += [*before, says(200, page)]
        error = self.failure(lambda: self.client.run(JOB, job=OTHER))
        self.assertEqual(error.kind, "forgotten")
        self.assertIn(f"job='{JOB}'", error.way_out or "")
        # It continues with its run, and jobs that are known or damaged are not forgotten.
        self.answers += [*before, says(201, A_JOB)]
        self.assertEqual(self.client.run(JOB, job=JOB).id, UUID(JOB))
        for known in ({**page, "items": [A_JOB]}, {**page, "damaged": [JOB]}):
            self.answers += [*before, says(200, known), says(201, {**A_JOB, "id": OTHER})]
            self.client.run(JOB, job=OTHER)
        self.assertEqual(self.answers, [])

    def test_lost_answer_to_a_refresh_is_retried(self) -> None:
        self.signed_in()
        refused = says(401, {**PROBLEM, "kind": "unauthenticated"}, "application/problem+json")
        self.answers += [refused, lose]
        self.answers += [refused, says(201, session("second", "third")), says(200, [])]
        self.assertEqual(self.client.releases(JOB), [])
        self.assertEqual(self.answers, [])

    def test_redirects_are_not_followed(self) -> None:
        self.signed_in()
        self.answers.append(says(302, {}, headers={"Location": "/elsewhere"}))
        error = self.failure(lambda: self.client.retry(JOB))
        self.assertEqual((error.kind, error.status), ("unreadable", 302))
        self.assertFalse([path for _, path, _ in self.asked if "elsewhere" in path])

    def test_page_instead_of_a_service_is_unreadable(self) -> None:
        self.answers.append(says(200, "<html>", "text/html"))
        error = self.failure(lambda: self.client.sign_in("a@b.example", "a password"))
        self.assertEqual(error.kind, "unreadable")

    def test_lists_come_in_pages(self) -> None:
        self.signed_in()
        self.answers += [
            says(200, {"items": [A_JOB], "next": "n&x"}),
            says(200, {"items": [A_JOB]}),
        ]
        self.assertEqual(len(self.client.jobs(JOB)), 2)
        self.assertTrue(self.asked[-1][1].endswith("?after=n%26x&limit=100"))

    def test_a_download_that_breaks_off_leaves_no_file(self) -> None:
        self.signed_in()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            short = {"Content-Length": "900"}, {"Transfer-Encoding": "chunked"}
            for headers, body in zip(short, ("a,b\n1,2\n", "8\r\na,b\n1,2\n\r\n"), strict=True):
                self.answers.append(says(200, body, "text/csv", headers))
                error = self.failure(lambda: self.client.download(JOB, path))
                self.assertEqual(error.kind, "unreachable")
                self.assertEqual(list(Path(folder).iterdir()), [])
            self.answers.append(says(200, "a,b\n1,2\n", "text/csv", {"fhaim-seed": "7"}))
            drawn = self.client.download(JOB, path, where={"a": 1})
            self.assertEqual((drawn.bytes, drawn.seed, drawn.rows), (8, 7, None))
            self.assertEqual(path.read_text(), "a,b\n1,2\n")
        self.assertTrue(self.asked[-1][1].endswith("?format=csv&where=a%3D1"))

    def test_missing_folder_is_reported(self) -> None:
        self.signed_in()
        self.answers.append(says(200, "a\n", "text/csv"))
        error = self.failure(lambda: self.client.download(JOB, "/nonexistent/table.csv"))
        self.assertEqual(error.kind, "unwritable")

    def test_without_the_program_nothing_is_sent(self) -> None:
        error = self.failure(lambda: self.client.upload(JOB, "table.csv", program="/nonexistent"))
        self.assertEqual(error.kind, "program-missing")
        self.assertIn("FHAIM_BIN", error.way_out or "")
        self.assertEqual(self.asked, [])

    def test_each_service_gets_its_own_token(self) -> None:
        usage = says(200, {"limits": []})
        self.answers = [says(201, session("g", "r")), usage, usage, usage]
        self.client.sign_in("a@b.example", "a password")
        for service in (self.client.generation, self.client.computation, self.client.crypto):
            service.show_usage()
        shown = ["Bearer g", "Bearer g-computation", "Bearer g-crypto"]
        self.assertEqual([token for _, _, token in self.asked][1:], shown)

    def test_service_without_a_token_gets_no_call(self) -> None:
        self.answers = [says(201, session("g", "r"))]
        self.client.sign_in("a@b.example", "a password")
        error = self.failure(self.client.witness.show_usage)
        self.assertEqual(error.kind, "unavailable")
        self.assertEqual(len(self.asked), 1)

    def test_invalid_addresses_and_identifiers_are_rejected(self) -> None:
        self.assertEqual(self.failure(lambda: self.client.job("../x")).kind, "not-found")
        for address in ("file:///etc", "127.0.0.1:8080", "http://127.0.0.1:99999"):
            sign_in = partial(fhaim.Client(address).sign_in, "a@b.example", "a password")
            self.assertEqual(self.failure(sign_in).kind, "unreachable")

    def test_plain_http_is_accepted_only_on_this_machine(self) -> None:
        for address in ("http://fhaim.example", "http://10.0.0.7:8080", "http://localhost.example", "http://[fe80::1]"):
            sign_in = partial(fhaim.Client(address).sign_in, "a@b.example", "a password")
            error = self.failure(sign_in)
            self.assertEqual(error.kind, "invalid")
            self.assertIn("https", error.way_out or "")
        from fhaim.transport import _is_plain

        for address in ("https://fhaim.example", "http://127.0.0.1:8080", "http://[::1]:80", "http://localhost:80"):
            self.assertFalse(_is_plain(address))


class Agreement(unittest.TestCase):
    """The answers of a service are checked against the request."""

    def test_other_terms_are_rejected(self) -> None:
        from fhaim.client import _check_terms
        from fhaim.models import Terms

        columns = [{"name": "a", "kind": "categorical", "categories": ["x", "y"]}]
        sent = Terms(
            schema={"columns": columns}, epsilon=1, delta=1e-9, mechanism="staged", record_bound=64,
            runs=1, model_bytes=1_000_000, target_weight=1,
        )
        _check_terms(sent, replace(sent, options={"gamma": 1}))
        renamed = {"columns": [{**columns[0], "name": "b"}]}
        for told in (replace(sent, epsilon=50), replace(sent, runs=2), replace(sent, schema=renamed)):
            with self.assertRaises(fhaim.Error) as refused:
                _check_terms(sent, told)
            self.assertEqual(refused.exception.kind, "disagreement")


def receipt(height: int, head: str = "a") -> dict[str, object]:
    return {"dataset": JOB, "height": height, "head": head * 64, "signature": ""}


def ledger(height: int, head: str = "a", runs: Sequence[str] = ()) -> dict[str, object]:
    cost = {"exact": "0", "rho": 0.0}
    shares = [{"job": job, "budget": cost, "spent": cost, "entries": []} for job in runs]
    costs = dict.fromkeys(("budget", "spent", "unclaimed"), cost)
    return {"dataset": JOB, **costs, "receipt": receipt(height, head), "runs": shares}


def lose(handler: BaseHTTPRequestHandler) -> None:
    """Closes the connection without an answer, after the call was carried out."""
    handler.close_connection = True


def session(access: str, refresh: str) -> dict[str, object]:
    return {
        "access_token": access,
        "computation_token": f"{access}-computation",
        "crypto_token": f"{access}-crypto",
        "expires_in": 600,
        "refresh_token": refresh,
    }


def says(
    status: int,
    body: object,
    kind: str = "application/json",
    headers: dict[str, str] | None = None,
) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        handler.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(text)),
            **(headers or {}),
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text.encode())

    return answer


if __name__ == "__main__":
    unittest.main()
