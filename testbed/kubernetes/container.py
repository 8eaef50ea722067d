"""Becomes the parent of a container: python container.py SCRIPT

The shell script runs as the first process of new namespaces of processes, mounts and host name, and
dies with this process, which ends as it did. (`unshare` of util-linux 2.38 does not: it exits with 1
when its child was killed.)
"""

import ctypes
import os
import signal
import sys

NEW_MOUNTS, NEW_HOST_NAME, NEW_PROCESSES = 0x00020000, 0x04000000, 0x20000000
DIE_WITH_PARENT = 1
RECURSIVE, PRIVATE = 0x4000, 0x40000

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    if result != 0:
        raise SystemExit(f"{what}: {os.strerror(ctypes.get_errno())}")


check(libc.unshare(NEW_MOUNTS | NEW_HOST_NAME | NEW_PROCESSES), "unshare")
child = os.fork()
if child == 0:
    check(libc.prctl(DIE_WITH_PARENT, signal.SIGKILL), "prctl")
    check(libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None), "mount /")
    check(libc.mount(b"proc", b"/proc", b"proc", 0, None), "mount /proc")
    os.execv("/bin/sh", ["sh", "-c", sys.argv[1]])
for descriptor in (0, 1, 2):
    os.close(descriptor)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
_, status = os.waitpid(child, 0)
code = os.waitstatus_to_exitcode(status)
if code < 0:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)
os._exit(code)
