#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""programs.py KYMO [--slow] [--cycles=N] [NAME...]: programs nobody here wrote, as Debian ships them, all their functions patched: they do
their own work with the output and exit code they have alone, from their start, and attached to again and again.

    until its end     sqlite3, git, python3's own tests, node with workers, cc1, rg: output and files equal
    under load        redis-server by redis-benchmark, nginx by wrk; sqlite3, python3, node in loops that check themselves

--slow: fifty attaches each, larger inputs, python3's own test modules. Exit 1 when a check failed, 77 when nothing could run;
a program that is not installed is skipped, with a line that says so."""
import filecmp
import os
import shutil
import socket
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import traced  # noqa: E402  (beside this folder)

HERE = os.path.dirname(os.path.realpath(__file__))
SLOW = "--slow" in sys.argv
CYCLES = traced.cycles(2)
PYTHON = "/usr/bin/python3"
# Only what led up to the end: all calls of such programs are gigabytes.
LAST = ("--trigger", "exit", "--hot", "0")


def missing(*names):
    absent = [name for name in names if not shutil.which(name)]
    return f"{', '.join(absent)} is not installed" if absent else None


def free_of_user(folder):
    """Return an environment without the user's settings."""
    return {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "TZ": "UTC"}


def looping(folder, words, times=CYCLES):
    """A program that says "ready", checks itself, and ends when its input does: attached to, again and again."""
    with traced.running(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=free_of_user(folder)) as process:
        if process.stdout.readline() != b"ready\n":
            traced.check("ready", False, process.poll())
            return
        traced.attach_often(folder, process, times)
        process.stdin.close()
        traced.check("it ends well", process.wait(traced.LIMIT_S) == 0, process.returncode)


def short_lived(folder, words, **more):
    """A program that ends soon, attached to as soon as it has begun: so many times, and each time with the same output."""
    alone = traced.bare(words, stdin=subprocess.DEVNULL, **more)
    for i in range(CYCLES):
        said, path = f"{folder}/said", f"{folder}/attached.kymo"
        with open(said, "wb") as output, traced.running(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL,
                                                        **more) as process:
            done = traced.kymo("attach", "-q", "-p", str(process.pid), "--functions", "-o", path)
            traced.check(f"exit code in cycle {i}", process.wait(traced.LIMIT_S) == alone.returncode, process.returncode)
        # It may have ended before, or in the middle: that is an error which says so.
        traced.check(f"attach {i}", done.returncode in (0, 1, 3), f"{done.returncode}: {done.stderr.strip()[-800:]}")
        with open(said, "rb") as output:
            traced.check(f"output in cycle {i}", output.read() == alone.stdout)
        if os.path.exists(path):
            os.unlink(path)


# ---- until their end ----


def sqlite(folder):
    if missing("sqlite3"):
        return missing("sqlite3")
    script = f"{folder}/script.sql"
    with open(f"{HERE}/sqlite.sql", encoding="utf-8") as file:
        text = file.read()
    with open(script, "w", encoding="utf-8") as file:
        file.write(text.replace("20000", "300000") if SLOW else text)
    # Far back: on a busy machine the exit handlers alone may take the 10 ms that are the default.
    path = traced.same_as_bare(folder, ["sqlite3", ":memory:"], *LAST, "--before", "10s", stdin=script, env=free_of_user(folder))
    names = {"".join(row) for row in traced.query(path, "select distinct name from slice")}
    traced.check("its functions", any(name.startswith("sqlite3") for name in names), sorted(names)[:20])
    # All of them, exactly: sqlite3_step is called once for each row and once for the end.
    path = traced.same_as_bare(folder, ["sqlite3", ":memory:", "select 1 union select 2 union select 3;"],
                               "--functions=sqlite3_step,sqlite3_prepare_v2", env=free_of_user(folder))
    seen = traced.query(path, "select name, count(*) from slice where name like 'sqlite3_%' group by name order by name")
    traced.check("calls counted", ["sqlite3_step", "4"] in seen, seen)
    return None


