#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""view.py KYMO DEMO: the real kymo view over real sockets: who is let in and who is not, clients that are slow, many or
wrong, files that grow, processes, the file for ui.perfetto.dev, and the end.

Waits for what is to happen, never for a time. A check is a line "name: ok" or "name: FAILED" with what was seen.
Exit 1 when a check failed, 77 when kymo was built without the page."""
import atexit
import base64
import gzip
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

LIMIT_S = 600  # ends what hangs: a busy machine may be slow
failures = 0


def check(name, fine, seen=""):
    global failures
    print(f"{name}: {'ok' if fine else 'FAILED'}", flush=True)
    if not fine:
        failures += 1
        print(f"  seen: {str(seen)[:1500]}", flush=True)


def wait_for(path, process):
    """Until the file is there, which the process makes."""
    while not os.path.exists(path):
        assert process.poll() is None
        time.sleep(0.01)


# ---- the server and its clients ----

class View:
    """A kymo view that runs."""

    def __init__(self, kymo, *arguments, environment=None, browser=False):
        # A shell that started the test in the background hands down that SIGINT is ignored.
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [kymo, "view", *([] if browser else ["--no-browser"]), *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self.errors, env={**os.environ, **(environment or {})},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        atexit.register(self.process.kill)  # where a check could not go on
        self.line = self.process.stdout.readline().decode().strip()
        found = re.search(r'http://([^/]*):([0-9]+)(/([0-9a-f]{32})/[^\s"]*)', self.line)
        self.port, self.path, self.token = (int(found[2]), found[3], found[4]) if found else (0, "", "")

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
        client.settimeout(LIMIT_S)
        return client

    def ask(self, raw):
        """Sends these bytes, and returns what comes until the server closes or the answer is whole."""
        with self.connect() as client:
            try:
                client.sendall(raw)
            except OSError:
                pass  # closed before all was sent: what it answered may still be there
            return read_answer(client)

    def get(self, path="", method="GET", host=None, headers=(), body=None, target=None):
        return self.ask(self.head(path, method, host, headers, body, target))

    def head(self, path="", method="GET", host=None, headers=(), body=None, target=None):
        lines = [f"{method} {target if target is not None else self.path + path} HTTP/1.1"]
        if host != "":
            lines.append(f"Host: {host or f'127.0.0.1:{self.port}'}")
        lines += headers
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")

    def json(self, path, **how):
        return json.loads(self.get(path, **how).body)

    def loaded(self):
        """Waits until there is a trace."""
        generation = 0
        while generation == 0:
            generation = self.json("api/status?g=0")["generation"]
        return self

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        code = self.process.wait(LIMIT_S)
        self.process.stdout.close()
        return code


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __str__(self):
        return f"{self.status} {self.headers} {self.body[:300]}"


def read_answer(client, head_only=False):
    """One answer, or status 0 when the connection ends without."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            more = client.recv(65536)
            if not more:
                return Answer(0, {}, data)
            data += more
        head, body = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        while not head_only and len(body) < int(headers.get("content-length", 0)):
            more = client.recv(65536)
            if not more:
                break
            body += more
    except OSError:
        return Answer(0, {}, data)
    return Answer(int(lines[0].split()[1]), headers, body)


# ---- who is let in ----

