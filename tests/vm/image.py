# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a guest boots: the unpacked kernel and a base initramfs, both cached, and a second
archive with what was just built, appended for every run.

The cache lies outside the tree (REPATH_CACHE, default ~/.cache/repath), keyed by the kernel's
release and by a hash of everything that goes in: a changed tool or module makes a new image.
"""

import contextlib
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import cpio
import kernel as kernels

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
CACHE = os.environ.get("REPATH_CACHE") or os.path.expanduser("~/.cache/repath")

LIBRARIES = "usr/lib/x86_64-linux-gnu"
TOOLS = """dash busybox ip rdma tc ethtool strace ping timeout stdbuf taskset nice
    ibv_devices ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong ibv_uc_pingpong ibv_srq_pingpong
    ibv_xsrq_pingpong ibv_asyncwatch rping ucmatose ib_write_bw ib_write_lat ib_send_bw
    ib_send_lat ib_read_bw ib_read_lat ib_atomic_bw ib_atomic_lat""".split()
# Loaded with dlopen(), so ldd does not name them.
PLUGINS = [f"/{LIBRARIES}/{name}" for name in
           ("libibverbs/librxe-rdmav34.so", "libibverbs.so.1", "librdmacm.so.1", "libgcc_s.so.1")]
PLUGINS += ["/usr/libexec/coreutils/libstdbuf.so"]
MODULES = """virtio_pci virtio_net virtio_console virtio_rng e1000e rdma_rxe rdma_ucm ib_umad
    ib_uverbs ib_cm crc32_generic sch_netem veth tun dummy bridge""".split()
ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
}


def find_tool(name):
    path = shutil.which(name, path="/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin")
    if not path:
        raise FileNotFoundError(f"{name} is not installed (scripts/setup installs it)")
    return os.path.realpath(path)


def libraries_of(files):
    """The shared libraries that @files need, by ldd, as the loader names them."""
    result = subprocess.run(["ldd", *files], capture_output=True, text=True)
    return sorted(set(re.findall(r"(?:=> |^\s+)(/\S+) \(0x", result.stdout, re.M)))


def _fill(archive, kernel, work):
    for directory in ("dev", "proc", "sys", "tmp", "run", "root", "mnt", "var/tmp"):
        archive.directory(directory)
    for name in cpio.MERGED:
        archive.directory("usr/" + name)
        archive.symlink(name, "usr/" + name)
    for path, text in ETC.items():
        archive.add(path, text.encode())
    for applet in subprocess.run(["busybox", "--list"], capture_output=True, text=True,
                                 check=True).stdout.split():
        archive.symlink("usr/bin/" + applet, "busybox")
    tools = {name: find_tool(name) for name in TOOLS}
    for name, path in tools.items():
        archive.copy(path, "usr/bin/" + name, executable=True)
    archive.symlink("usr/bin/sh", "dash")   # busybox's shell would prefer its own applets
    archive.symlink("usr/sbin/modprobe", "../bin/busybox")
    for path in PLUGINS + libraries_of(list(tools.values()) + PLUGINS):
        archive.copy(path)
    archive.copy("/etc/libibverbs.d/rxe.driver")
    guestd = os.path.join(work, "guestd")
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-o", guestd,
                    os.path.join(HERE, "guest/guestd.c")], check=True)
    archive.copy(guestd, "usr/bin/guestd")
    archive.copy(os.path.join(HERE, "guest/init"), "init", executable=True)
    _fill_modules(archive, kernel, work)


def _fill_modules(archive, kernel, work):
    base = os.path.join("lib/modules", kernel.release)
    staged = os.path.join(work, base)
    os.makedirs(staged)
    for name in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
        shutil.copy(os.path.join(kernel.modules, name), staged)
    for path in kernel.module_files(MODULES):
        plain = re.sub(r"\.ko\..*$", ".ko", path)
        target = os.path.join(staged, plain)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as f:
            f.write(kernels.read_module(os.path.join(kernel.modules, path)))
    subprocess.run(["depmod", "-b", work, kernel.release], check=True)
    for directory, _, files in os.walk(staged):
        for name in files:
            path = os.path.join(directory, name)
            archive.copy(path, os.path.relpath(path, work), executable=False)


def cached(name, make):
    """CACHE/@name: if it is not there, make(path, directory for its work) makes it first.
    Two at once do no harm to each other."""
    path = os.path.join(CACHE, name)
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        print(f"bed: making {name} ...", flush=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as work:
            made = os.path.join(work, "made")
            make(made, work)
            try:
                os.rename(made, path)
            except OSError:
                if not os.path.exists(path):    # not just made by somebody else
                    raise
        with contextlib.suppress(FileNotFoundError):    # another run does the same
            _forget_old(os.path.dirname(path))
    os.utime(path)
    return path


def _forget_old(directory, keep=6):
    """Remove all but those last used."""
    entries = sorted(os.scandir(directory), key=lambda entry: entry.stat().st_mtime)
    for entry in entries[:-keep]:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            os.unlink(entry)


def stamp(paths):
    """A digest of names, sizes and times of @paths: cheap, and enough to see a new package."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        st = os.stat(path)
        digest.update(f"{path} {st.st_size} {st.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def extract(package, folder, target):
    """Unpack the files of one @folder of a source @package (a tar archive) into @target."""
    with tarfile.open(package) as tar:
        inside = False
        for member in tar:
            if os.path.dirname(member.name) == folder and member.isfile():
                inside = True
                member.name = os.path.basename(member.name)
                tar.extract(member, target)
            elif inside and not member.name.startswith(folder):
                break       # the rest of a kernel's source is long


def vmlinux(kernel):
    """The kernel to start: unpacked if that can be done, else the image as it is. KASAN does not
    survive the start by PVH."""
    if kernel.debug:
        return kernel.image

    def make(made, _):
        with open(made, "wb") as f:
            f.write(kernel.uncompressed())
    try:
        return cached(f"kernel/{kernel.release}-{stamp([kernel.image])}/vmlinux", make)
    except (ValueError, EOFError, OSError, kernels.lzma.LZMAError):
        return kernel.image


def base(kernel):
    """The base initramfs for @kernel."""
    inputs = [find_tool(name) for name in TOOLS] + PLUGINS
    inputs += [os.path.join(kernel.modules, f) for f in kernel.module_files(MODULES)]
    inputs += [os.path.join(HERE, f) for f in ("guest/guestd.c", "guest/init", "image.py", "cpio.py")]

    def make(made, work):
        archive = cpio.Archive()
        _fill(archive, kernel, work)
        with open(made, "wb") as f:
            f.write(archive.bytes())
    return cached(f"image/{kernel.release}-{stamp(inputs)}.cpio", make)


def built_files(kernel):
    """What the build left for the guests, as {path in the guest: path here}:

        build/RELEASE/*.ko                  -> /lib/repath/
        build/libibrepath.so                -> /usr/lib/x86_64-linux-gnu/
        build/repath, build/apps/*          -> /usr/bin/
    """
    build = os.path.join(TOP, "build")
    files = {}
    for path in glob.glob(os.path.join(build, kernel.release, "*.ko")):
        files["usr/lib/repath/" + os.path.basename(path)] = path
    for path in glob.glob(os.path.join(build, "libibrepath.so*")):
        files[f"{LIBRARIES}/{os.path.basename(path)}"] = path
    for path in [os.path.join(build, "repath"), *glob.glob(os.path.join(build, "apps", "*"))]:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            files["usr/bin/" + os.path.basename(path)] = path
    return files


def expect_built(kernel, others=(), target="guest-files"):
    """Exits with what to do if something is missing that goes into every guest, or of @others in build/."""
    wanted = [os.path.join(kernel.release, name) for name in ("ib_repath.ko", "ib_vhca.ko")]
    wanted += ["libibrepath.so", "libosmrepath.so", "repath", "apps", os.path.join("vfabric", "vfabric")]
    missing = [name for name in [*wanted, *others] if not os.path.exists(os.path.join(TOP, "build", name))]
    if missing:
        sys.exit(f"{sys.argv[0]}: build/{missing[0]} is not there: `make {target}` first")


def overlay(kernel, extra):
    """The second archive, as bytes: what was built, @extra files, and their libraries."""
    archive = cpio.Archive()
    files = {**built_files(kernel), **extra}
    for target, source in files.items():
        if source.endswith(".ko"):      # debug information is most of it, and slow to unpack
            with tempfile.NamedTemporaryFile(suffix=".ko") as stripped:
                subprocess.run(["strip", "-g", "-o", stripped.name, source], check=True)
                archive.copy(stripped.name, target, executable=False)
        else:
            archive.copy(source, target)
    programs = [p for t, p in files.items() if t.startswith(("usr/bin/", LIBRARIES))]
    if programs:
        for library in libraries_of(programs):
            archive.copy(library)
    return archive.bytes()
