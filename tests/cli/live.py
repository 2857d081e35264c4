#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""live.py KYMO TARGET ODD_TARGET: kymo tail and kymo top on a program that traces until it is killed: what they print as text, as JSON and on a
terminal, how they end, and that the program and its categories are as before.

Waits for what is shown, never for a time. Exit 1 when a check failed."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from terminal import Terminal, check as check_terminal, finish

import checks
from checks import check

LEAVE = "\x1b[?1049l"


def run(*arguments, **more):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False, **more)


def all_off(kymo, pid):
    rows = json.loads(run(kymo, "list", "--json", "-p", pid).stdout)["processes"]
    return rows and rows[0]["categories_on"] == 0 and rows[0]["recorders"] == 0


def until(condition, what):
    while not condition():
        time.sleep(0.1)
    print(f"{what}: ok")


def tail_text(kymo, pid):
    done = run(kymo, "tail", "-p", pid, "-n", "40")
    lines = done.stdout.splitlines()
    check("tail: so many events", done.returncode == 0 and len(lines) == 40, done)
    begin = r"\d\d:\d\d:\d\d\.\d{6} worker +" + pid + "  "
    check("a line has time, thread and event", all(re.match(begin, line) for line in lines), lines)
    text = [re.sub(begin, "", line) for line in lines]
    check("a span begins, with arguments", any(re.fullmatch(r'> net/request number=\d+ path="/index"', line) for line in text), text)
    check("one inside it", "| > db/query" in text, text)
    check("it ends, with its duration", any(re.fullmatch(r"\| < db/query [\d.]+ .s", line) for line in text), text)
    check("instant, counter, message", "| . net.debug/tick share=0.5" in text and
          any(re.fullmatch(r"= load/queue \d", line) for line in text) and
          any(re.fullmatch(r'" log/request \d+ done', line) for line in text), text)
    check("and all is off again", all_off(kymo, pid))
    done = run(kymo, "tail", "-p", pid, "-n", "10", env={**os.environ, "LC_ALL": "C"})
    check("ASCII where that is wanted", done.stdout.isascii() and done.stdout, done)


def tail_json(kymo, pid):
    done = run(kymo, "tail", "-p", pid, "-n", "40", "--json", "-c", "db,load")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    check("tail --json: an object for each", len(events) == 40, done)
    check("categories", {event["category"] for event in events} == {"db", "load"}, events)
    check("in the order of time", [e["ts"] for e in events] == sorted(e["ts"] for e in events))
    ends = [event for event in events if event["kind"] == "end" and "dur" in event]
    check("ends know their spans", ends and all(end["name"] == "query" and end["dur"] > 0 for end in ends), events)
    counters = [event for event in events if event["kind"] == "counter"]
    check("values", counters and all(0 <= event["args"]["value"] < 10 for event in counters), counters)
    done = run(kymo, "tail", "-p", pid, "-c", "nte", "-d", "10ms")
    check("a category that nothing has", done.returncode == 3 and "net" in done.stderr, done)


def tail_functions(kymo, pid):
    done = run(kymo, "tail", "-p", pid, "--functions=*nanosleep", "--engine", "patch", "-c", "log", "-n", "40", "--json")
    if done.returncode == 77:
        print(f"calls of functions: skipped: {done.stderr}")
        return
    events = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [event for event in events if event["name"].endswith("nanosleep")]
    check("calls of functions", {event["kind"] for event in calls} == {"begin", "end"}, done)
    check("end with the category that they began with", len({event["category"] for event in calls}) == 1, calls)


def tail_ends(kymo, pid):
    with subprocess.Popen([kymo, "tail", "-p", pid], stdout=subprocess.PIPE, text=True) as tail:
        tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        tail.stdout.read()
        check("Ctrl-C ends it", tail.wait() == 0, tail.returncode)
    check("and all is off again", all_off(kymo, pid))
    with subprocess.Popen([kymo, "tail", "-p", pid], stdout=subprocess.PIPE, text=True) as tail:
        tail.stdout.readline()
        tail.stdout.close()
        check("it ends with its reader", tail.wait() == 0, tail.returncode)
    with subprocess.Popen([kymo, "tail", "-p", pid], stdout=subprocess.PIPE, text=True) as tail:
        tail.stdout.readline()
        tail.kill()
        tail.wait()
    check("after a kill the next that looks puts it back", all_off(kymo, pid))


ROW = r"%  +[\d.]+ .s  +[\d.]+ .s  net +request\n"


def has_names(line):
    return {entry["name"] for entry in json.loads(line)["rows"]} == {"request", "query", "request %d done"}


def rounds(kymo, pid, good, *more):
    """Return the first round of top that is good: on a busy machine nothing happens in some."""
    text = ""
    with subprocess.Popen([kymo, "top", "-p", pid, "-i", "300ms", *more], stdout=subprocess.PIPE, text=True) as shown:
        for line in shown.stdout:
            text = line if "--json" in more or "events/s" in line else text + line
            if good(text):
                shown.send_signal(signal.SIGINT)
                shown.stdout.read()
                return text
    return None


