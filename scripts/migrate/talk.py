# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""JSON objects, one a line, over unix sockets: QEMU's monitor (QMP) and repath's agent in a guest."""

import json
import socket
import time

from answer import Garbled, clean, error_of

LONGEST_LINE = 1 << 20      # bytes; the agent keeps no more unsent


class Unreachable(Exception):
    """Nobody answers at a socket, or what was there has gone."""


class Refused(Exception):
    """The other side answered with an error; answer is all that it said."""

    def __init__(self, text, answer=None):
        super().__init__(text)
        self.answer = answer or {}


class Late(Exception):
    """An answer did not come in time."""


class Interrupted(Exception):
    """A signal asked for the end."""


class Interrupt:
    """What a signal handler sets, and every wait looks at, so that an interrupt comes between
    two messages and never within one."""

    def __init__(self):
        self.asked = False
        self.ignored = False

    def ask(self, *_):
        self.asked = True

    def look(self):
        if self.asked and not self.ignored:
            raise Interrupted("interrupted")


class Lines:
    """A socket that carries JSON objects. What is not one is passed over: it can be half of what
    was meant for somebody who was here before. Garbled for what nobody honest has said."""

    def __init__(self, path, interrupt, timeout=10):
        self.path = path
        self._interrupt = interrupt
        self._buffer = b""
        self._skip = False      # the rest of a line that was too long
        self._socket = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + timeout
        while True:
            try:
                self._socket.connect(path)
                break
            except OSError as error:
                if time.monotonic() > end or isinstance(error, FileNotFoundError):
                    raise Unreachable(f"{path}: {error.strerror}") from error
                interrupt.look()
                time.sleep(0.05)

    def send(self, text):
        # Before: afterwards it would be too late to know what becomes of it.
        self._interrupt.look()
        try:
            self._socket.settimeout(10)
            self._socket.sendall(text.encode())
        except OSError as error:
            raise Unreachable(f"{self.path}: {error}") from error

    def receive(self, end):
        """The next object, or None when time.monotonic() is @end."""
        while True:
            while b"\n" in self._buffer:
                line, self._buffer = self._buffer.split(b"\n", 1)
                message = None if self._skip else self._object(line)
                self._skip = False
                if message is not None:
                    return message
            if len(self._buffer) > LONGEST_LINE or self._skip:
                known, self._skip, self._buffer = self._skip, True, b""
                if not known:
                    raise Garbled(f"{self.path}: a line of more than {LONGEST_LINE} bytes")
            self._interrupt.look()
            left = end - time.monotonic()
            if left <= 0:
                return None
            self._socket.settimeout(min(left, 0.1))
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                continue
            except OSError as error:
                raise Unreachable(f"{self.path}: {error}") from error
            if not data:
                raise Unreachable(f"{self.path}: closed by the other side")
            self._buffer += data

    def _object(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            return None
        except RecursionError as error:
            raise Garbled(f"{self.path}: a line is nested too deeply") from error
        return clean(message) if isinstance(message, dict) else None

    def close(self):
        self._socket.close()


class Qmp:
    """QEMU's monitor."""

    def __init__(self, path, interrupt):
        self._lines = Lines(path, interrupt)
        self._number = 0
        self.events = []
        if not self._lines.receive(time.monotonic() + 10):
            raise Unreachable(f"{path}: no greeting: is another monitor client connected?")
        self("qmp_capabilities")

    def __call__(self, command, timeout=30, **arguments):
        """qmp("device_del", id="nic0"); an underscore in an argument's name stands for a dash."""
        return self.execute(command, {key.replace("_", "-"): value
                                      for key, value in arguments.items()}, timeout)

    def execute(self, command, arguments, timeout=30):
        """The same for arguments that are called as they are: properties of devices have both."""
        self._number += 1
        self._lines.send(json.dumps({"execute": command, "arguments": arguments,
                                     "id": self._number}) + "\n")
        end = time.monotonic() + timeout
        while True:
            answer = self._lines.receive(end)
            if answer is None:
                raise Late(f"QEMU does not answer {command}")
            if "event" in answer:
                self.events.append(answer)
            elif answer.get("id") == self._number:
                if "error" in answer:
                    raise Refused(f"QEMU refuses {command}: {answer['error']['desc']}", answer)
                return answer["return"]

    def wait_event(self, name, timeout, **data):
        """Take event @name whose data has all of @data off the list; Late if it does not come."""
        end = time.monotonic() + timeout
        while True:
            for event in self.events:
                if event["event"] == name and data.items() <= event.get("data", {}).items():
                    self.events.remove(event)
                    return event
            message = self._lines.receive(end)
            if message is None:
                raise Late(f"no {name} from QEMU in {timeout:g} s")
            if "event" in message:
                self.events.append(message)

    def close(self):
        self._lines.close()


class Agent:
    """repath agent in the guest, over its virtio-serial port. See repath-agent(8)."""

    GRACE = 5       # seconds that the way to the guest and back may take beyond the request's own
    TIMEOUT = 10    # of what needs no longer

    def __init__(self, path, interrupt):
        self._lines = Lines(path, interrupt)
        # Numbers of somebody who was here before must not be taken for ours.
        self._number = time.monotonic_ns() & 0xffffffff
        self._lines.send("\n")

    def ask(self, cmd, timeout=None, tell=None, grace=None, **members):
        """Ask and wait for the answer: the object, or Refused. @timeout goes with the request,
        the answer may take @grace more; @tell gets the objects that come before the answer."""
        self._number += 1
        timeout = self.TIMEOUT if timeout is None else timeout
        request = {"id": self._number, "cmd": cmd, "timeout": timeout}
        request.update({key.replace("_", "-"): value for key, value in members.items()
                        if value is not None})
        self._lines.send(json.dumps(request) + "\n")
        end = time.monotonic() + timeout + (self.GRACE if grace is None else grace)
        while True:
            answer = self._lines.receive(end)
            if answer is None:
                raise Late(f"the agent does not answer \"{cmd}\"")
            if answer.get("id") != self._number:
                continue
            if "event" in answer:
                if tell:
                    tell(answer)
            elif answer.get("ok") is True:
                return answer
            else:
                raise Refused(error_of(answer), answer)

    def wait_for_it(self, timeout):
        """Wait until the agent answers: after a migration the port may need a moment."""
        end = time.monotonic() + timeout
        while True:
            self._lines.send("\n")
            try:
                return self.ask("ping", timeout=0.5, grace=0)
            except Late:
                if time.monotonic() > end:
                    raise

    def close(self):
        self._lines.close()