def check_served(view):
    page = view.get()
    check("the page is served", page.status == 200 and page.headers["content-type"].startswith("text/html"), page)
    policy = page.headers["content-security-policy"]
    text = page.body.decode()
    for kind, part in [("script", re.search(r'<script type="module">(.*?)</script>', text, re.S)),
                       ("style", re.search(r"<style>(.*?)</style>", text, re.S))]:
        digest = base64.b64encode(hashlib.sha256(part.group(1).encode()).digest()).decode()
        check(f"its one {kind} is allowed by its hash",
              f"{kind}-src 'sha256-{digest}'" in policy and "unsafe" not in policy, policy)
    check("it may run no script of others, be framed by nobody, and is not kept",
          "default-src 'none'" in page.headers["content-security-policy"]
          and "frame-ancestors 'none'" in page.headers["content-security-policy"]
          and page.headers["x-content-type-options"] == "nosniff" and page.headers["cache-control"] == "no-store"
          and page.headers["referrer-policy"] == "no-referrer" and page.headers["x-frame-options"] == "DENY"
          and page.headers["cross-origin-resource-policy"] == "same-origin", page)
    trace = view.json("api/trace")
    check("api/trace describes the trace", trace["name"] == "demo.kymo" and trace["counts"]["slices"] > 0, trace)
    rows = view.json("api/sql", method="POST", body=b"SELECT count(*) FROM slice")
    check("SQL is answered", rows["rows"][0][0] > 0, rows)
    with view.connect() as client:
        client.sendall(view.head(method="HEAD"))
        head = read_answer(client, head_only=True)
        client.sendall(view.head("api/status?g=0"))
        after = read_answer(client)
    check("HEAD answers the head alone, and the connection goes on",
          head.status == 200 and head.body == b"" and int(head.headers["content-length"]) == len(page.body)
          and after.status == 200, f"{head} {after}")
    moved = view.get(target=f"/{view.token}")
    check("without the last slash it leads to the page", moved.headers.get("location") == view.path, moved)
    moved = view.get(target=f"/{view.token}?a=b")
    check("also with parameters", moved.headers.get("location") == view.path, moved)
    with view.connect() as client:
        client.sendall(view.head("api/status?g=0") * 3)
        answers = [read_pipelined(client) for _ in range(3)]
    check("requests in a row on one connection", answers == [200] * 3, answers)