def top(kymo, pid):
    done = run(kymo, "top", "-p", pid, "-n", "2", "-i", "300ms")
    check("top: two rounds", done.returncode == 0 and done.stdout.count("events/s") == 2, done)
    text = rounds(kymo, pid, lambda text: "request %d done" in text and re.search(ROW, text))
    check("rows", text)
    row = json.loads(rounds(kymo, pid, has_names, "--json", "--sort", "rate", "-c", "net,db,log"))
    names = {entry["name"]: entry for entry in row["rows"]}
    check("JSON", row["lost"] == 0, row)
    request, query = names["request"], names["query"]
    check("self is without what is inside", request["time_ns"] >= request["self_ns"] + query["time_ns"] * 0.9
          and query["self_ns"] == query["time_ns"], row)
    check("no more than its share", 0 < request["time_ns"] <= row["interval_ns"] * 1.1, row)
    check("messages have no time", "time_ns" not in names["request %d done"], row)
    check("and all is off again", all_off(kymo, pid))


def screen(kymo, pid):
    s = Terminal([kymo, "top", "-p", pid, "-i", "200ms"])
    check_terminal("a screen of its own", s.wait("\x1b[?1049h") and s.wait("q ends"), s)
    check_terminal("with the spans", s.wait("request"), s)
    s.type("r")
    check_terminal("drawn again", s.wait("\x1b[2J") and s.wait("query"), s)
    s.type("q")
    check_terminal("q gives the screen back", s.wait(LEAVE), s)
    check_terminal("and ends", s.end() == 0, s)
    s = Terminal([kymo, "top", "-p", pid])
    check_terminal("again", s.wait("request"), s)
    s.type("\x03")
    check_terminal("Ctrl-C too", s.wait(LEAVE) and s.end() == 0, s)


def rows_of(kymo, pids):
    """Rounds of top, as the rows by their names, without an end."""
    named = [word for pid in pids for word in ("-p", str(pid))]
    with subprocess.Popen([kymo, "top", *named, "-c", "odd", "-i", "100ms", "--json"], stdout=subprocess.PIPE, text=True) as shown:
        try:
            for line in shown.stdout:
                yield {row["name"]: row for row in json.loads(line)["rows"]}
        finally:
            shown.send_signal(signal.SIGINT)
            shown.stdout.read()


def odd(kymo, target, environment):
    """Spans that are hard to count."""
    programs = {"async": [target, "async"], "late": [target, "async", "100"], "deep": [target, "deep"]}
    programs = {name: subprocess.Popen(words, env=environment) for name, words in programs.items()}
    pids = {name: program.pid for name, program in programs.items()}
    until(lambda: all(run(kymo, "list", "-p", str(pid)).returncode == 0 for pid in pids.values()), "the programs trace")
    try:
        ended = was_open = total = 0
        for rows in rows_of(kymo, [pids["async"], pids["late"]]):
            row = rows.get("async", {"count": 0, "time_ns": 0, "ended_ns": 0})
            was_open += not row["count"] and row["time_ns"] > 0
            ended += row["count"]
            total += row["ended_ns"]
            if ended >= 3:
                break
        check("asynchronous spans count while they are open", was_open)
        check("the same id in two processes is not one span", total >= ended * 900000000, (ended, total))
        rounds_after = 0
        dying = programs["open"] = subprocess.Popen([target, "open"], env=environment)
        until(lambda: run(kymo, "list", "-p", str(dying.pid)).returncode == 0, "the program traces")
        for rows in rows_of(kymo, [dying.pid, pids["async"]]):
            if dying.returncode is not None:
                rounds_after += 1
                if "open" not in rows or rounds_after == 100:
                    break
            elif "open" in rows:
                dying.kill()
                dying.wait()
        check("what a killed process left open is over", "open" not in rows, rows)
        lines = run(kymo, "tail", "-p", str(pids["deep"]), "-c", "odd", "-n", "30100").stdout.splitlines()
        behind = [line for line in lines if line.endswith("> odd/behind")]
        for rows in rows_of(kymo, [pids["deep"]]):
            if rows.get("outer", {"count": 0})["count"] and rows["deep"]["count"]:
                break
        check("recursion counts once", 0 < rows["deep"]["time_ns"] <= rows["outer"]["time_ns"], rows)
        check("what ends deep inside is not what is around it", behind and "| > odd/behind" in behind[-1], behind)
    finally:
        for program in programs.values():
            program.kill()
            program.wait()


def main():
    kymo, target, odd_target = map(os.path.realpath, sys.argv[1:4])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KYMO_")}
    odd(kymo, odd_target, environment)
    with subprocess.Popen([target], env=environment) as program:
        pid = str(program.pid)
        try:
            until(lambda: run(kymo, "list", "-p", pid).returncode == 0, "the program traces")
            tail_text(kymo, pid)
            tail_json(kymo, pid)
            tail_functions(kymo, pid)
            tail_ends(kymo, pid)
            top(kymo, pid)
            screen(kymo, pid)
            check("the program runs", program.poll() is None)
        finally:
            program.kill()
    if checks.failed:
        sys.exit(1)
    finish()


main()
