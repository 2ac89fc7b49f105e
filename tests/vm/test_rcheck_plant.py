# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The checker catches every fault that it can make itself, at the end that has to see it, and
says what it is."""

import re

from traffic import last_json

# fault, which end sees it, what it says
FAULTS = [
    ("loss", "server", r"QP 0 .*message \d+ is lost"),
    ("write-loss", "server", r"QP 0 .*write \d+ is lost"),
    ("dup", "server", r"QP 0 .*message \d+ is doubled"),
    ("order", "server", r"QP 0 .*message \d+ in wrong order"),
    ("damage", "either", r"QP 0 .*(message|write|READ) \d+: damage: a wrong checksum"),
    ("read", "server", r"QP \d .*READ \d+: damage"),
    ("atomic", "client", r"QP 0 .*fetch_add \d+ returned"),
    ("missing-cqe", "client", r"QP 0 .*missing completion of \w+ \d+"),
    ("double-cqe", "client", r"QP \d .*doubled completion of request \d+"),
    ("wrong-imm", "server", r"QP 0 .*wrong immediate data"),
    ("wrong-wrid", "client", r"QP 0 .*(which was never posted|missing completion)"),
    ("wrong-qpn", "client", r"QP \d .*says qp_num"),
    ("still", "either", r"QP 1 .*stood still for \d+ s"),
    ("ballast", "server", r"QP \d .*the other end's ballast: 0x\w+ at byte 16777208, expected"),
]


def test(bed):
    a, b = bed.guests("a", "b")
    for number, (fault, end, words) in enumerate(FAULTS):
        port = 18600 + number
        server = a.start(f"exec rcheck -p {port} --stall 10")
        lasts = '-T 4 --ballast 16' if fault == 'ballast' else '-T 40'
        client = b.start(f"exec rcheck -p {port} --stall 10 {lasts} -b -q 2 --plant {fault} "
                         f"{a.mgmt_ip}")
        for job in (server, client):
            job.wait(90, check=False)
            assert job.status == 1, f"{fault} was not caught ({job.status}):\n{job.output()}"
            assert not last_json(job.output())["ok"]
        seen = {"server": [server], "client": [client], "either": [server, client]}[end]
        texts = [job.output() for job in seen]
        assert any(re.search(r"FAIL: " + words, text) for text in texts), f"{fault}: {texts}"
