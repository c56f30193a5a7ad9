"""Connects hosts by a switch, and limits their links. The tools are iproute2's `ip` and `tc`.

The switch is a bridge in the cluster's own network namespace. It has no way to the machine's network. Each host has one
cable to it: a pair of virtual network cards, `eth0` in the host and `port-NAME` at the switch.
"""

import re

from cluster.errors import ClusterError
from cluster.namespaces import Namespaces

SWITCH = "switch"
CARD = "eth0"  # Horovod wants the same name on all hosts.
SUBNET = "10.77.0"  # The addresses exist only inside the cluster.
MTU = 1500  # bytes
SMALLEST_BURST = 64 * 1024  # bytes; the kernel hands the card up to 64 KiB at once
TICK = 0.004  # seconds; the kernel may look at a limited link only so often
LATENCY = "50ms"  # A packet that has waited this long for a limited link is dropped.
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def bits_per_second(rate: str) -> float:
    """Return a rate such as `200mbit` in bits per second. Raises ClusterError if it cannot be read."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)", rate)
    if not found or float(found[1]) == 0:
        raise ClusterError(f"the rate {rate}: write a number above 0 and kbit, mbit or gbit, as 200mbit")
    return float(found[1]) * UNITS[found[2]]


def address(number: int) -> str:
    """Return the address of host `number`. The first host is number 1."""
    return f"{SUBNET}.{number}"


def card_address(number: int) -> str:
    """Return the address of the network card of host `number`. A host that is started again has the same card."""
    return f"02:00:00:00:00:{number:02x}"


def make_switch(switch: Namespaces) -> None:
    """Make the switch."""
    switch.run("ip", "link", "add", SWITCH, "type", "bridge")
    switch.run("ip", "link", "set", SWITCH, "up")


def plug_in(switch: Namespaces, host: Namespaces, name: str, number: int) -> None:
    """Connect a host to the switch, and give its card an address."""
    port = port_of(name)
    if f"{port}@" in switch.run("ip", "-brief", "link"):  # The cable of a killed host goes away a little later.
        switch.run("ip", "link", "delete", port)
    here = [port, "mtu", str(MTU), "type", "veth"]
    there = ["peer", "name", CARD, "mtu", str(MTU), "address", card_address(number), "netns", str(host.process.pid)]
    # The host's process is named by its number outside of the cluster, so `ip` runs with the outside list of processes.
    switch.run("ip", "link", "add", *here, *there, kinds=("--net",))
    switch.run("ip", "link", "set", port, "master", SWITCH, "up")
    host.run("ip", "address", "add", f"{address(number)}/24", "dev", CARD)
    host.run("ip", "link", "set", CARD, "up")
    host.run("ip", "link", "set", "lo", "up")


def port_of(name: str) -> str:
    """Return the name of the switch's end of a host's cable."""
    return f"port-{name}"


def limit(switch: Namespaces, host: Namespaces, name: str, rate: str) -> None:
    """Let a host send and receive at most `rate`, in each direction. An older limit is replaced."""
    burst = max(SMALLEST_BURST, int(bits_per_second(rate) / 8 * TICK))
    queue = ["root", "tbf", "rate", rate, "burst", str(burst), "latency", LATENCY]
    host.run("tc", "qdisc", "replace", "dev", CARD, *queue)
    switch.run("tc", "qdisc", "replace", "dev", port_of(name), *queue)


def unlimit(switch: Namespaces, host: Namespaces, name: str) -> None:
    """Take a limit away."""
    host.run("tc", "qdisc", "replace", "dev", CARD, "root", "noqueue")
    switch.run("tc", "qdisc", "replace", "dev", port_of(name), "root", "noqueue")


def plug(switch: Namespaces, name: str, state: str) -> None:
    """Pull the cable of a host (state `down`), or put it back (state `up`)."""
    switch.run("ip", "link", "set", port_of(name), state)
