# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A program that does verbs as a test tells it: see tests/apps/dialog.c."""

from move import SHIM


class Dialog:
    """A process that does verbs as it is told."""

    def __init__(self, guest, name, env=SHIM):
        self.guest, self.name = guest, f"/tmp/{name}"
        self.job = guest.start(f"mkfifo {self.name}.in; exec env {env} dialog <>{self.name}.in")
        self.said = 0
        self.answer("ready")
        self.address = self.ask("address")[0]

    def answer(self, word):
        """The words behind @word in the next line that it says."""
        self.said += 1
        text = self.job.wait_for(rf"\A(?:[^\n]*\n){{{self.said}}}").group()
        line = text.splitlines()[-1].split()
        assert line[0] == word, f"{self.name}: {line}"
        return line[1:]

    def say(self, *commands):
        lines = " ".join(f"'{command}'" for command in commands)
        self.guest.run(f"printf '%s\\n' {lines} >{self.name}.in")

    def ask_all(self, *commands):
        self.say(*commands)
        return [self.answer(command.split()[0]) for command in commands]

    def ask(self, command):
        return self.ask_all(command)[0]

    def qp(self):
        number, qpn = self.ask("qp")
        return number, qpn

    def connect(self, qp, gid, far):
        return int(self.ask(f"connect {qp[0]} {gid} {far[1]}")[0])

    def write(self, qp, key, text):
        return int(self.ask(f"write {qp[0]} {key[1]} {key[2]} {text}")[0])

    def kill(self):
        self.job.kill(9)
        self.job.wait(30, check=False)
