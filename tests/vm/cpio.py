# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An initramfs archive (cpio "newc"), written without needing root or a staging tree."""

import os
import stat

# A guest is usrmerged as Debian is: /lib/x resolves to /usr/lib/x on both sides.
MERGED = ("bin", "sbin", "lib", "lib64")


class Archive:
    """Collects entries; later ones replace earlier ones of the same path."""

    def __init__(self):
        self._entries = {}

    def add(self, path, data=b"", mode=stat.S_IFREG | 0o644):
        path = self._merged(path)
        parent = os.path.dirname(path)
        if parent and parent not in self._entries:
            self.directory(parent)
        self._entries[path] = (mode, data)

    def directory(self, path):
        self.add(path, mode=stat.S_IFDIR | 0o755)

    def symlink(self, path, target):
        self.add(path, target.encode(), stat.S_IFLNK | 0o777)

    def copy(self, source, path=None, executable=None):
        """Add host file @source (symlinks followed) at @path (default: the same place)."""
        with open(source, "rb") as f:
            data = f.read()
            if executable is None:
                executable = os.fstat(f.fileno()).st_mode & 0o100
        self.add(path or source, data, stat.S_IFREG | (0o755 if executable else 0o644))

    def __contains__(self, path):
        return self._merged(path) in self._entries

    def bytes(self):
        out = []
        for inode, (path, (mode, data)) in enumerate(self._entries.items(), 1):
            out.append(self._record(inode, path, mode, data))
        out.append(self._record(0, "TRAILER!!!", 0, b""))
        # 512: a second archive may be appended, the kernel skips the zeros between.
        return self._padded(b"".join(out), 512)

    @staticmethod
    def _merged(path):
        path = path.strip("/")
        first = path.split("/", 1)[0]
        return "usr/" + path if first in MERGED and "/" in path else path

    @staticmethod
    def _padded(data, to):
        return data + b"\0" * (-len(data) % to)

    @classmethod
    def _record(cls, inode, path, mode, data):
        name = path.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        header = b"070701" + b"".join(b"%08X" % f for f in fields)
        return cls._padded(header + name, 4) + cls._padded(data, 4)
