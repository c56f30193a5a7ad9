"""Sends tensors from process to process and counts the bytes twice: in the program, and in the kernel.

The kernel's count is that of this process's own TCP connections, so it includes nothing that others send.
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

BYTES_RECEIVED = 128  # where Linux (4.1 and later) keeps it in struct tcp_info, linux/tcp.h; 64 bits


class Wire:
    """Point-to-point messages of torch.distributed; `sent` and `received` count their bytes."""

    def __init__(self):
        self.sent = self.received = 0

    def send(self, tensor: Tensor, to: int) -> dist.Work:
        """Begin to send; wait() for the answer before the tensor may change."""
        self.sent += tensor.nbytes
        return dist.isend(tensor, to)

    def receive(self, like: Tensor, sender: int) -> Tensor:
        """A tensor of the shape and type of `like`, which stays as it is."""
        tensor = torch.empty_like(like, memory_format=torch.contiguous_format)
        dist.recv(tensor, sender)
        self.received += tensor.nbytes
        return tensor


def kernel_received() -> int | None:
    """Bytes that this process's TCP connections have received so far; None where the system does not tell."""
    counts = [_count(connection) for connection in _connections()]
    return None if None in counts or not counts else sum(counts)


def _connections() -> Iterator[socket.socket]:
    folder = Path("/proc/self/fd")
    for path in list(folder.iterdir()) if folder.exists() else ():
        with contextlib.suppress(OSError):  # closed in the meantime, or no socket
            if str(path.readlink()).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(path.name))) as connection:
                    if connection.type == socket.SOCK_STREAM and connection.family != socket.AF_UNIX:
                        yield connection


def _count(connection: socket.socket) -> int | None:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if len(info) < BYTES_RECEIVED + 8:
        return None
    return struct.unpack_from("<Q", info, BYTES_RECEIVED)[0]
