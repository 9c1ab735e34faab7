"""Checks the services through the proxy. test.sh calls it with the proxy's address."""

from __future__ import annotations

import http.client
import json
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Mapping
from email.message import Message
from pathlib import Path

import fhaim

SERVICES = ("generation", "computation", "witness", "crypto")
PASSWORD = "correct horse battery"
SCHEMA = {
    "name": "small",
    "columns": [
        {"name": "a", "kind": "categorical", "categories": ["0", "1"]},
        {"name": "b", "kind": "categorical", "categories": ["x", "y", "z"]},
    ],
}


def check(what: str, holds: bool) -> None:
    if not holds:
        print(f"FAILED: {what}", file=sys.stderr)
        sys.exit(1)
    print(f"ok: {what}", flush=True)


def ask(
    server: str, path: str, headers: Mapping[str, str] | None = None, body: str | None = None
) -> tuple[int, Message, bytes]:
    """Sends one request with exactly this path."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(server).netloc, timeout=30)
    method = "GET" if body is None else "POST"
    connection.request(method, path, body, dict(headers or {}))
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


def wait_for(server: str) -> None:
    """Waits until every service is ready, as seen through the proxy."""
    end = time.monotonic() + 120
    for service in SERVICES:
        while True:
            try:
                if ask(server, f"/{service}/readyz")[0] == 200:
                    break
            except OSError:
                pass
            check(f"{service} is ready within two minutes", time.monotonic() < end)
            time.sleep(0.1)
    print("ok: nginx and the services are ready", flush=True)


def page(server: str) -> None:
    status, headers, body = ask(server, "/")
    check("/ is the page", status == 200 and b"<title>fhaim" in body)
    policy = headers["Content-Security-Policy"]
    check("the page policy", "frame-ancestors 'none'" in policy and "'wasm-unsafe-eval'" in policy)
    check("browsers revalidate the page", headers["Cache-Control"] == "no-cache")
    status, _, body = ask(server, "/datasets/12/new")
    check("addresses of the page lead to it", status == 200 and b"<title>fhaim" in body)
    status, headers, _ = ask(server, "/assets/page.js", {"Accept-Encoding": "gzip"})
    check(
        "assets are compressed and cached",
        status == 200
        and "immutable" in headers["Cache-Control"]
        and headers["Content-Encoding"] == "gzip"
        and headers["Vary"] == "Accept-Encoding",
    )
    check(
        "WebAssembly has its content type",
        ask(server, "/fhaim.wasm")[1]["Content-Type"] == "application/wasm",
    )
    for path in ("/assets/none.js", "/none.js", "/assets/../../fhaim.conf", "/%2e%2e/fhaim.conf"):
        check(f"{path} is not found", ask(server, path)[0] in (400, 404))


def services(server: str) -> None:
    for service in SERVICES:
        title = json.loads(ask(server, f"/{service}/openapi.json")[2])["info"]["title"]
        # The second computation service has the same API as the first.
        known = "computation" if service == "witness" else service
        check(f"/{service}/ is the {service} service", known in title)
        for path in ("metrics", "./metrics", "/metrics", "%6detrics", "x/../metrics"):
            check(f"no metrics at /{service}/{path}", ask(server, f"/{service}/{path}")[0] == 404)
    status, headers, body = ask(server, "/generation/v1/account")
    check(
        "problems of a service are forwarded",
        status == 401
        and headers["Content-Type"] == "application/problem+json"
        and json.loads(body)["kind"] == "unauthenticated",
    )


def signed_in(server: str) -> fhaim.Client:
    client = fhaim.Client(server)
    client.sign_up("ana@hospital.example", PASSWORD)
    client.sign_in("ana@hospital.example", PASSWORD)
    check("an account can sign up and in", client.account().email == "ana@hospital.example")
    return client


def job(client: fhaim.Client) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "table.csv"
        rows = (f"{i % 2},{'xyz'[i % 3]}\n" for i in range(60))
        table.write_text("a,b\n" + "".join(rows))
        dataset = client.create_dataset(SCHEMA, epsilon=10, record_bound=64)
        state = client.upload(dataset, table, state=folder / "state").state
        check("a table is encrypted and uploaded", state == "ready")
        started = client.run(dataset)
        stream = client.generation.watch_job(started.id)
        with stream:
            first = next(stream.lines())
            now = client.job(started)
        check(
            f"the first event came while the job was {now.state}",
            first.startswith(("id:", "data:")) and now.state in ("queued", "running"),
        )
        check(
            "events are streamed without compression",
            stream.headers["Content-Type"] == "text/event-stream"
            and stream.headers["Content-Encoding"] is None,
        )
        check("the job is done", client.wait(started, timeout=300).state == "done")
        drawn = client.download(started, folder / "synthetic.csv", rows=20000)
        lines = drawn.path.read_text().splitlines()
        check("a table of 20000 records is downloaded", len(lines) == 20001 and lines[0] == "a,b")


def witnessed(client: fhaim.Client) -> None:
    """Runs a job over a dataset with two computation services."""
    with tempfile.TemporaryDirectory() as name:
        table = Path(name) / "table.csv"
        rows = (f"{i % 2},{'xyz'[i % 3]}\n" for i in range(40))
        table.write_text("a,b\n" + "".join(rows))
        dataset = client.create_dataset(SCHEMA, epsilon=10, record_bound=64, witness=True)
        client.upload(dataset, table, state=Path(name) / "state")
        (copy,) = client.witness.show(dataset.id).contributions
        check("the second computation service has a copy", copy.state == "complete")
        done = client.wait(client.run(dataset), timeout=300)
        check("a job with two computation services is done", done.state == "done")
        client.delete_dataset(dataset)


def forged_addresses(server: str) -> None:
    """Checks that rate limits ignore an X-Forwarded-For header from the caller."""
    body = json.dumps({"email": "nobody@hospital.example", "password": PASSWORD})
    statuses = []
    for i in range(14):
        email = body.replace("nobody", f"nobody{i}")  # stay below the limit for each account
        headers = {"Content-Type": "application/json", "X-Forwarded-For": f"203.0.113.{i}"}
        statuses.append(ask(server, "/generation/v1/sessions", headers, email)[0])
        if statuses[-1] == 429:
            break
    check(f"forged addresses are ignored: refused after {len(statuses)} sign-ins", 429 in statuses)


def main() -> None:
    (server,) = sys.argv[1:]
    wait_for(server)
    page(server)
    services(server)
    client = signed_in(server)
    job(client)
    witnessed(client)
    forged_addresses(server)


if __name__ == "__main__":
    main()
