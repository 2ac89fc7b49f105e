# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where hosts spend their time when the subnet manager reroutes: what the module's work items take of the
processor, and in them each verb. All hosts of a guest together; not in it is the kernel's own work for MADs.

    time = HostTime(guest)
    ...
    print(time.end())           # {part: seconds}

    module          the work items, without what follows
    query           ib_query_qp: a queue pair is asked where it sends to
    drain, address, on, load, over
                    ib_modify_qp, by what it is for, as in moves_traced

With verbs=False all is the module's, and nearly nothing is added to it by looking.
"""

import collections
import re

from moves_traced import TRACE, call

GROUP = "repath_time"
PROBES = {"verb_modify": "p:{} ib_modify_qp mask=%dx:u32 state=+0(%si):u32", "verb_query": "p:{} ib_query_qp",
          "verb_modified": "r:{} ib_modify_qp", "verb_queried": "r:{} ib_query_qp"}
EVENTS = ("workqueue/workqueue_execute_start", "workqueue/workqueue_execute_end", "sched/sched_switch")
MODULE = "module"
LINE = re.compile(r"-(\d+) +\[\d+\].*? (\d+\.\d+): (\w+): (.*)")


class HostTime:
    """From now on. The trace is emptied by who uses it."""

    def __init__(self, guest, verbs=True):
        self.guest = guest
        self.probes = PROBES if verbs else {}
        probes = "".join(f"echo '{probe.format(f'{GROUP}/{name}')}' >> kprobe_events && "
                         for name, probe in self.probes.items())
        guest.run(f"cd {TRACE} && {probes} echo 'prev_comm ~ \"kworker*\" || next_comm ~ \"kworker*\"' > "
                  "events/sched/sched_switch/filter")
        self.enable(True)

    def enable(self, on):
        events = (*EVENTS, GROUP) if self.probes else EVENTS
        self.guest.run(f"cd {TRACE} && for e in {' '.join(events)}; do echo {int(on)} > events/$e/enable; done")

    def end(self):
        """{part: seconds of the processor}"""
        self.enable(False)
        words = "|".join([*self.probes, *(event.split("/")[1] for event in EVENTS)])
        text = self.guest.run(f"grep -E ' ({words}): ' {TRACE}/trace", timeout=300, check=False)
        self.guest.run("; ".join([f"cd {TRACE}", *(f"echo '-:{GROUP}/{name}' >> kprobe_events" for name in self.probes)]))
        return parts(text)


class Work:
    """A work item that is under way: which part of it, and since when it has the processor."""

    def __init__(self, at):
        self.part, self.since = MODULE, at

    def take(self, found, at):
        """What it has had until now belongs to its part."""
        if self.since is not None:
            found[self.part] += at - self.since
            self.since = at


def parts(text):
    """Of a trace."""
    found, works = collections.Counter(), {}
    for task, at, event, said in LINE.findall(text):
        at, work = float(at), works.get(task)
        if event == "workqueue_execute_start" and "[ib_repath]" in said:
            works[task] = Work(at)
        elif event == "sched_switch":
            # It is the one that goes that says so.
            if work:
                work.take(found, at)
                work.since = None
            comes = works.get(re.search(r"next_pid=(\d+)", said)[1])
            if comes:
                comes.since = at
        elif work:
            work.take(found, at)
            if event == "verb_modify":
                mask, state = (int(number) for number in re.findall(r"=(\d+)", said))
                work.part = call(mask, str(state))
            elif event == "verb_query":
                work.part = "query"
            elif event == "workqueue_execute_end":
                del works[task]
            else:
                work.part = MODULE
    return dict(found)