def read_pipelined(client):
    """The status of the next of several answers: byte by byte, so that nothing of the one behind is taken."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        byte = client.recv(1)
        if not byte:
            return 0
        data += byte
    left = int(re.search(rb"Content-Length: ([0-9]+)", data)[1])
    while left:
        left -= len(client.recv(left))
    return int(data.split()[1])


def check_refused(view):
    told = []
    other = f"127.0.0.1:{view.port + 1 if view.port < 65535 else 1}"
    wrong = "0" * 32 if view.token[0] != "0" else "1" * 32
    cases = [
        ("a wrong token", {"target": f"/{wrong}/"}),
        ("a wrong token, asked of the trace", {"target": f"/{wrong}/api/trace"}),
        ("half a token", {"target": f"/{view.token[:16]}/"}),
        ("a longer token", {"target": f"/{view.token}0/api/trace"}),
        ("no token", {"target": "/api/trace"}),
        ("the root", {"target": "/"}),
        ("a foreign Host", {"host": "evil.example"}),
        ("a foreign Host with our port", {"host": f"evil.example:{view.port}"}),
        ("our Host with another port", {"host": other}),
        ("our Host as part of another", {"host": f"127.0.0.1.evil.example:{view.port}"}),
        ("another address than the one it listens on", {"host": f"192.0.2.1:{view.port}"}),
        ("two Hosts", {"headers": [f"Host: evil.example:{view.port}"]}),
        ("a foreign Origin", {"headers": ["Origin: https://evil.example"]}),
        ("a foreign Origin with our port", {"headers": [f"Origin: http://evil.example:{view.port}"]}),
        ("a link or picture of another site", {"headers": ["Sec-Fetch-Site: cross-site"]}),
        ("one of another server of this machine", {"headers": ["Sec-Fetch-Site: same-site"]}),
        ("no Origin that can be named", {"headers": ["Origin: null"]}),
        ("our Origin by https", {"headers": [f"Origin: https://127.0.0.1:{view.port}"]}),
        ("a POST of a foreign page", {"headers": ["Origin: https://evil.example"], "method": "POST",
                                      "path": "api/sql", "body": b"SELECT 1"}),
        ("a file of the system", {"target": "/etc/passwd"}),
        ("a file of the system, from the root", {"target": "/../../../../etc/passwd"}),
        ("a file of the system, encoded", {"target": "/%2e%2e/%2e%2e/etc/passwd"}),
    ]
    for name, how in cases:
        answer = view.get(**how)
        check(f"refused: {name}", answer.status == 403, answer)
        told.append(answer.body)
    check("what is refused tells nothing", len(set(told)) == 1 and b"demo" not in told[0], set(told))
    for name, host in [("localhost", f"localhost:{view.port}"), ("LOCALHOST", f"LOCALHOST:{view.port}"),
                       ("[::1]", f"[::1]:{view.port}")]:
        check(f"let in: Host {name}", view.get(host=host).status == 200)
    own = view.get("api/status?g=0", headers=[f"Origin: http://127.0.0.1:{view.port}"])
    check("let in: our own Origin", own.status == 200 and "access-control-allow-origin" not in own.headers, own)


def check_no_files(view):
    for path in ["../", "../../etc/passwd", "..%2f..%2fetc/passwd", "api/../../etc/passwd", "api/trace/../../x",
                 "//etc/passwd", "index.html", "demo.kymo", "api/%74race", "%00", "api/", "."]:
        answer = view.get(path)
        check(f"no such thing: {path}", answer.status == 404 and b"demo" not in answer.body, answer)


def check_wrong(view):
    for method in ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "BREW"]:
        answer = view.get(method=method)
        check(f"not a method of ours: {method}", answer.status in (400, 405), answer)
    check("a POST to the page", view.get(method="POST", body=b"x").status == 405)
    check("a parameter that ends in the middle of a character", view.get("api/event?id=%4").status == 400)
    check("a zero in a parameter", view.get("api/event?id=%00").status == 400)
    check("too many parameters", view.get("api/event?" + "&a=1" * 100).status == 400)
    check("a zero in the body", view.get("api/sql", method="POST", body=b"SELECT 1\0").status == 400)
    raw = [
        (b"\r\n\r\n" * 10, "empty lines"), (b"GET\r\n\r\n", "half a first line"), (b"\0" * 1000, "zeros"),
        (os.urandom(5000), "any bytes"), (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", "an unknown version"),
        (b"GET " + view.path.encode() + b" HTTP/1.1\r\n\r\n", "no Host"),
        (b"GET " + view.path.encode() + b" HTTP/1.0\r\n\r\n", "no Host in HTTP 1.0"),
        (b"GET " + view.path.encode() + b"\r\n", "HTTP 0.9"),
        (view.head(headers=["Content-Length: -1"], method="POST"), "a negative length"),
        (view.head(headers=["Content-Length: 99999999999999999999999"], method="POST"), "a length beyond 64 bits"),
        (view.head(headers=["Transfer-Encoding: chunked"], method="POST") + b"zzz\r\n", "a chunk of no size"),
        (view.head(headers=["Content-Length: 5", "Transfer-Encoding: chunked"], method="POST"), "two lengths"),
        (view.head(headers=["X: " + "y" * 100000]), "a huge header"),
        (view.head(headers=[f"X{i}: y" for i in range(5000)]), "thousands of headers"),
        (view.head("api/event?id=" + "1" * 200000), "a huge target"),
    ]
    for data, name in raw:
        with view.connect() as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = read_answer(client)
        check(f"malformed: {name}", answer.status in (0, 400, 403, 405, 413, 414, 431, 501, 505), answer)
    answer = view.get("api/sql", method="POST", headers=["Content-Length: 1073741824"])
    check("a body of a GiB is refused before it comes", answer.status == 413, answer)
    with view.connect() as client:
        client.sendall(view.head("api/sql", method="POST", headers=["Transfer-Encoding: chunked"]))
        sent = send_until_closed(client, b"10000\r\n" + b"x" * 65536 + b"\r\n")
    check("a body without end ends the connection", sent < 64 << 20, sent)
    check("and it still answers", view.get("api/trace").status == 200)


def send_until_closed(client, chunk):
    sent = 0
    try:
        while sent < 256 << 20:
            client.sendall(chunk)
            sent += len(chunk)
    except OSError:
        pass
    return sent


# ---- slow and many ----

def check_slow(view):
    slow = []
    for i in range(700):
        client = view.connect()
        slow.append(client)
        client.sendall([b"", b"GET", view.head()[:-2], view.head("api/sql", "POST", body=b"SELECT 1")[:-3]][i % 4])
        if i % 100 == 99:
            check(f"answered beside {i + 1} clients that say nothing whole", view.get("api/trace").status == 200)
    first = read_answer(slow[0])
    check("the one that waited longest was let go", first.status == 0, first)
    for client in slow:
        client.close()
    lazy = view.connect()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.sendall(view.head("api/trace") * 200)
    check("answered beside one that does not read", view.get("api/trace").status == 200)
    lazy.close()


def check_many(view):
    statuses = []
    ready = threading.Barrier(200)

    def client():
        ready.wait()
        statuses.append(view.get("api/trace").status)

    threads = [threading.Thread(target=client) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("200 clients at once", statuses == [200] * 200, statuses)


def check_waiting(kymo, view):
    """A page that waits for news does not hold up the end."""
    client = view.connect()
    client.sendall(view.head("api/status?g=1"))
    long_query = view.connect()
    text = b"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    long_query.sendall(view.head("api/sql", "POST", body=text))
    check("answered beside SQL that has no end", view.get("api/trace").status == 200)
    check("SIGTERM ends it, with clients that wait and SQL that has no end", view.end(signal.SIGTERM) == 0)
    client.close()
    long_query.close()


# ---- files that grow ----

def event(i):
    return json.dumps({"ph": "X", "pid": 1, "tid": 1, "ts": i * 10, "dur": 5, "name": f"e{i}"}) + ",\n"


def next_generation(view, known, wanted=lambda status: True):
    """The status of the first generation after the known one that is as wanted."""
    while True:
        status = view.json(f"api/status?g={known}")
        if status["generation"] != known and wanted(status):
            return status
        known = status["generation"]


def check_growing(kymo):
    with open("growing.json", "w", encoding="ascii") as file:
        file.write("[\n" + "".join(event(i) for i in range(10)))
        file.flush()
        view = View(kymo, "growing.json").loaded()
        first = view.json("api/trace")
        check("a file that is open for writing is live", first["live"] and first["counts"]["slices"] == 10, first)
        file.write("".join(event(i) for i in range(10, 30)))
        file.flush()
        status = next_generation(view, first["generation"])
        grown = view.json("api/trace")
        check("what is written is shown, in another generation",
              grown["counts"]["slices"] == 30 and grown["generation"] >= status["generation"] > first["generation"]
              and grown["base"] == first["base"] and status["end"] > first["end"], grown)
    status = next_generation(view, status["generation"], lambda status: not status["live"])
    check("when it is closed it is not live any more", view.json("api/trace")["counts"]["slices"] == 30, status)
    with open("growing.json.new", "w", encoding="ascii") as file:
        file.write("[" + event(1))
    os.rename("growing.json.new", "growing.json")
    next_generation(view, status["generation"])
    check("another file of that name is shown", view.json("api/trace")["counts"]["slices"] == 1)
    check("Ctrl-C ends it", view.end() == 0, view.said())
    with open("growing.json", "a", encoding="ascii"):
        view = View(kymo, "--no-follow", "growing.json").loaded()
        check("--no-follow", not view.json("api/trace")["live"])
        view.end()


def check_empty(kymo):
    """A file in which there is nothing yet."""
    with open("empty.json", "w", encoding="ascii") as file:
        view = View(kymo, "empty.json")
        status = view.json("api/status?g=0")
        check("a file with nothing in it yet is waited for", status["generation"] == 0, status)
        file.write("[" + event(1))
        file.flush()
        view.loaded()
        check("and shown when there is something", view.json("api/trace")["counts"]["slices"] == 1, view.said())
        check("Ctrl-C ends it while the file is written", view.end() == 0, view.said())
        file.seek(0)
        file.truncate()
        view = View(kymo, "empty.json")
        check("Ctrl-C ends the waiting", view.end() == 0, view.said())
    view = View(kymo, "empty.json").loaded()
    check("when nobody writes it, it is a trace without events", view.json("api/trace")["counts"]["slices"] == 0,
          view.said())
    view.end()


def check_running(kymo, demo):
    """Without a file: the recording that runs."""
    recording = subprocess.Popen([kymo, "run", "-q", "-o", "running.kymo", "--", demo, "--seconds", "3600", "--tasks",
                                  "1000000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("running.kymo", recording)
    try:
        view = View(kymo, "running.kymo").loaded()
        first = view.json("api/status?g=0")
        next_generation(view, first["generation"], lambda status: status["end"] > first["end"])
        check("a recording that runs is followed", first["live"], first)
        view.end()
        view = View(kymo)
        if "which file?" in view.said():  # others record on this machine too
            check("without a file it names those that run", "running.kymo" in view.said(), view.said())
        else:
            check("without a file it shows the one that runs", view.loaded().json("api/trace")["live"], view.said())
        view.end()
    finally:
        recording.send_signal(signal.SIGTERM)
        recording.wait(LIMIT_S)


def check_process(kymo, demo):
    program = subprocess.Popen([demo, "--seconds", "3600", "--tasks", "1000000"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    scratch = tempfile.mkdtemp(dir=".")
    try:
        view = View(kymo, "-p", str(program.pid), environment={"TMPDIR": os.path.abspath(scratch)}).loaded()
        first = view.json("api/status?g=0")
        status = next_generation(view, first["generation"], lambda status: status["end"] > first["end"])
        check("-p: a process is recorded, and events come", status["live"] and status["end"] > 0, view.said())
        check("-p: that the file has no end yet is no problem to speak of", "problem" not in view.said(), view.said())
        trace = view.json("api/trace")
        check("-p: nor on the page", not [p for p in trace["problems"] if p["severity"] != "info"], trace["problems"])
        check("-p: its name is that of the trace", trace["name"] == str(program.pid), trace["name"])
        # Not exactly: what the first load had not seen of another thread may be from before.
        check("-p: time begins with its first events", abs(trace["begin"]) < 60e9 and trace["end"] < 600e9,
              f"{trace['begin']} {trace['end']}")
        program.kill()
        program.wait()
        status = next_generation(view, status["generation"], lambda status: not status["live"])
        check("-p: when it has ended its recording is still shown", view.json("api/trace")["counts"]["slices"] > 0)
        check("-p: Ctrl-C ends it", view.end() == 0, view.said())
        check("-p: nothing is left behind", os.listdir(scratch) == [], os.listdir(scratch))
    finally:
        program.kill()
        program.wait()


def check_kept(kymo, demo):
    program = subprocess.Popen([demo, "--seconds", "3600", "--tasks", "1000000"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        view = View(kymo, "-p", str(program.pid), "-o", "kept.kymo").loaded()
        code = view.end()
        info = subprocess.run([kymo, "info", "--json", "kept.kymo"], capture_output=True, check=False)
        check("-p -o keeps the recording", code == 0 and info.returncode == 0, info)
    finally:
        program.kill()
        program.wait()
    gone = View(kymo, "-p", "no-such-program-anywhere")
    check("-p: a process that is not there", gone.end() == 3 and gone.line == "" and "no-such-program" in gone.said(),
          gone.said())


# ---- other forms ----

def check_several(kymo):
    view = View(kymo, "demo.kymo", "demo-loadgen.kymo").loaded()
    trace = view.json("api/trace")
    names = {track["pid"] for track in trace["tracks"] if "pid" in track}
    check("several files are on one timeline", len(names) == 2 and trace["name"] == "demo.kymo + demo-loadgen.kymo",
          trace["name"])
    view.end()


def check_bind(kymo):
    view = View(kymo, "--bind", "0.0.0.0", "demo.kymo").loaded()
    check("--bind says what it means", "can read the trace" in view.said(), view.said())
    check("--bind: any address of the machine is its name", view.get(host=f"192.0.2.1:{view.port}").status == 200)
    check("--bind: a foreign name is not", view.get(host=f"evil.example:{view.port}").status == 403)
    plain = view.get("api/trace")
    packed = view.get("api/trace", headers=["Accept-Encoding: br, gzip"])
    check("--bind: what goes over a network is packed",
          packed.headers.get("content-encoding") == "gzip" and gzip.decompress(packed.body) == plain.body, packed)
    view.end()


def check_json(kymo):
    view = View(kymo, "--json", "demo.kymo").loaded()
    check("--json", json.loads(view.line)["address"].endswith(view.path), view.line)
    second = subprocess.run([kymo, "view", "--no-browser", "--port", str(view.port), "demo.kymo"],
                            capture_output=True, text=True, check=False)
    check("a port that is taken", second.returncode == 1 and second.stdout == "" and "--port" in second.stderr,
          second)
    view.end()


def check_browser(kymo):
    """The browser's command line, which every user sees, does not tell the address."""
    os.mkdir("bin")
    scratch = tempfile.mkdtemp(dir=".")
    with open("bin/xdg-open", "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nstat -c '%a %n' \"$1\" > seen.new\ncat \"$1\" >> seen.new\nmv seen.new seen\n")
    os.chmod("bin/xdg-open", 0o755)
    path = f"{os.path.abspath('bin')}:{os.environ['PATH']}"
    view = View(kymo, "demo.kymo", browser=True,
                environment={"PATH": path, "DISPLAY": ":99", "TMPDIR": os.path.abspath(scratch)})
    wait_for("seen", view.process)
    with open("seen", encoding="utf-8") as file:
        command, page = file.read().split("\n", 1)
    check("the browser is given a file of this user alone, which leads to the address",
          command.startswith("600 /") and view.token not in command and view.line in page, f"{command} {page}")
    check("with a browser: Ctrl-C ends it", view.end() == 0, view.said())
    check("and the file is gone", os.listdir(scratch) == [], os.listdir(scratch))


