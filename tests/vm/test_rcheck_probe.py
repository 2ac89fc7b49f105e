# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The checker's probes: they find a connection alive whose other end does nothing at all, and each one
dead whose other end was killed. No module, no shim: this is what the verbs say by themselves."""

from traffic import PROBING, Pair, check_all_dead, last_json, wait_more

PROCESSORS = 1


def probes(job):
    return last_json(job.output())["probes"]


def test(bed):
    a, b = bed.guests("a", "b")
    pair = Pair(a, b, "-q 3 -n 16 -b", "-i 0.3 --alone --probe 1 --pause-ms 5000")
    pair.wait_running()
    pair.server.kill(12)        # a pause
    wait_more(pair.jobs, 200)
    for summary in pair.finish():
        assert summary["dead"] == [], summary
    assert probes(pair.client) >= 3, "it has not asked a silent end"

    for victim in (0, 1):
        pair = Pair(a, b, "-q 3 -n 16 -k 16 -b -r 50", f"-i 0.3 --tail {PROBING}", port=18700 + victim)
        pair.wait_running()
        pair.jobs[victim].kill(9)
        survivor = pair.jobs[1 - victim]
        survivor.wait(60, check=False)
        print(f"  {check_all_dead(survivor, 3)}", flush=True)
