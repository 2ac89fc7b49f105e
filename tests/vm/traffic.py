# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rcheck between two guests, as tests use it.

    pair = Pair(server=a, client=b, options="-q 16 --vary")
    pair.wait_running()
    ...
    client, server = pair.finish()      # both summaries; raises if one end is not happy
"""

import json
import time


def last_json(text):
    """The last line of @text that is a JSON object."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise AssertionError("no JSON in:\n" + text)


def json_lines(text, key):
    """All JSON objects in @text that have @key."""
    whole = text[:text.rfind("\n") + 1]     # the last line may still be on its way
    lines = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
    return [line for line in lines if key in line]


def progress(job):
    """(how many messages an rcheck or fdcheck has reported so far, how often all queue pairs had one)."""
    lines = json_lines(job.output(), "msgs")
    last = lines[-1] if lines else {}
    return last.get("msgs", 0), last.get("rounds", 0)


def messages(job):
    """How many messages an rcheck or fdcheck has reported so far."""
    return progress(job)[0]


# As verbs number them.
_WR_FLUSH_ERR, _RETRY_EXC_ERR = "5", "12"
# For an rcheck that is to find a connection dead: soft RoCE takes 7 retries for any number of them, and for
# 6 it needs 7 s.
PROBING = "--alone --probe 3 --timeout 18 --retry 6"


def check_all_dead(job, qps, receives=True):
    """@job, an rcheck with PROBING, has found each of its @qps queue pairs dead as verbs define it when a peer
    has vanished: retries exceeded, then everything flushed, of which no receives are if it had posted none. The first
    error that it has seen."""
    text = job.output()
    assert job.status == 1, f"{job}: status {job.status}\n{text[-3000:]}"
    summary = last_json(text)
    assert "aftermath" not in summary and len(summary["dead"]) == qps, text[-3000:]
    for link in summary["dead"]:
        sends, recvs = dict(link["sends"]), link["recvs"]
        assert link["first"] == int(_RETRY_EXC_ERR), f"{job}: {link}"
        assert sends.pop(_RETRY_EXC_ERR) == 1 and not sends.keys() - {_WR_FLUSH_ERR}, f"{job}: {link}"
        assert recvs.keys() == ({_WR_FLUSH_ERR} if receives else set()), f"{job}: {link}"
    return summary["error"]


class Standstill(AssertionError):
    """Nothing went on at either end."""


def wait_more(jobs, count, timeout=60):
    """Wait until each of @jobs has reported @count messages more than now, and on each of its links: the
    round that is begun may be one that a link had its part in before it stopped, so the next is needed."""
    before = {job: progress(job) for job in jobs}
    end = time.monotonic() + timeout
    for job in jobs:
        by_link = any("rounds" in line for line in json_lines(job.output(), "msgs"))
        while True:
            (had, rounds), (has, now) = before[job], progress(job)
            if has >= had + count and (not by_link or now >= rounds + 2):
                break
            assert job.running, f"{job}: ended ({job.status}):\n{job.output()[-3000:]}"
            if time.monotonic() > end:
                text = job.output()[-3000:]
                if len(before) > 1 and all(progress(each) == before[each] for each in before):
                    raise Standstill(f"both ends stood still for {timeout} s:\n{text}")
                assert has < had + count or now > rounds, \
                    f"a queue pair stood still while others went on:\n{text}"
                raise TimeoutError(f"no {count} messages more:\n{text}")
            time.sleep(0.1)


class Pair:
    """An rcheck server and its client.

    options: the traffic, told to the client; each_options: for both ends;
    env: before both commands, such as move.SHIM; port: TCP; program: rcheck, or one that is built of it.
    """

    jobs_made = []      # of all pairs of this run, for who has to explain a failure

    def __init__(self, server, client, options="", each_options="-i 0.5 --numbers", env="",
                 port=18600, server_options="", program="rcheck"):
        self.port = port
        self.server_guest, self.client_guest = server, client
        self.server = server.start(
            f"exec env {env} {program} -p {port} {each_options} {server_options}")
        self.client = client.start(
            f"exec env {env} {program} -p {port} {each_options} {options} {server.mgmt_ip}")
        Pair.jobs_made += self.jobs

    @property
    def jobs(self):
        return self.server, self.client

    def wait_running(self, timeout=60):
        """Both ends have reported progress."""
        for job in self.jobs:
            job.wait_for(r'"rate":[1-9]', timeout)

    def wait_progress(self, messages=200, timeout=60):
        """Both ends report that many more messages from now on."""
        wait_more(self.jobs, messages, timeout)

    def numbers(self, job):
        """What rcheck has printed about its numbers: {"start": ..., "end": ...}."""
        return {line["numbers"]: line for line in json_lines(job.output(), "numbers")}

    def finish(self, timeout=120):
        """End the client, check both ends, return (client's summary, server's)."""
        self.client.kill(15)
        return self.wait(timeout)

    def wait(self, timeout=120):
        """Wait for both ends, check them, return (client's summary, server's)."""
        summaries = []
        for job in (self.client, self.server):
            job.wait(timeout, check=False)
            text = job.output()
            assert job.status == 0, f"rcheck failed ({job.status}):\n{text[-3000:]}"
            summaries.append(last_json(text))
            assert summaries[-1]["ok"], text[-3000:]
        client, server = summaries
        for op, count in client["sent"].items():
            if op != "read":
                assert server["received"].get(op) == count, (op, client, server)
        return client, server
