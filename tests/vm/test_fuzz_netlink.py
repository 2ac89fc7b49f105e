# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Random and mutated messages of every command, with and without CAP_NET_ADMIN at the same time, while
processes with and without a shim come and go: every request is answered, every answer is well
formed, the kernel says nothing, and afterwards everything is as it was.

FUZZ_MESSAGES=n sends more than the 60000 of a run of all tests, FUZZ_SEED=n the same again.
"""

import os
import re
import time

import tracking

TIMEOUT = 7200
# PATH_ASK and RELAY, which RoCE always refuses.
INFINIBAND_ONLY = ("36", "39")
# RESUME, REPLY, PEER_SEND, UNRESOLVE, CONN_MOVED: they are about something that must be just under way; and PATH_SET,
# which RoCE takes without most of its attributes only.
RARE = ("8", "11", "12", "28", "32", "45")
MESSAGES = int(os.environ.get("FUZZ_MESSAGES") or 60000)

OTHERS = """
while [ ! -e /tmp/enough ]; do
    timeout 3 fakeshim >/dev/null 2>&1 & sleep 0.2
    timeout 3 fakeshim 10.0.0.1 >/dev/null 2>&1
    timeout 1 holdqp -q 4 -c >/dev/null 2>&1
    wait
done
exit 0
"""


def test(bed):
    a = bed.guest("a")
    a.load_repath()
    seed = int(os.environ.get("FUZZ_SEED") or time.time())
    print(f"  FUZZ_SEED={seed}", flush=True)
    others = a.start(OTHERS)
    nobody = a.start(f"nlfuzz -u -q 2 -n {MESSAGES // 4} -s {seed + 1}")
    text = a.run(f"nlfuzz -q 2 -n {MESSAGES // 2} -s {seed}", timeout=TIMEOUT)
    print("  " + text.strip().replace("\n", "\n  "), flush=True)
    # With force, and nothing that it could be killed for.
    killing = a.run(f"nlfuzz -f -n {MESSAGES // 4} -s {seed + 2}", timeout=TIMEOUT)
    print("  " + killing.strip().replace("\n", "\n  "), flush=True)
    nobody.wait(timeout=TIMEOUT)
    print("  " + nobody.output().splitlines()[0], flush=True)
    a.run("touch /tmp/enough")
    others.wait(timeout=30)

    # That it got beyond the refusals: something of every command was done, be there enough of them.
    done = {}
    for command, count in re.findall(r"command (\d+): (\d+) done", text + killing):
        if command not in INFINIBAND_ONLY:
            done[command] = done.get(command, 0) + int(count)
    assert len(done) >= 12 and sum(map(bool, done.values())) >= 12, done
    assert MESSAGES < 50000 or (all(count for command, count in done.items() if command not in RARE)
                                and any(done[command] for command in RARE)), done
    tracking.wait_qps(a, 0)
    tracking.compare_with_kernel(a)
    device = tracking.device(a)
    assert (device["contexts"], device["processes"]) == (0, 0), device
    a.wait_until("rmmod ib_repath")