def git_repository(folder, env):
    tree = f"{folder}/tree"
    git = ["git", "-C", tree, "-c", "user.name=k", "-c", "user.email=k@k", "-c", "gc.auto=0"]
    subprocess.run(["git", "init", "-q", "-b", "main", tree], check=True, env=env)
    for commit in range(10):
        for i in range(40):
            with open(f"{tree}/{i}", "w", encoding="utf-8") as file:
                file.writelines(f"line {n * (i + 1) % (50 + commit)}\n" for n in range(200 + commit * i))
        subprocess.run([*git, "add", "-A"], check=True, env=env)
        day = f"2020-01-{commit + 1:02} 12:00:00"
        subprocess.run([*git, "commit", "-q", "-m", f"number {commit}"], check=True,
                       env={**env, "GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day})
    return tree


def git(folder):
    if missing("git"):
        return missing("git")
    env = free_of_user(folder)
    tree = git_repository(folder, env)
    for words in (["log", "--stat", "-p"], ["diff", "HEAD~5"], ["blame", "7"], ["status"], ["grep", "-c", "line 4"]):
        traced.same_as_bare(folder, ["git", "--no-pager", "-C", tree, *words], *LAST, env=env)
    traced.same_as_bare(folder, ["git", "-C", tree, "gc", "-q", "--prune=now"], *LAST, env=env)
    done = subprocess.run(["git", "-C", tree, "fsck", "--full"], capture_output=True, text=True, check=False, env=env)
    traced.check("the repository is whole", done.returncode == 0, done)
    return None


def git_attached(folder):
    if missing("git"):
        return missing("git")
    env = free_of_user(folder)
    tree = git_repository(folder, env)
    short_lived(folder, ["git", "--no-pager", "-C", tree, "log", "--stat", "-p", "--all"], env=env)
    return None


def python(folder):
    if not os.path.exists(PYTHON):
        return "python3 is not installed"
    program = ("import sys\nfor i in range(300):\n try:\n  [].pop()\n except IndexError as e: print(i, e)\n"
               "print(sum(i * i for i in range(100000)), sys.version)")
    traced.same_as_bare(folder, [PYTHON, "-c", program], *LAST, env=free_of_user(folder))
    if not SLOW:
        return None
    if traced.bare([PYTHON, "-c", "import test.test_exceptions"]).returncode:
        traced.check("python3's own tests", True)
        print("  python3's own tests: not installed (libpython3.N-testsuite)")
        return None
    words = ["run", "-q", "--functions", *LAST, "-o", f"{folder}/a.kymo", "--", PYTHON, "-m", "test", "test_exceptions",
             "test_threading", "test_generators"]
    done = traced.kymo(*words, env=free_of_user(folder), cwd=folder)
    traced.check("its own tests", done.returncode == 0 and "All 3 tests OK" in done.stdout, (done.stdout + done.stderr)[-1500:])
    traced.check_trace(f"{folder}/a.kymo")
    return None


def python_attached(folder):
    if not os.path.exists(PYTHON):
        return "python3 is not installed"
    looping(folder, [PYTHON, f"{HERE}/loops.py"])
    return None


def node(folder):
    if missing("node"):
        return missing("node")
    traced.same_as_bare(folder, ["node", f"{HERE}/workers.mjs"], *LAST, env=free_of_user(folder))
    return None


def node_attached(folder):
    if missing("node"):
        return missing("node")
    # 75,000 functions and a trace of millions of calls: once is long enough beside other tests.
    looping(folder, ["node", f"{HERE}/workers.mjs", "until"], CYCLES if SLOW else 1)
    return None


def compiler():
    done = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=False)
    return done.stdout.strip() if os.path.isabs(done.stdout.strip()) else None


def c_source(folder):
    """A source of some size, of what is installed and of what is here."""
    path = f"{folder}/source.c"
    with open(path, "w", encoding="utf-8") as file:
        for i in range(150 if SLOW else 30):
            file.write(f"static int f{i}(const int *a, int n) {{ int s = {i}; for (int i = 0; i < n; i++)"
                       f" s += a[i] * (i % {i + 2}) ^ s >> 3; switch (s & 7) {{ case 0: return s; case 1: return -s;"
                       f" case 5: return s * {i}; default: return s / {i + 1}; }} }}\n")
        calls = " + ".join(f"f{i}(a, n)" for i in range(150 if SLOW else 30))
        file.write(f"int all(const int *a, int n) {{ return {calls}; }}\n")
    return path


def cc1(folder):
    if missing("gcc") or not compiler():
        return "gcc's cc1 is not installed"
    source = c_source(folder)
    words = [compiler(), "-quiet", "-O2", source, "-o"]
    traced.check("alone", traced.bare([*words, f"{folder}/alone.s"]).returncode == 0)
    done = traced.kymo("run", "-q", "--functions", *LAST, "-o", f"{folder}/a.kymo", "--", *words, f"{folder}/traced.s")
    traced.check("it compiles", done.returncode == 0, (done.returncode, done.stderr[-1500:]))
    same = os.path.exists(f"{folder}/traced.s") and filecmp.cmp(f"{folder}/alone.s", f"{folder}/traced.s", shallow=False)
    traced.check("the same code", same)
    traced.check_trace(f"{folder}/a.kymo")
    return None


def cc1_attached(folder):
    if missing("gcc") or not compiler():
        return "gcc's cc1 is not installed"
    short_lived(folder, [compiler(), "-quiet", "-O2", c_source(folder), "-o", "-"])
    return None


def searched(folder):
    """Some hundred files to search in; sorted output of one thread's order."""
    place = f"{folder}/files"
    os.mkdir(place)
    for i in range(300):
        with open(f"{place}/{i}", "w", encoding="utf-8") as file:
            file.writelines(f"{n * 7919 % 10007} some text {n % (i + 3)}\n" for n in range(300))
    return ["rg", "--sort", "path", "-n", r"(1\d|2\d) some (text|word) 7\b", place]


def ripgrep(folder):
    if missing("rg"):
        return "rg (ripgrep) is not installed"
    words = searched(folder)
    traced.same_as_bare(folder, words, *LAST, env=free_of_user(folder))
    traced.same_as_bare(folder, ["rg", "-c", "--no-filename", "-j", "4", "some", f"{folder}/files"], *LAST)
    return None


def ripgrep_attached(folder):
    if missing("rg"):
        return "rg (ripgrep) is not installed"
    short_lived(folder, searched(folder), env=free_of_user(folder))
    return None


# ---- under load ----


def sqlite_attached(folder):
    """The same questions again and again, and each answer is the same."""
    if missing("sqlite3"):
        return missing("sqlite3")
    question = (b"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                b"SELECT sum(i * 3 % 7), max(printf('%d', i)), count(DISTINCT i % 97) FROM n;\n")
    with traced.running(["sqlite3", "-batch", ":memory:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        asker = subprocess.Popen([sys.executable, "-c", ASKER], stdin=process.stdout, stdout=process.stdin,
                                 env={**os.environ, "QUESTION": question.decode()})
        traced.attach_often(folder, process, CYCLES, alive=lambda: asker.poll() is None)
        traced.check("every answer is the first one", asker.poll() is None, asker.returncode)
        traced.check("sqlite3 goes on", process.poll() is None, process.returncode)
        asker.kill()
        asker.wait()
    return None


# Asks on its standard output, reads answers from its input, and ends when one is different.
ASKER = """
import os, sys
first = None
while True:
    sys.stdout.write(os.environ["QUESTION"])
    sys.stdout.flush()
    answer = sys.stdin.readline()
    first = first or answer
    if not answer or answer != first:
        sys.exit(1)
"""


def redis_words(folder):
    threads = ["--io-threads", "2"] if SLOW else []  # they spin, which takes long beside other tests
    return ["redis-server", "--port", "0", "--unixsocket", f"{folder}/s", "--save", "", "--dir", folder, "--daemonize", "no",
            *threads]


def ask_redis(folder, *words):
    return subprocess.run(["redis-cli", "-s", f"{folder}/s", *words], capture_output=True, text=True, timeout=60, check=False)


def redis_load(folder, count):
    return ["redis-benchmark", "-s", f"{folder}/s", "-n", str(count), "-c", "10", "-P", "4", "-q", "-t",
            "set,get,lpush,lrange_100,hset,zadd"]


def redis_fills(folder):
    """Keys of all kinds, by one script, and a digest of them all."""
    script = ("for i = 1, 500 do redis.call('set', 'k' .. i, i * 7) redis.call('zadd', 'z', i % 37, i) "
              "redis.call('hset', 'h', i, i * i) redis.call('rpush', 'l', i) end "
              "return redis.sha1hex(table.concat(redis.call('zrange', 'z', 0, -1)) .. "
              "table.concat(redis.call('lrange', 'l', 0, -1)) .. redis.call('hget', 'h', 77))")
    return ask_redis(folder, "eval", script, "0").stdout.strip()


def redis(folder):
    why = missing("redis-server", "redis-benchmark", "redis-cli")
    if why:
        return why
    with traced.running(redis_words(folder), stdout=subprocess.DEVNULL) as server:
        traced.wait_for("redis", lambda: os.path.exists(f"{folder}/s"), server)
        alone = redis_fills(folder)
        ask_redis(folder, "shutdown", "nosave")
        server.wait(traced.LIMIT_S)
    path = f"{folder}/a.kymo"
    words = [traced.KYMO, "run", "-q", "--functions", *LAST, "-o", path, "--", *redis_words(folder)]
    with traced.running(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        traced.wait_for("redis", lambda: ask_redis(folder, "ping").stdout == "PONG\n", server)
        traced.check("what it computes", redis_fills(folder) == alone and len(alone) == 40, alone)
        load = subprocess.run(redis_load(folder, 100000 if SLOW else 5000), capture_output=True, text=True, timeout=traced.LIMIT_S,
                              check=False)
        traced.check("the load ran", load.returncode == 0 and "requests per second" in load.stdout, load)
        ask_redis(folder, "shutdown", "nosave")
        traced.check("it ends well", server.wait(traced.LIMIT_S) == 0, server.stderr.read()[-1000:])
        server.stderr.close()
    traced.check_trace(path)
    return None


def redis_attached(folder):
    why = missing("redis-server", "redis-benchmark", "redis-cli")
    if why:
        return why
    with traced.running(redis_words(folder), stdout=subprocess.DEVNULL) as server:
        traced.wait_for("redis", lambda: os.path.exists(f"{folder}/s"), server)
        with traced.running(["redis-benchmark", "-l", *redis_load(folder, 20000)[1:]], stdout=subprocess.DEVNULL) as load:
            traced.attach_often(folder, server, max(CYCLES, 10), alive=lambda: load.poll() is None)
            traced.check("the load goes on", load.poll() is None, load.returncode)
        traced.check("it answers", ask_redis(folder, "ping").stdout == "PONG\n")
        ask_redis(folder, "shutdown", "nosave")
        traced.check("it ends well", server.wait(traced.LIMIT_S) == 0, server.returncode)
    return None


NGINX = """
daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error; lock_file {folder}/lock;
events {{ worker_connections 200; }}
http {{ access_log off; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; gzip on; gzip_min_length 100; gzip_types text/plain;
  server {{ listen 127.0.0.1:{port}; root {folder}/www; location /old {{ return 301 /page; }} }} }}
"""


def nginx_begins(folder):
    """Its words and its port; root's workers are another user, who must get at the files."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.chmod(folder, 0o755)
    os.mkdir(f"{folder}/www")
    with open(f"{folder}/www/page", "w", encoding="utf-8") as file:
        file.writelines(f"{i * 7919}\n" for i in range(2000))
    with open(f"{folder}/nginx.conf", "w", encoding="utf-8") as file:
        file.write(NGINX.format(folder=folder, port=port))
    return ["nginx", "-c", f"{folder}/nginx.conf", "-p", folder], port


def nginx_page(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/page", timeout=20) as reply:
            return len(reply.read())
    except OSError:
        return 0


def nginx_load(port, duration):
    return ["wrk", "-t", "1", "-c", "10", "-d", duration, "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/page"]


def nginx_errors(folder):
    with open(f"{folder}/error", encoding="utf-8") as file:
        return [line for line in file if "exited on signal" in line or "[alert]" in line or "[crit]" in line]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(word) for word in file.read().split()]


class Worker:
    """A process that is not ours to wait for, as attach_often wants one."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        return None if os.path.exists(f"/proc/{self.pid}/maps") and traced.text_of(self.pid) else 1


def nginx(folder):
    if missing("nginx", "wrk"):
        return missing("nginx", "wrk")
    words, port = nginx_begins(folder)
    path = f"{folder}/a.kymo"
    with traced.running([traced.KYMO, "run", "-q", "--functions", *LAST, "-o", path, "--", *words]) as server:
        traced.wait_for("nginx", lambda: nginx_page(port) > 0, server)
        with open(f"{folder}/pid", encoding="utf-8") as file:
            master = int(file.read())
        load = subprocess.run(nginx_load(port, "1s"), capture_output=True, text=True, timeout=traced.LIMIT_S, check=False)
        traced.check("the load ran", load.returncode == 0 and "Socket errors" not in load.stdout, load)
        os.kill(master, 3)  # SIGQUIT: ends when all is answered
        traced.check("it ends well", server.wait(traced.LIMIT_S) == 0, server.returncode)
    traced.check("no worker was lost", not nginx_errors(folder), nginx_errors(folder))
    traced.check_trace(path)
    return None


def nginx_attached(folder):
    if missing("nginx", "wrk"):
        return missing("nginx", "wrk")
    words, port = nginx_begins(folder)
    with traced.running(words) as server:
        traced.wait_for("nginx", lambda: nginx_page(port) > 0, server)
        with traced.running(nginx_load(port, "600s"), stdout=subprocess.DEVNULL) as load:
            for worker in children(server.pid):
                traced.attach_often(folder, Worker(worker), CYCLES // 2 + 1, alive=lambda: load.poll() is None)
        traced.check("it answers", nginx_page(port) > 0)
        server.send_signal(3)
        traced.check("it ends well", server.wait(traced.LIMIT_S) == 0, server.returncode)
    traced.check("no worker was lost", not nginx_errors(folder), nginx_errors(folder))
    return None


SCENARIOS = (sqlite, sqlite_attached, git, git_attached, python, python_attached, node, node_attached, cc1, cc1_attached, ripgrep,
             ripgrep_attached, redis, redis_attached, nginx, nginx_attached)

if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin"
    sys.exit(traced.run_scenarios([(scenario.__name__, scenario) for scenario in SCENARIOS],
                                  [word for word in sys.argv[2:] if not word.startswith("--")]))