def check_perfetto(kymo):
    ui = ["Origin: https://ui.perfetto.dev"]
    scratch = tempfile.mkdtemp(dir=".")
    view = View(kymo, "--perfetto", "--port", "0", "demo.kymo", environment={"TMPDIR": os.path.abspath(scratch)})
    check("--perfetto leaves nothing behind, even when it is killed", os.listdir(scratch) == [], os.listdir(scratch))
    check("--perfetto prints the link", view.line.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:")
          and view.line.endswith("demo.kymo.pftrace"), view.line)
    answer = view.get(headers=ui)
    with open("fetched.pftrace", "wb") as file:
        file.write(answer.body)
    info = subprocess.run([kymo, "info", "--json", "fetched.pftrace"], capture_output=True, check=False)
    check("--perfetto: the page gets it, as .pftrace", answer.status == 200 and info.returncode == 0
          and answer.headers["access-control-allow-origin"] == "https://ui.perfetto.dev"
          and json.loads(info.stdout)["format"] == "pftrace", f"{answer.headers} {info}")
    check("--perfetto: it may ask before", view.get(method="OPTIONS", headers=ui).status == 204)
    for name, how, status in [("a foreign page", {"headers": ["Origin: https://evil.example"]}, 403),
                              ("a foreign Host", {"host": "evil.example:9001"}, 403),
                              ("another token", {"target": f"/{'0' * 32}/demo.kymo.pftrace"}, 404),
                              ("POST /status", {"target": "/status", "method": "POST", "headers": ui, "body": b""},
                               404)]:
        answer = view.get(**how)
        check(f"--perfetto: {name} is refused",
              answer.status == status and "access-control-allow-origin" not in answer.headers, answer)
    check("--perfetto: Ctrl-C ends it", view.end() == 0)
    view = View(kymo, "--perfetto", "--port", "0", "fetched.pftrace")
    with open("fetched.pftrace", "rb") as file:
        check("--perfetto: a .pftrace is served as it is", view.get(headers=ui).body == file.read())
    view.end()


