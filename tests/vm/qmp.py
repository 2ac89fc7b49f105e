# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A QMP client: commands, their errors as exceptions, and events that can be waited for."""

import json
import socket
import time


class QMPError(Exception):
    """QEMU refused a command."""


class QMP:
    slowness = 1        # events may take that much longer

    def __init__(self, path, timeout=30):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        self._socket.connect(path)
        self._buffer = b""
        self.events = []
        self._receive(timeout)      # the greeting
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        """qmp("device_del", id="x"); an underscore in an argument's name stands for a dash."""
        arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
        request = {"execute": command, "arguments": arguments}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = self._receive(60)
            if "event" in answer:
                self.events.append(answer)
            elif "error" in answer:
                raise QMPError(f"{command}: {answer['error']['desc']}")
            else:
                return answer["return"]

    def wait_event(self, name, timeout=60, **data):
        """The first event @name whose data has all of @data; it is taken off the list."""
        end = time.monotonic() + timeout * self.slowness
        while True:
            for event in self.events:
                if event["event"] == name and data.items() <= event.get("data", {}).items():
                    self.events.remove(event)
                    return event
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no {name} {data or ''} from QEMU in {timeout} s")
            try:
                answer = self._receive(left)
            except TimeoutError:
                continue
            if "event" in answer:
                self.events.append(answer)

    def close(self):
        self._socket.close()

    def _receive(self, timeout):
        self._socket.settimeout(timeout)
        while b"\n" not in self._buffer:
            data = self._socket.recv(65536)
            if not data:
                raise EOFError("QEMU closed its monitor")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)
