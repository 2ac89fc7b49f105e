# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A virtual machine in two QEMUs: its NIC, its migration."""

import time

from talk import Late, Refused, Unreachable

ENDED = ("completed", "failed", "cancelled")


class MigrationFailed(Exception):
    pass


def nic_arguments(text):
    """Arguments of device_add from 'driver=virtio-net-pci,id=nic1,netdev=n1,mac=...'."""
    strings = ("driver", "id", "netdev", "mac", "bus", "addr", "romfile", "failover_pair_id")
    arguments = {}
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise ValueError(f"\"{pair}\" is not key=value")
        if key not in strings:
            # QMP wants the types that the command line does without.
            if value in ("on", "off"):
                value = value == "on"
            elif value.isdigit():
                value = int(value)
        arguments[key] = value
    missing = [key for key in ("driver", "id") if key not in arguments]
    if missing:
        raise ValueError(f"{missing[0]}= is missing")
    return arguments


def has_nic(qmp, nic):
    return any(item["name"] == nic for item in qmp("qom-list", path="/machine/peripheral"))


def describe_nic(qmp, nic):
    """Arguments of the device_add that would plug @nic again as it is."""
    path = f"/machine/peripheral/{nic}"
    if not has_nic(qmp, nic):
        raise Refused(f"the machine has no device \"{nic}\" that could be unplugged")
    properties = {item["name"] for item in qmp("qom-list", path=path)}
    described = {"driver": qmp("qom-get", path=path, property="type"), "id": nic}
    for key in ("netdev", "mac", "romfile"):
        if key in properties:
            described[key] = qmp("qom-get", path=path, property=key)
    for key in ("sysfsdev", "host"):        # QEMU fills in the first from the second
        if key in properties:
            value = qmp("qom-get", path=path, property=key)
            if value:
                described[key] = value
                break
    else:
        if described["driver"].startswith("vfio-"):
            raise Refused(f"QEMU does not tell which host device \"{nic}\" is: give --old-nic")
    bus = qmp("qom-get", path=path, property="parent_bus")
    described["bus"] = bus.rsplit("/", 1)[-1]
    return described


def unplug(qmp, nic, timeout):
    qmp.events.clear()
    qmp("device_del", id=nic)
    qmp.wait_event("DEVICE_DELETED", timeout, device=nic)


def migration(qmp):
    return qmp("query-migrate")


def migration_settings(qmp):
    """What a move changes of the migration's parameters and capabilities, for set_migration()."""
    parameters = qmp("query-migrate-parameters")
    return {"parameters": {key: parameters[key] for key in ("max-bandwidth", "downtime-limit")
                           if key in parameters},
            "capabilities": [one for one in qmp("query-migrate-capabilities")
                             if one["capability"] == "pause-before-switchover"]}


def set_migration(qmp, settings):
    if settings["parameters"]:
        qmp.execute("migrate-set-parameters", settings["parameters"])
    if settings["capabilities"]:
        qmp("migrate-set-capabilities", capabilities=settings["capabilities"])


def figures(info):
    """What QEMU says of a migration, in milliseconds and bytes."""
    ram = info.get("ram", {})
    return {"status": info.get("status"), "total_ms": info.get("total-time"),
            "downtime_ms": info.get("downtime"), "setup_ms": info.get("setup-time"),
            "bytes": ram.get("transferred"), "passes": ram.get("dirty-sync-count")}


def wait_migration(qmp, states, timeout):
    """Wait until the migration is in one of @states: query-migrate's answer then."""
    end = time.monotonic() + timeout
    while True:
        info = migration(qmp)
        if info.get("status") in states:
            return info
        if info.get("status") in ENDED:
            raise MigrationFailed(f"migration {info['status']}: "
                                  f"{info.get('error-desc', 'QEMU gives no reason')}")
        if time.monotonic() > end:
            raise Late(f"the migration is still \"{info.get('status')}\" after {timeout:g} s")
        time.sleep(0.01)


def wait_running(qmp, timeout):
    """Wait until the machine runs in this QEMU."""
    end = time.monotonic() + timeout
    while not qmp("query-status")["running"]:
        if time.monotonic() > end:
            raise Late("the destination has the machine, but it does not run")
        time.sleep(0.005)


def call_off(src, dst, timeout=30):
    """End a migration under way; True if the machine is, and runs, at the source."""
    if migration(src).get("status") not in (None,) + ENDED:
        src("migrate_cancel")
        wait_migration(src, ENDED, timeout)
    if migration(src).get("status") == "completed" and not dead(dst):
        return False
    if not src("query-status")["running"]:
        src("cont")
    return True


def dead(qmp):
    """Has that QEMU ended? Only then may the other one go on with the machine."""
    try:
        qmp("query-status", timeout=5)
    except Unreachable:
        return True
    except Late:
        pass
    return False
