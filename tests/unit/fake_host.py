# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A host for repath-migrate without machines: two QEMUs' monitors and a guest with repath agent.

    host = Host(mode)               sockets in a directory of its own
    host.on("agent suspend", fn)    fn(host, arguments) before that is done, once; what it returns,
                                    bytes, is said instead of what would be done
    host.run(options...)            the program, with the host as it is: (status, report, text)

What a guest is asked while it stands still it reads when it goes on. It stands still while it is
nowhere, between pre-switchover and its arrival, and while `still` is set.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The program as it is, with other waits for what will not come.
LAUNCH = """
import runpy, sys
sys.path.insert(0, sys.argv[1] + "/scripts/migrate")
sys.dont_write_bytecode = True
import move, talk
waits = float(sys.argv[2])
if waits:
    talk.Agent.GRACE = talk.Agent.TIMEOUT = move.ARRIVAL = waits
sys.argv = [sys.argv[1] + "/scripts/repath-migrate"] + sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
NET = {"driver": "virtio-net-pci", "id": "nic0", "netdev": "n0", "mac": "52:54:00:00:00:01",
       "romfile": "", "bus": "port0"}
KNOWN = {"virtio-net-pci": {"driver", "id", "netdev", "mac", "romfile", "bus", "addr",
                            "rx_queue_size", "host_mtu", "failover_pair_id"},
         "vfio-pci": {"driver", "id", "bus", "addr", "host", "sysfsdev"}}
LOOKS = 4           # at a migration, before it is completed
SPEED, DOWNTIME = 1 << 27, 300      # what the source's parameters are before


class Error(Exception):
    """A request is refused."""


class Line:
    """One end of a socket with one object a line each way."""

    def __init__(self, host, name, connection):
        self.host, self.name = host, name
        self._connection = connection
        self.waiting = []       # requests not read yet
        self._new = threading.Condition()
        self.over = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self._connection.makefile("rb") as lines, contextlib.suppress(OSError):
            for line in lines:
                with self._new:
                    if line.strip():
                        self.waiting.append(json.loads(line))
                    self._new.notify_all()
        with self._new:
            self.over = True
            self._new.notify_all()

    def wait_request(self):
        """Wait until something has been asked that is not read yet; False at the end."""
        with self._new:
            self._new.wait_for(lambda: self.waiting or self.over)
            return bool(self.waiting)

    def say(self, *objects):
        self.say_raw("".join(json.dumps(o) + "\n" for o in objects).encode())

    def say_raw(self, data):
        with contextlib.suppress(OSError):
            self._connection.sendall(data)


class Host:
    def __init__(self, mode="early", nic=None):
        self.directory = tempfile.mkdtemp()
        self.mode = mode
        self.process = None
        self.log = []               # what was asked, in order: ("src device_del", arguments)
        self.still = False
        self.waits = 0
        self.new_nic = "driver=virtio-net-pci,id=nic1,netdev=n1,mac=52:54:00:00:00:02"
        self.nics = {"src": {"nic0": dict(nic or NET)}, "dst": {}}
        self.running = {"src": True, "dst": False}
        self.migration = {"src": {}, "dst": {}}
        self.settings = {"max-bandwidth": SPEED, "downtime-limit": DOWNTIME, "pause": False}
        self.ops = {3: {"op": 3, "dev": "rxe0", "state": "suspended", "processes": []}}
        self.lines = {}
        self._hooks = {}
        self._looks = 0
        for name in ("src", "dst"):
            self._listen(f"{name}.qmp", self._serve_qemu, name)
            self._listen(f"{name}.agent", self._serve_agent, name)

    def on(self, what, function):
        self._hooks[what] = function

    def signal(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def asked(self):
        return [what for what, _ in self.log]

    def run(self, *options, **popen):
        arguments = ["--mode", self.mode, "--dev", "rxe0", "--uri", "unix:in", "--nic", "nic0",
                     "--new-nic", self.new_nic, "--src-agent", self._path("src.agent"),
                     "--dst-agent", self._path("dst.agent"), *options,
                     self._path("src.qmp"), self._path("dst.qmp")]
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        self.process = subprocess.Popen([sys.executable, "-c", LAUNCH, TOP, str(self.waits),
                                         *arguments], text=True, **popen)
        output, text = self.process.communicate(timeout=120)
        shutil.rmtree(self.directory)
        report = json.loads(output) if output else None
        return self.process.returncode, report, text

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _listen(self, name, serve, *arguments):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path(name))
        listener.listen()

        def accept():
            line = Line(self, arguments[0], listener.accept()[0])
            self.lines[name] = line
            with contextlib.suppress(OSError):
                serve(line)

        threading.Thread(target=accept, daemon=True).start()

    def _hooked(self, what, request):
        self.log.append((what, request))
        hook = self._hooks.pop(what, None)
        return hook(self, request) if hook else None

    # QEMU

    def _serve_qemu(self, line):
        line.say({"QMP": {}})
        while line.wait_request():
            request = line.waiting.pop(0)
            arguments = request.get("arguments", {})
            said = self._hooked(f"{line.name} {request['execute']}", arguments)
            if said is not None:
                line.say_raw(said)
                continue
            try:
                value = self._qemu(line, request["execute"], arguments)
                line.say({"return": value, "id": request["id"]})
            except Error as error:
                line.say({"error": {"desc": str(error)}, "id": request["id"]})
            self._go_on(line.name, request["execute"])

    def _qemu(self, line, command, arguments):
        me, nics = line.name, self.nics[line.name]
        if command == "query-status":
            incoming = me == "dst" and not self.running["dst"]
            return {"running": self.running[me],
                    "status": "inmigrate" if incoming else "running" if self.running[me] else "paused"}
        if command == "qom-list":
            nic = nics.get(arguments["path"].rpartition("/")[2])
            return [{"name": key} for key in (nic if nic else nics)]
        if command == "qom-get":
            nic = nics[arguments["path"].rpartition("/")[2]]
            return nic.get({"type": "driver", "parent_bus": "bus"}.get(
                arguments["property"], arguments["property"]))
        if command == "device_add":
            unknown = set(arguments) - KNOWN.get(arguments["driver"], set())
            if unknown:
                raise Error(f"Property '{arguments['driver']}.{unknown.pop()}' not found")
            if arguments["driver"] == "vfio-pci" and not {"host", "sysfsdev"} & set(arguments):
                raise Error("No provided host device")
            nics[arguments["id"]] = arguments
        elif command == "device_del":
            del nics[arguments["id"]]
            line.say({"event": "DEVICE_DELETED", "data": {"device": arguments["id"]}})
        elif command == "query-migrate-parameters":
            return {key: self.settings[key] for key in ("max-bandwidth", "downtime-limit")}
        elif command == "query-migrate-capabilities":
            return [{"capability": "pause-before-switchover", "state": self.settings["pause"]}]
        elif command == "migrate-set-parameters":
            self.settings.update(arguments)
        elif command == "migrate-set-capabilities":
            self.settings["pause"] = arguments["capabilities"][0]["state"]
        elif command == "query-migrate":
            return dict(self.migration[me])
        elif command == "migrate":
            self.migration["src"] = {"status": "active", "ram": {
                "transferred": 1 << 20, "remaining": 4096, "dirty-sync-count": 2}}
        elif command == "migrate_cancel":
            if self.migration["src"]["status"] != "completed":
                self.migration["src"]["status"] = "cancelled"
                self.running["src"] = True
        elif command == "migrate-continue":
            self.migration["src"]["status"] = "device"
        elif command == "cont":
            self.running[me] = True
        elif command != "qmp_capabilities":
            raise Error(f"{command} is not known")
        return {}

    def _go_on(self, me, command):
        """A migration goes on when it has been looked at."""
        status = self.migration["src"].get("status")
        if me != "src" or command not in ("query-migrate", "migrate-set-parameters"):
            return
        if status == "active" and self.settings["pause"]:
            if command == "migrate-set-parameters" and self.settings["downtime-limit"] > 1:
                self.migration["src"]["status"] = "pre-switchover"
                self.running["src"] = False
        elif status in ("active", "device") and command == "query-migrate":
            self._looks += 1
            if self._looks == LOOKS:
                self.complete()

    def complete(self):
        self.migration["src"]["status"] = "completed"
        self.running.update(src=False, dst=True)
        self.nics["dst"] |= self.nics["src"]

    # The guest

    def _serve_agent(self, line):
        while line.wait_request():
            if self.still or not self.running[line.name]:
                if line.over:
                    return
                time.sleep(0.005)
                continue
            request = line.waiting.pop(0)
            said = self._hooked(f"agent {request['cmd']}", request)
            if said is not None:
                line.say_raw(said.replace(b"ID", str(request["id"]).encode()))
                continue
            try:
                told = [{"ok": True}] if request["cmd"] in ("ping", "version") else \
                    self._agent(line.name, request)
            except Error as error:
                told = [{"ok": False, "error": str(error)}]
            line.say(*({"id": request["id"], **one} for one in told))

    def suspend(self):
        self.ops[7] = {"op": 7, "dev": "rxe0", "state": "suspended",
                       "processes": [{"pid": 4, "comm": "program"}]}
        return self.ops[7]

    def _agent(self, where, request):
        command = request["cmd"]
        if command == "suspend":
            return [{"event": "started", "op": 7},
                    {"ok": True, "op": {**self.suspend(), "stages": {"gate": 1.5, "drain": 2}}}]
        if command in ("resume", "status", "abort") and "op" in request:
            op = self.ops.get(request["op"])
            if not op:
                raise Error("no such operation")
            if command == "resume":
                if not self.nics[where]:
                    raise Error("no such device")
                op["state"] = "resumed"
            elif command == "abort":
                op["state"] = "failed"
            return [{"ok": True, "op": op}]
        if command == "status":
            return [{"ok": True, "ops": list(self.ops.values())}]
        if command in ("device-gone", "device-new"):
            return [{"ok": True, "hook": False}]
        if command == "wait-device" and not self.nics[where]:
            raise Error("no such device")
        return [{"ok": True}]