def check_usage(kymo):
    def run(*arguments):
        return subprocess.run([kymo, "view", *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_S)

    with open("garbage", "wb") as file:
        file.write(b"\x01\x02garbage")
    for name, arguments, code, text in [
            ("a missing file", ["missing.kymo"], 1, "missing.kymo"),
            ("a file that is no trace", ["--no-browser", "garbage"], 1, "garbage"),
            ("a file and a process", ["-p", "1", "demo.kymo"], 2, "exclude each other"),
            ("an impossible port", ["--port", "70000", "demo.kymo"], 2, "--port"),
            ("an address of another machine", ["--bind", "192.0.2.1", "demo.kymo"], 1, "192.0.2.1"),
            ("a range without an export", ["--from", "1s", "demo.kymo"], 2, "--export"),
            ("a port for an export", ["--export", "x.html", "--port", "1", "demo.kymo"], 2, "--export"),
            ("-o without -p", ["-o", "x.kymo", "demo.kymo"], 2, "-p"),
            ("an unknown option", ["--nonsense"], 2, "no option --nonsense")]:
        done = run(*arguments)
        check(f"used wrongly: {name}", done.returncode == code and text in done.stderr, done)
    done = run("--export", "out.html", "demo.kymo")
    with open("out.html", "rb") as file:
        check("--export writes a page", done.returncode == 0 and file.read(9).lower() == b"<!doctype", done)
    done = run("--export", "part.html", "--from", "10ms", "--to", "20ms", "demo.kymo")
    check("--export of a range is smaller",
          done.returncode == 0 and os.path.getsize("part.html") < os.path.getsize("out.html"), done)
    with open("out.html", "w", encoding="ascii") as file:
        file.write("mine")
    done = run("--export", "out.html", "garbage")
    with open("out.html", encoding="ascii") as file:
        check("--export that fails leaves what was there", done.returncode == 1 and file.read() == "mine", done)
    check("and nothing else", not [name for name in os.listdir(".") if name.endswith(".tmp")], os.listdir("."))


def has_file_without_name(pid):
    """Report whether the process writes a file here that has no name yet."""
    folder = f"/proc/{pid}/fd"
    try:
        links = [os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)]
    except OSError:
        return False
    return any(link.startswith(os.getcwd()) and link.endswith("(deleted)") for link in links)


