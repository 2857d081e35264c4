# SPDX-License-Identifier: MIT
"""loops.py: exceptions, generators, threads, regular expressions, subprocesses, C modules: round after round until the standard
input ends. Exit 1 when a round came out otherwise than the first."""
import hashlib
import json
import re
import select
import subprocess
import sys
import threading
import zlib


def fail_deep(depth):
    if depth == 0:
        raise KeyError(depth)
    try:
        return fail_deep(depth - 1)
    finally:
        depth += 1


def tree(depth):
    if depth:
        yield from tree(depth - 1)
        yield depth
        yield from tree(depth - 1)


def work(results, seed):
    caught = 0
    for i in range(200):
        try:
            fail_deep(i % 50)
        except KeyError as error:
            caught += len(error.args)
    words = re.findall(r"\b(\w)\w*\1\b", " ".join(str(n * 2654435761 % 100003) for n in range(seed, seed + 2000)))
    text = json.dumps({"seed": seed, "caught": caught, "tree": list(tree(9)), "words": words})
    packed = zlib.decompress(zlib.compress(text.encode()))
    results[seed] = hashlib.sha256(packed).hexdigest()


def one_round():
    results = {}
    threads = [threading.Thread(target=work, args=(results, seed)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results["child"] = subprocess.run(["/bin/echo", "child"], capture_output=True, text=True, check=True).stdout
    return results


first = one_round()
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    if one_round() != first:
        sys.exit("wrong: a round came out otherwise")
