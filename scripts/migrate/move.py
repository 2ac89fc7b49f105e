# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The move of one machine: its stages in order, and the way back from each.

early   suspend - unplug - migrate - plug - resume
late    migrate ... suspend ... - unplug - plug - resume

Late, the machine keeps its NIC while its memory is copied and is suspended just before the last
round. QEMU refuses device_del while it migrates, so the old NIC goes along and is exchanged at the
destination, which therefore has to be started with the same NIC in the same place.
"""

import time
import traceback

import answer
import machine
from report import warn
from talk import Agent, Interrupted, Late, Refused, Unreachable

ROLL_BACK = (Interrupted, Late, Refused, Unreachable, answer.Garbled, machine.MigrationFailed)

SHORT_COPY = 2      # seconds
FIRST_PASS_REST = 1000      # ms: what is left of the first pass when it is slowed
HELD = 40960        # bytes a second: a page in each of QEMU's slices of 100 ms
ARRIVAL = 10        # seconds until the agent answers at the destination


class Failed(Exception):
    """The move did not succeed. parked: processes are left waiting; next: what to do then."""

    def __init__(self, text, parked=False, next_steps=()):
        super().__init__(text)
        self.parked = parked
        self.next_steps = list(next_steps)


class Move:
    def __init__(self, options, src, dst, report, interrupt):
        self.o = options
        self.src, self.dst = src, dst
        self.report = report
        self.interrupt = interrupt
        self.src_agent = self.dst_agent = self.agent = None
        self.op = None
        self.other_ops = set()  # those that there were before
        self.unsure = False     # a suspend was asked for, and whether it began is not known
        self.old_nic = None
        self.settings = {}      # what the source's migration parameters were
        self.undo = []          # (what it brings back, function), undone from the end
        self.moved = False
        self.lost = False       # where the machine is could not be found out

    def run(self):
        try:
            self.prepare()
            if self.o.mode == "early":
                self.early()
            else:
                self.late()
        except Exception as error:
            # Whatever it is: nobody shall be left standing.
            if not isinstance(error, ROLL_BACK):
                warn(traceback.format_exc())
            self.roll_back(error)

    # What both have

    def prepare(self):
        with self.report.stage("prepare"):
            status = self.dst("query-status")["status"]
            if status != "inmigrate":
                raise Refused(f"the destination is \"{status}\": start it with -incoming")
            self.old_nic = self.o.old_nic or machine.describe_nic(self.src, self.o.nic)
            self.src_agent = self.agent = Agent(self.o.src_agent, self.interrupt)
            self.agent.wait_for_it(5)
            self.report.facts["versions"] = {
                key: value for key, value in self.agent.ask("version").items()
                if key not in ("id", "ok")}
            self.other_ops = {op["op"] for op in answer.operations(self.agent.ask("status"))}
            # Before the machine is there: it takes a port with nobody behind it as closed.
            self.dst_agent = Agent(self.o.dst_agent, self.interrupt)

    def suspend(self):
        def started(message):
            if message["event"] == "started":
                self.op = self.report.facts["op"] = answer.op_number(message)

        with self.report.stage("suspend") as entry:
            self.undo.append((f"processes on {self.o.dev}", self.undo_suspend))
            try:
                self.unsure = True
                said = self.agent.ask("suspend", self.o.timeout["suspend"], started,
                                      dev=self.o.dev, force=self.o.force)
            except Refused:
                self.unsure = False
                raise
            op = answer.member(said, "op", dict)
            self.op = self.report.facts["op"] = answer.op_number(op)
            self.take_processes(op, entry)

    def take_processes(self, op, entry):
        entry["parts"] = answer.stages(op)
        entry["processes"] = answer.processes(
            op, ("pid", "comm", "stage", "counters", "reached-ms"))
        count = len(entry["processes"])
        entry.setdefault("notes", []).append(f"{count} process{'' if count == 1 else 'es'}")

    def device_gone(self):
        with self.report.stage("device-gone"):
            self.undo.append((f"device {self.o.dev}", self.undo_device_gone))
            self.agent.ask("device-gone", self.o.timeout["unplug"], dev=self.o.dev)

    def unplug(self, qmp):
        with self.report.stage("unplug"):
            self.undo.append((f"NIC {self.o.nic}", lambda: self.undo_unplug(qmp)))
            machine.unplug(qmp, self.o.nic, self.o.timeout["unplug"])

    def plug(self):
        with self.report.stage("plug"):
            self.dst.execute("device_add", self.o.new_nic)
        with self.report.stage("device-new") as entry:
            said = self.agent.ask("device-new", self.o.timeout["plug"], dev=self.o.new_dev)
            if said.get("hook"):
                entry["notes"] = ["by hook"]
            self.agent.ask("wait-device", self.o.timeout["plug"], dev=self.o.new_dev)

    def resume(self):
        with self.report.stage("resume") as entry:
            said = self.agent.ask("resume", self.o.timeout["resume"], op=self.op,
                                  on=self.o.new_dev)
            # They go on: what else is said of them does not matter any more.
            self.take_processes(said["op"] if isinstance(said.get("op"), dict) else {}, entry)

    def start_migration(self, **parameters):
        if self.o.incoming:
            self.dst("migrate-incoming", uri=self.o.uri)
        self.settings = machine.migration_settings(self.src)
        self.undo.append(("machine at the source", self.undo_migration))
        self.src("migrate-set-capabilities", capabilities=[
            {"capability": "pause-before-switchover", "state": self.o.mode == "late"}])
        self.src("migrate-set-parameters", max_bandwidth=self.o.max_bandwidth, **parameters)
        self.src("migrate", uri=self.o.uri)

    def arrive(self, entry):
        """Wait until the machine is at the destination, and go over to it."""
        try:
            info = machine.wait_migration(self.src, ("completed",), self.o.timeout["migrate"])
        except (Interrupted, Late):
            self.interrupt.ignored = True
            if machine.call_off(self.src, self.dst):
                raise
            info = machine.migration(self.src)      # it was faster
        # From here on forward is the way on which the fewest things can go wrong.
        self.interrupt.ignored = True
        machine.wait_running(self.dst, self.o.timeout["migrate"])
        self.moved = True
        self.agent = self.dst_agent
        # Late, it came with its NIC: what there is to bring back is brought back there.
        self.undo = [] if self.o.mode == "early" else [
            step for step in self.undo if step[1] != self.undo_migration]
        self.agent.wait_for_it(ARRIVAL)
        entry.update(machine.figures(info))
        entry["notes"] = [f"downtime {entry['downtime_ms']} ms",
                          f"{(entry['bytes'] or 0) / 1e6:.1f} MB", f"{entry['passes']} passes"]

    # The two ways

    def early(self):
        self.suspend()
        self.device_gone()
        self.unplug(self.src)
        with self.report.stage("migrate") as entry:
            self.start_migration(downtime_limit=self.o.downtime_limit)
            self.arrive(entry)
        self.plug()
        self.resume()

    def late(self):
        with self.report.stage("copy") as entry:
            # At 0 QEMU never looks what was written meanwhile: it switches over after one pass.
            self.start_migration(downtime_limit=1)
            info = self.wait_small_rest()
            entry.update(machine.figures(info), remaining=info["ram"]["remaining"])
            entry["notes"] = [f"{entry['bytes'] / 1e6:.1f} MB",
                              f"{entry['remaining'] / 1e6:.1f} MB left",
                              f"{entry['passes']} passes"]
        self.suspend()
        self.still_copying()
        with self.report.stage("migrate") as entry:
            self.src("migrate-set-parameters", downtime_limit=self.o.downtime_limit,
                     max_bandwidth=self.o.max_bandwidth)
            machine.wait_migration(self.src, ("pre-switchover",), self.o.timeout["migrate"])
            self.src("migrate-continue", state="pre-switchover")
            self.arrive(entry)
        self.device_gone()
        self.unplug(self.dst)
        self.plug()
        self.resume()

    def wait_small_rest(self):
        """Wait until the rest could be copied within the permitted downtime, or does not get
        smaller any more, and keep it from getting smaller: QEMU would switch over."""
        start, speed, slow_since = time.monotonic(), 1, None
        end = start + self.o.timeout["migrate"]
        while True:
            info = self.still_copying()
            ram = info.get("ram", {})
            passes, rest = ram.get("dirty-sync-count", 0), ram.get("remaining", 0)
            spent = max(time.monotonic() - start, 0.001)
            if slow_since is None:
                # QEMU sends what it may in a tenth of a second all at once.
                speed = min(max(ram.get("transferred", 0) / spent, 1), self.o.max_bandwidth)
            rest_ms = rest * 1e3 / speed
            begun = info.get("status") == "active" and ram.get("transferred", 0) > 0
            # A copy as short as this leaves little behind that was written meanwhile, and an
            # idle guest nothing: so the first pass is held already.
            short = begun and spent < SHORT_COPY and rest_ms <= self.o.downtime_limit / 3
            if short or passes >= 10 or passes >= 2 and rest_ms <= self.o.downtime_limit:
                self.src("migrate-set-parameters", max_bandwidth=HELD)
                return info
            if begun and passes < 2 and rest_ms <= FIRST_PASS_REST:
                # A longer one ends slower and slower, so that the second pass, however little
                # there is for it, is seen when it begins.
                slow_since = slow_since or time.monotonic()
                self.src("migrate-set-parameters",
                         max_bandwidth=min(self.o.max_bandwidth, max(HELD, 2 * rest)))
            elif slow_since is not None:
                self.src("migrate-set-parameters", max_bandwidth=self.o.max_bandwidth)
                start += time.monotonic() - slow_since
                slow_since = None
            if time.monotonic() > end:
                raise Late(f"the copy is not nearly done after {self.o.timeout['migrate']:g} s")
            time.sleep(0.002)

    def still_copying(self):
        info = machine.migration(self.src)
        status = info.get("status")
        if status in ("pre-switchover", "device") or status in machine.ENDED:
            raise machine.MigrationFailed(
                f"the copy ended before the guest was suspended (\"{status}\"): "
                f"{info.get('error-desc', 'the guest wrote too little to hold it; use --mode early')}")
        return info

    # The way back

    def roll_back(self, error):
        self.interrupt.ignored = True
        self.report.say(f"  {error}")
        if self.moved and not self.undo:
            self.give_up(error, [])
        failures = []
        # First: during its last part the machine stands still, and nothing else can be done.
        self.undo.sort(key=lambda step: step[1] == self.undo_migration)
        while self.undo:
            what, function = self.undo.pop()
            try:
                with self.report.stage("back"):
                    self.report.say(f"  bringing back: {what}")
                    done = function()
                if done:
                    self.report.undone.append(f"{what}: {done}")
            except Exception as again:      # whatever it is: the others may still be brought back
                if not isinstance(again, ROLL_BACK):
                    warn(traceback.format_exc())
                failures.append(f"{what}: {again}")
                self.report.undone.append(f"{what}: FAILED: {again}")
                if function == self.undo_migration:
                    # Where the machine is not, there is nothing else to bring back.
                    failures += [f"{left}: not tried" for left, _ in reversed(self.undo)]
                    self.undo = []
                    self.lost = not self.moved
        if failures:
            self.give_up(error, failures)
        raise Failed(str(error))

    def give_up(self, error, failures):
        """Processes are left waiting. Say where, and what to type."""
        where = "destination" if self.moved else "source"
        steps = [f"the machine is at the {where}"]
        if self.lost:
            steps = ["the machine is at the destination if it runs there, else at the source"]
        if self.op:
            steps += [f"in it, 'repath status {self.op}' tells who waits",
                      "bring an RDMA device back to it, then in it type: "
                      f"'repath resume {self.op} on DEVICE'"]
        else:
            steps += ["in it, 'repath status' tells what is under way",
                      f"what is suspended of {self.o.dev} goes on by "
                      f"'repath resume OP on {self.o.dev}'"]
        text = "; ".join([str(error)] + [f"not brought back: {one}" for one in failures])
        raise Failed(text, parked=True, next_steps=steps)

    def undo_migration(self):
        if not machine.call_off(self.src, self.dst):
            self.moved = True
            self.agent = self.dst_agent
            raise Refused("the destination has taken it over and can not be asked")
        self.agent = self.src_agent
        try:
            machine.set_migration(self.src, self.settings)
        except ROLL_BACK as error:
            return f"there, but its migration parameters are not as they were: {error}"
        return "there"

    def undo_unplug(self, qmp):
        try:
            # It may be on its way out still.
            if machine.has_nic(qmp, self.o.nic) and "DEVICE_DELETED" not in str(qmp.events):
                qmp.wait_event("DEVICE_DELETED", 3, device=self.o.nic)
        except Late:
            return "was not unplugged; the guest may still let it go"
        qmp.execute("device_add", self.old_nic)
        return "plugged again"

    def undo_device_gone(self):
        self.agent.ask("device-new", self.o.timeout["plug"], dev=self.o.dev)
        self.agent.ask("wait-device", self.o.timeout["plug"], dev=self.o.dev)
        return "there"

    def undo_suspend(self):
        done = [self.bring_back(op) for op in self.operations()]
        return "; ".join(done) if done else "were not suspended"

    def operations(self):
        """What the suspend has begun, as the guest tells it."""
        if self.op:
            return [self.status(self.op)]
        if not self.unsure:
            return []
        # Nobody has told its number. A guest that had stood still has read the request by now:
        # it is before this one.
        return [op for op in answer.operations(self.agent.ask("status"))
                if op.get("dev") == self.o.dev and op["op"] not in self.other_ops]

    def status(self, number):
        return answer.member(self.agent.ask("status", op=number), "op", dict)

    def bring_back(self, op):
        number = self.op = self.report.facts["op"] = answer.op_number(op)
        if op.get("state") in ("checking", "suspending"):
            op = self.wait_abort(number)
        if op.get("state") in ("suspended", "parked"):
            self.agent.ask("resume", self.o.timeout["resume"], op=number, on=self.o.dev)
            return "resumed"
        return "as before"

    def wait_abort(self, number):
        try:
            said = self.agent.ask("abort", self.o.timeout["resume"], op=number)
        except Refused:
            # It may have come to its end just before.
            return self.status(number)
        return answer.member(said, "op", dict)
