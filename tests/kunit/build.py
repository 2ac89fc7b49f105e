# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Builds KUnit's core and the module's suites for a kernel that has CONFIG_KUNIT off.

The core is taken from the distribution's own source package, never stored here, and kept built in
the cache. The suites are NAME_test.c in kmod/tests, and in tests/vhca for the software HCA; each
becomes NAME_test.ko and says in comments

    /* kunit-cases: 7 */            how many cases it has, over all its suites
    /* kunit-objs: ../track.o */    optional: objects of the module to link in

It may also include "../track.c" itself, to reach what is static there.
"""

import glob
import os
import re
import shutil
import subprocess

import image

DIRECTORIES = ("kmod/tests", "tests/vhca")
HERE = os.path.dirname(os.path.abspath(__file__))


def _make(kdir, directory, *arguments):
    result = subprocess.run(["make", "-s", "-C", kdir, f"M={directory}", *arguments, "modules"],
                            capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"building in {directory} failed:\n{result.stdout}{result.stderr}")


def _kdir(kernel):
    return os.environ.get("KDIR") or os.path.join(kernel.modules, "build")


def _core_source(kernel, made):
    """Put lib/kunit of @kernel's source into the directory @made: from beside an unpacked kernel,
    else from the source package that is installed. Returns what a stamp is to be taken of."""
    source = "linux-source-" + ".".join(kernel.release.split(".")[:2])
    beside = os.path.join(kernel.root, "usr/src", source, "lib/kunit")
    if os.path.isdir(beside):
        if made:
            shutil.copytree(beside, made, dirs_exist_ok=True)
        return os.path.join(beside, "test.c")
    package = next(iter(glob.glob(f"/usr/src/{source}.tar.*")), None)
    if not package:
        raise FileNotFoundError(f"/usr/src/{source}.tar.xz: install {source}")
    if made:
        image.extract(package, f"{source}/lib/kunit", made)
    return package


def _core_objects(directory):
    """All of it but what is a test of it, needs another option, or functions that are not
    exported."""
    names = [os.path.basename(path)[:-len(".c")] for path in glob.glob(directory + "/*.c")]
    return sorted(name for name in names
                  if name == "test" or not re.search(r"[-_]test$|^debugfs$|^user_alloc$", name))


def core(kernel):
    """The directory with kunit.ko and Module.symvers for @kernel."""
    headers = [os.path.join(HERE, name) for name in ("suite_compat.h", "core_compat.h")]
    stamp = image.stamp([_core_source(kernel, None), _kdir(kernel) + "/Makefile", *headers,
                         __file__])

    def make(made, _):
        os.makedirs(made)
        _core_source(kernel, made)
        for header in headers:
            shutil.copy(header, made)
        objects = " ".join(f"{name}.o" for name in _core_objects(made))
        with open(os.path.join(made, "Makefile"), "w") as f:
            f.write(f"obj-m := kunit.o\nkunit-y := {objects}\n"
                    "ccflags-y := -include $(src)/core_compat.h\n"
                    "CFLAGS_test.o := -DCORE_IS_TEST_C\n")
        _make(_kdir(kernel), made)
    return image.cached(f"kunit/{kernel.release}-{stamp}", make)


class Suite:
    """One NAME_test.c."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)[:-len(".c")]
        self.directory = os.path.relpath(os.path.dirname(path), image.TOP)
        with open(path) as f:
            text = f.read()
        cases = re.search(r"/\* kunit-cases: (\d+) \*/", text)
        objects = re.search(r"/\* kunit-objs: (.*?) \*/", text)
        self.fuzzes = '#include "fuzz.h"' in text
        self.cases = int(cases[1]) if cases else None
        self.objects = [os.path.normpath(os.path.join(self.directory, name))
                        for name in (objects[1].split() if objects else ())]

    def parameters(self):
        """For its insmod."""
        if not self.fuzzes:
            return ""
        return " ".join(f"{name}={os.environ['FUZZ_' + name.upper()]}"
                        for name in ("rounds", "seed") if os.environ.get("FUZZ_" + name.upper()))


def suites():
    """All suites in the tree."""
    return [Suite(path) for directory in DIRECTORIES
            for path in sorted(glob.glob(f"{image.TOP}/{directory}/*_test.c"))]


def _kbuild(found):
    lines = ["ccflags-y := -I$(src)/include -I$(src)/kmod -DKUNIT_SUITE"]
    if os.path.exists(image.TOP + "/kmod/compat/Kbuild.features"):
        lines.append("include $(src)/kmod/compat/Kbuild.features")
    for suite in found:
        source = f"{suite.directory}/{suite.name}.o"
        lines.append(f"CFLAGS_{source} := -include $(src)/suite_compat.h")
        if suite.objects:
            # A module can not be called as one of its objects in the same directory is.
            lines += [f"obj-m += {suite.name}.o",
                      f"{suite.name}-y := {source} " + " ".join(suite.objects)]
        else:
            lines.append(f"obj-m += {source}")
    return "\n".join(lines) + "\n"


def build(kernel, found):
    """Builds the suites @found: {suite name: path of its module}."""
    directory = os.path.join(image.TOP, "build", kernel.release, "kunit")
    os.makedirs(directory, exist_ok=True)
    subprocess.run(["cp", "-rpu", "--parents", "kmod", "include", "tests/vhca", directory],
                   cwd=image.TOP, check=True)
    shutil.copy2(os.path.join(HERE, "suite_compat.h"), directory)
    kbuild = os.path.join(directory, "Kbuild")
    if not os.path.exists(kbuild) or open(kbuild).read() != _kbuild(found):
        with open(kbuild, "w") as f:
            f.write(_kbuild(found))
    _make(_kdir(kernel), directory,
          "KBUILD_EXTRA_SYMBOLS=" + os.path.join(core(kernel), "Module.symvers"))
    return {suite.name: os.path.join(directory, "" if suite.objects else suite.directory,
                                     suite.name + ".ko") for suite in found}
