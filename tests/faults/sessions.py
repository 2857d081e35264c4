#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sessions of the library while allocations and writes fail: sessions.py [OPTIONS] KYMO SESSION FAULTS (see faults.py).

The program goes on, whatever fails. Without an error the file has all events, or the session knows how many it lost. With
one, what is in the file can be read; one that is written at the end (ring) is the old one, or whole.
"""
import re
import subprocess

import faults

MEMORY = re.compile(rb"memory|libz\.so|shared library|too many", re.I)
DRUM = b"the shared memory for events could not be made"


class SessionCase(faults.Case):
    def __init__(self, kymo, session, mode, suffix):
        super().__init__(f"{mode} {suffix}", session, mode, "OUT." + suffix, output="OUT." + suffix)
        self.kymo, self.mode = kymo, mode

    def count(self):
        query = [self.kymo, "query", "--csv", self.output, "select count(*) from slice where name = 'fault event'"]
        found = subprocess.run(query, capture_output=True, text=True, check=False)
        return int(found.stdout.split()[-1]) if found.returncode == 0 else None

    def trouble(self, run, usual):
        if run.code not in (0, 1):
            return f"it ends with {run.code}"
        made, lost, received, told = (int(word) for word in run.out.split())
        if run.code == 0:
            found = self.count()
            if found is None or found + lost < made:
                return f"of {made} events the file has {found}, and it lost {lost}"
            return None if received == made or told else f"the subscriber has {received} of {made} events"
        if not run.is_reported(MEMORY) and DRUM not in run.err:
            return "it does not say why"
        if run.file not in (None, b"", faults.OLD) and self.count() is None:
            return "what it has written cannot be read"
        return None


def cases(kymo, session):
    for suffix in ("json", "json.gz", "pftrace", "fxt", "kymo"):
        for mode in ("stream", "ring"):
            yield SessionCase(kymo, session, mode, suffix)


if __name__ == "__main__":
    faults.main(cases, ["kymo", "session"])
