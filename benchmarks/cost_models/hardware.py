"""How fast bytes move: published bandwidths of memories and links, each in one direction, with their sources."""

from typing import NamedTuple

GIGABIT = 1e9 / 8  # bytes per second


class Link(NamedTuple):
    """A memory or a link. `bytes_per_s` is its nominal bandwidth in one direction."""

    name: str
    bytes_per_s: float
    source: str


H100 = "NVIDIA H100 Tensor Core GPU datasheet, SXM form"
LINKS = {
    "memory": Link("a GPU's own memory", 3.35e12, f"{H100}: 3.35 TB/s"),
    "nvlink": Link("NVLink between GPUs", 450e9, f"{H100}: 900 GB/s in both directions together"),
    "pcie": Link("PCIe 5.0, 16 lanes", 64e9, f"{H100}: 128 GB/s in both directions together"),
    "infiniband": Link(
        "InfiniBand NDR", 400 * GIGABIT, "InfiniBand Trade Association, roadmap: 400 Gbit/s for 4 lanes"
    ),
    "100gbe": Link("100-gigabit Ethernet", 100 * GIGABIT, "IEEE 802.3ba-2010"),
    "10gbe": Link("10-gigabit Ethernet", 10 * GIGABIT, "IEEE 802.3ae-2002"),
    "1gbe": Link("1-gigabit Ethernet", GIGABIT, "IEEE 802.3ab-1999"),
}
