# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which kernel the guests boot, its modules, and which accelerator works here.

    KERNEL=6.1.0-56-amd64   the release to boot (default: the newest in KERNEL_ROOT/boot), or
                            what scripts/kernel takes: 6.12
                            or debug: tests/debug/kernel's
    KERNEL_ROOT=/           a directory that holds boot/ and lib/modules, such as one into
                            which a linux-image package was unpacked
"""

import bz2
import ctypes
import functools
import lzma
import mmap
import os
import re
import subprocess
import tempfile
import threading
import time
import zlib

QEMU = "qemu-system-x86_64"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ACCELERATOR = "BED_ACCELERATOR"     # the environment variable by which a run tells its tests
PROBE = os.path.join(TOP, "tests/vm/guest/probe.S")


def _by_version(release):
    return [int(part) if part.isdigit() else 0 for part in re.split(r"[.\-+]", release)]


class Kernel:
    """A distribution kernel: where its image and its modules lie."""

    def __init__(self, release=None, root=None):
        self.root = root or os.environ.get("KERNEL_ROOT")
        self.release = release or os.environ.get("KERNEL")
        if self.release and not self.root and not os.path.exists("/boot/vmlinuz-" + self.release):
            self.root = self._unpacked(self.release)
            self.release = os.path.basename(self.root)
        self.root = self.root or "/"
        self.release = self.release or self._newest()
        self.debug = self._has("CONFIG_KASAN=y")
        self.image = os.path.join(self.root, "boot", "vmlinuz-" + self.release)
        self.modules = os.path.join(self.root, "lib/modules", self.release)
        for needed in (self.image, self.modules):
            if not os.path.exists(needed):
                raise FileNotFoundError(f"{needed}: is linux-image-{self.release} installed?")

    @staticmethod
    def _unpacked(name):
        """The root that scripts/kernel unpacks for a series, or that of the debug kernel."""
        command = ["tests/debug/kernel"] if name == "debug" else ["scripts/kernel", name]
        result = subprocess.run(command, cwd=TOP,
                                stdout=subprocess.PIPE, text=True)
        if result.returncode:
            raise FileNotFoundError(f"there is no kernel {name}")
        return result.stdout.strip()

    def _has(self, option):
        """Does the configuration have this line?"""
        path = os.path.join(self.root, "boot", "config-" + self.release)
        if not os.path.exists(path):
            return False
        with open(path) as f:
            return option in f.read().splitlines()

    @property
    def slowness(self):
        """By how much it takes longer for everything than a stock kernel."""
        return 6 if self.debug else 1

    def _newest(self):
        boot = os.path.join(self.root, "boot")
        found = [f[len("vmlinuz-"):] for f in os.listdir(boot) if f.startswith("vmlinuz-")]
        if not found:
            raise FileNotFoundError(f"no kernel image in {boot}")
        return max(found, key=_by_version)

    def module_files(self, names):
        """Paths, relative to the modules' directory, of @names and what they depend on."""
        index = os.path.join(self.modules, "modules.dep")
        if not os.path.exists(index):       # of a package that was unpacked, not installed
            subprocess.run(["depmod", "-b", self.root, self.release], check=True)
        depends = {}
        with open(index) as f:
            for line in f:
                path, _, needs = line.partition(":")
                depends[path] = needs.split()
        with open(os.path.join(self.modules, "modules.builtin")) as f:
            builtin = {self._module_name(line) for line in f}
        by_name = {self._module_name(path): path for path in depends}
        files = []
        for name in names:
            name = name.replace("-", "_")
            if name in builtin:
                continue
            if name not in by_name:
                raise LookupError(f"kernel {self.release} has no module {name}")
            files += [by_name[name]] + depends[by_name[name]]
        return sorted(set(files))

    @staticmethod
    def _module_name(path):
        return os.path.basename(path.strip()).partition(".ko")[0].replace("-", "_")

    def uncompressed(self):
        """The ELF vmlinux inside the image: QEMU starts it by PVH, and the guest does not
        spend half of its boot unpacking itself."""
        with open(self.image, "rb") as f:
            image = f.read()
        setup_sectors = image[0x1f1] or 4
        offset = (setup_sectors + 1) * 512 + int.from_bytes(image[0x248:0x24c], "little")
        length = int.from_bytes(image[0x24c:0x250], "little")
        payload = image[offset:offset + length]
        vmlinux = _decompress(payload)
        if vmlinux[:4] != b"\x7fELF":
            raise ValueError(f"{self.image}: no ELF image inside")
        return vmlinux


def _decompress(data):
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return subprocess.run(["zstd", "-dc"], input=data, capture_output=True).stdout
    if data[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(data)      # its own header and trailer
    if data[:3] == b"BZh":
        return bz2.decompress(data[:-4])
    # The kernel build appends the unpacked size, which is no part of the stream.
    return lzma.LZMADecompressor().decompress(data)


def read_module(path):
    """A module's bytes, unpacked: later distributions compress their modules."""
    with open(path, "rb") as f:
        data = f.read()
    return data if path.endswith(".ko") else _decompress(data)


@functools.lru_cache(maxsize=None)
def accelerator():
    """"kvm" if a guest really runs with it, else "tcg". /dev/kvm alone proves nothing: where it
    emulates what a kernel does, as under some hypervisors, it does not get through guest/probe.S."""
    if known := os.environ.get(ACCELERATOR):
        return known
    with tempfile.TemporaryDirectory() as work:
        made, rom = os.path.join(work, "probe.o"), os.path.join(work, "probe.rom")
        subprocess.run(["gcc", "-c", "-o", made, PROBE], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", made, rom], check=True)
        command = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35",
                   "-accel", "kvm", "-cpu", "max", "-m", "16", "-bios", rom,
                   "-device", "isa-debug-exit,iobase=0xf4,iosize=1"]
        qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        timer = threading.Timer(5, qemu.kill)
        timer.start()
        for line in qemu.stderr:
            if b"internal error" in line:       # it stays, paused
                qemu.kill()
        code = qemu.wait()
        timer.cancel()
    return "kvm" if code == 0x10 * 2 + 1 else "tcg"


# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
_RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")


@functools.lru_cache(maxsize=None)
def tsc_khz():
    """Ticks of the host's time stamp counter in a millisecond, which under TCG is the guests' too. One
    that finds that out by its PIT, on a host with other things to do, may be wrong by a factor
    of 80: its seconds are over in no time, and so is whatever it waits for."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_RDTSC)
    entry = ctypes.c_char.from_buffer(code)
    rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(entry))

    def now():
        """(ticks, ns) of the same moment, as nearly as they can be read."""
        looks = []
        for _ in range(20):
            before, ticks, after = time.monotonic_ns(), rdtsc(), time.monotonic_ns()
            looks.append((after - before, ticks, (before + after) / 2))
        return min(looks)[1:]

    ticks, ns = now()
    time.sleep(0.05)
    more_ticks, more_ns = now()
    return round((more_ticks - ticks) * 1e6 / (more_ns - ns))
