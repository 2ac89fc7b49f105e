# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The host's side of guestd: jobs in a guest over one virtio-serial port, see guest/guestd.c."""

import os
import re
import select
import signal
import socket
import struct
import threading
import time

_FRAME = struct.Struct("<III")
_WAKE = struct.Struct("<Q32s64s")
_RUN, _INPUT, _KILL, _WAKING = 1, 2, 3, 4
_OUTPUT, _EXIT, _HELLO = 1, 2, 3


class CommandFailed(Exception):
    """A command in a guest ended with a status other than 0."""


class GuestGone(Exception):
    """The guest's QEMU ended although nobody asked it to."""


class Job:
    """A command running in a guest."""

    def __init__(self, channel, number, command):
        self._channel = channel
        self._number = number
        self.command = command
        self.status = None      # as a shell tells it: 0..255, 128 + signal
        self._output = bytearray()

    def __repr__(self):
        return f"<{self._channel.name}: {self.command}>"

    @property
    def running(self):
        return self.status is None

    def bytes(self):
        with self._channel.changed:
            return bytes(self._output)

    def output(self):
        """All that it wrote so far, standard error included."""
        return self.bytes().decode(errors="replace")

    def wait(self, timeout=60, check=True):
        """Wait for its end and return its output; raises if it failed, unless @check is False."""
        self._channel.wait(lambda: self.status is not None, timeout,
                           lambda: f"{self}: not done after {timeout} s:\n{self.output()}")
        if check and self.status:
            raise CommandFailed(f"{self}: status {self.status}:\n{self.output()}")
        return self.output()

    def wait_for(self, pattern, timeout=60):
        """Wait until its output has a match of regex @pattern, and return the match."""
        found = []

        def matches():
            found[:] = [re.search(pattern, self._output.decode(errors="replace"), re.M)]
            return found[0] or self.status is not None
        self._channel.wait(matches, timeout, lambda: f"{self}: no {pattern!r} after "
                           f"{timeout} s:\n{self.output()}")
        if not found[0]:
            raise CommandFailed(f"{self}: ended ({self.status}) without {pattern!r}:\n"
                                f"{self.output()}")
        return found[0]

    def kill(self, sig=signal.SIGTERM):
        """Signal it and all its children; its end is not waited for."""
        self._channel.send(self._number, _KILL, str(int(sig)).encode())


class Channel:
    """One guest's port. It outlives a QEMU: switch() goes on with the migrated one's socket.
    All time-outs are multiplied by @slowness."""

    def __init__(self, name, path, slowness=1):
        self.name = name
        self._slowness = slowness
        self.changed = threading.Condition()
        self.gone = None            # why nothing more will come, once that is so
        self._hello = False
        self._jobs = {}
        self._next = 1
        self._sending = threading.Lock()    # a frame goes out in one piece
        self._buffer = b""
        self._leaving = False
        self._socket = self._connect(path)
        self._reader = self._start_reader()

    @staticmethod
    def _connect(path):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(path)
        return sock

    def _start_reader(self):
        thread = threading.Thread(target=self._read, args=(self._socket,), daemon=True)
        thread.start()
        return thread

    def wait_hello(self, timeout):
        self.wait(lambda: self._hello, timeout, lambda: f"{self.name}: no boot in {timeout} s")

    def wake(self, hostname):
        """Tell a guest that was started from a saved state, which says hello no more, its name, the
        time, and random bytes of its own."""
        self._hello = True
        self.send(0, _WAKING, _WAKE.pack(time.time_ns(), os.urandom(32), hostname.encode()))

    def wait(self, condition, timeout, complaint):
        """Wait until condition(); TimeoutError(complaint()) or GuestGone if it never comes."""
        end = time.monotonic() + timeout * self._slowness
        with self.changed:
            while not condition():
                if self.gone:
                    raise GuestGone(f"{self.name}: {self.gone}")
                left = end - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(left)
            else:
                return
        raise TimeoutError(complaint())

    def start(self, command, stdin=b""):
        with self.changed:
            number, self._next = self._next, self._next + 1
            job = self._jobs[number] = Job(self, number, command)
        self.send(number, _RUN, command.encode())
        for at in range(0, len(stdin), 32768):
            self.send(number, _INPUT, stdin[at:at + 32768])
        self.send(number, _INPUT, b"")
        return job

    def send(self, number, kind, payload):
        if self.gone:
            raise GuestGone(f"{self.name}: {self.gone}")
        with self._sending:
            self._socket.sendall(_FRAME.pack(number, kind, len(payload)) + payload)

    def prepare(self, path):
        """Connect to a migration destination's port: a guest sees a port without a host as
        unplugged, so somebody must be there before it arrives."""
        return self._connect(path)

    def switch(self, sock):
        """Go on with @sock from prepare(). The old QEMU has stopped, so what it still had to
        say lies in the old socket, and a frame may begin there and end in the new one."""
        self._leaving = True
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self._reader.join()
        self._leaving = False
        self._socket.close()
        self._socket, self.gone = sock, None    # the old QEMU may have been ended before
        self._reader = self._start_reader()

    def close(self, why):
        with self.changed:
            self.gone = self.gone or why
            self.changed.notify_all()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._reader.join()
        self._socket.close()

    def _read(self, sock):
        while True:
            try:
                # No time-out of the socket's own: it would hold for what is sent, too.
                if not select.select([sock], [], [], 0.1)[0]:
                    if self._leaving:
                        return
                    continue
                data = sock.recv(1 << 16)
            except (OSError, ValueError):
                data = b""
            if not data:
                break
            with self.changed:
                self._buffer += data
                self._take_frames()
                self.changed.notify_all()
        if not self._leaving:
            with self.changed:
                self.gone = self.gone or "its QEMU ended"
                self.changed.notify_all()

    def _take_frames(self):
        while len(self._buffer) >= _FRAME.size:
            number, kind, length = _FRAME.unpack_from(self._buffer)
            end = _FRAME.size + length
            if len(self._buffer) < end:
                return
            payload, self._buffer = self._buffer[_FRAME.size:end], self._buffer[end:]
            if kind == _HELLO:
                self._hello = True
            elif kind == _OUTPUT:
                self._jobs[number]._output += payload
            elif kind == _EXIT:
                status = struct.unpack("<i", payload)[0]
                self._jobs[number].status = (128 + os.WTERMSIG(status) if os.WIFSIGNALED(status)
                                             else os.WEXITSTATUS(status))