def check_export_ends(kymo):
    """Ctrl-C while it writes; whether that is soon enough or not, there is a whole file or none."""
    writing = subprocess.Popen([kymo, "view", "--export", "ended.html", "demo.kymo"], stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while writing.poll() is None and not has_file_without_name(writing.pid):
        time.sleep(0.001)
    writing.send_signal(signal.SIGINT)
    writing.wait(LIMIT_S)
    check("--export: Ctrl-C leaves nothing half behind",
          not [name for name in os.listdir(".") if name.endswith(".tmp")]
          and os.path.exists("ended.html") == (writing.returncode != 1), f"{writing.returncode} {os.listdir('.')}")


def main():
    kymo, demo = map(os.path.realpath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        subprocess.run([demo, "--trace-output", "demo.kymo"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        view = View(kymo, "demo.kymo")
        if view.process.poll() == 77 or not view.line:
            print("skipped: kymo was built without the page; 'make viewer' builds it", view.said())
            return 77
        view.loaded()
        for part in (check_served, check_refused, check_no_files, check_wrong, check_slow, check_many):
            part(view)
        check_waiting(kymo, view)
        check_several(kymo)
        check_bind(kymo)
        check_json(kymo)
        check_browser(kymo)
        check_perfetto(kymo)
        check_usage(kymo)
        check_export_ends(kymo)
        check_growing(kymo)
        check_empty(kymo)
        check_running(kymo, demo)
        check_process(kymo, demo)
        check_kept(kymo, demo)
        os.chdir("/")
    return 1 if failures else 0


sys.exit(main())
