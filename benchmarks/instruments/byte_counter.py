"""Sends tensors from process to process and counts the bytes twice: in the program, and in the kernel.

The kernel counts per TCP connection. Only this process's own connections are read, so traffic of others is not counted.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

BYTES_RECEIVED = 128  # offset in bytes of the 64-bit count in struct tcp_info (linux/tcp.h, Linux 4.1 and later)


class Wire:
    """Sends and receives messages of torch.distributed. `sent` and `received` count their bytes."""

    def __init__(self):
        self.sent = self.received = 0

    def send(self, tensor: Tensor, to: int) -> dist.Work:
        """Begin to send a tensor. Call `wait()` on the result before the tensor changes."""
        self.sent += tensor.nbytes
        return dist.isend(tensor, to)

    def receive(self, like: Tensor, sender: int) -> Tensor:
        """Receive a tensor with the shape and type of `like`. `like` itself does not change."""
        tensor = torch.empty_like(like, memory_format=torch.contiguous_format)
        dist.recv(tensor, sender)
        self.received += tensor.nbytes
        return tensor


def kernel_received() -> int | None:
    """The bytes that this process's TCP connections have received so far.

    The result is None if the system does not count them, or if there is no connection.
    """
    counts = [_count(connection) for connection in _connections()]
    return None if None in counts or not counts else sum(counts)


def _connections() -> Iterator[socket.socket]:
    folder = Path("/proc/self/fd")
    for path in list(folder.iterdir()) if folder.exists() else ():
        with contextlib.suppress(OSError):  # the descriptor may have been closed in the meantime, or may be no socket
            if str(path.readlink()).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(path.name))) as connection:
                    if connection.type == socket.SOCK_STREAM and connection.family != socket.AF_UNIX:
                        yield connection


def _count(connection: socket.socket) -> int | None:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if len(info) < BYTES_RECEIVED + 8:
        return None
    return struct.unpack_from("<Q", info, BYTES_RECEIVED)[0]
