"""A cluster of hosts on this machine."""

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cifar.support.horovodrun import programs_path
from cluster import namespaces, network, ssh
from cluster.errors import ClusterError
from cluster.namespaces import Namespaces

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2"}
TOOLS |= {"ssh-keygen": "openssh-client", "ssh": "openssh-client", "sshd": "openssh-server"}
END_SECONDS = 10
COUNT = itertools.count()  # One program may make several clusters.


@dataclass(frozen=True)
class Host:
    """A host: its name, its namespaces, and those of the switch to which it is connected."""

    name: str
    namespaces: Namespaces
    switch: Namespaces

    @property
    def number(self) -> int:
        """The number of this host. The first host has number 1."""
        return NAMES.index(self.name) + 1

    @property
    def rate(self) -> str:
        """The limit of this host's link, as `1gbit`, or an empty text if it has none."""
        return self.switch.run("cat", f"{ssh.FOLDER}/{self.name}/rate")

    def command(self, *command: str | Path) -> list[str]:
        """Return the command line that runs a command on this host as the user, in the folder of this process."""
        path = f"{ssh.PROGRAMS}:{programs_path()}:/usr/sbin"
        env = ["env", f"--chdir={Path.cwd()}", f"PATH={path}", f"SLURM_CONF={ssh.FOLDER}/slurm.conf"]
        return self.namespaces.enter(*as_user(self.namespaces), *env, *command)

    def run(self, *command: str | Path, **options) -> subprocess.CompletedProcess:
        """Run a command on this host, and wait until it ends. The options are those of `subprocess.run`."""
        return subprocess.run(self.command(*command), check=False, **options)

    def kill(self) -> None:
        """End all processes of this host at once, as a power failure does."""
        self.namespaces.kill()

    def cut(self) -> None:
        """Pull the cable of this host."""
        network.plug(self.switch, self.name, "down")

    def mend(self) -> None:
        """Put the cable of this host back."""
        network.plug(self.switch, self.name, "up")

    def limit(self, rate: str | None) -> None:
        """Let this host send and receive at most `rate`, as `200mbit`. None takes a limit away."""
        if rate:
            network.limit(self.switch, self.namespaces, self.name, rate)
        else:
            network.unlimit(self.switch, self.namespaces, self.name)
        ssh.write(self.switch, f"{ssh.FOLDER}/{self.name}/rate", rate or "")


def as_user(host: Namespaces) -> list[str]:
    """Return the start of a command line that gives up the rights of root that an ordinary user has in namespaces."""
    if not host.in_user_namespace:
        return []
    return ["unshare", "--user", f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}", "--"]


class Cluster:
    """Hosts that are connected by a switch. `up` makes a cluster, and `find` finds one that another program made."""

    def __init__(self, name: str, switch: Namespaces, hosts: dict[str, Namespaces]):
        self.name, self.switch = name, switch
        self.hosts = {host: Host(host, made, switch) for host, made in sorted(hosts.items(), key=_place)}
        self._holders: list[subprocess.Popen] = []

    def start(self, name: str) -> Host:
        """Start a host, or start it again after it was killed. Raises ClusterError if it is running."""
        if name in self.hosts and self.hosts[name].namespaces.alive():
            raise ClusterError(f"{name} is running already")
        known = self.switch.run("ls", ssh.FOLDER).split()
        if name not in known:
            there = ", ".join(host for host in NAMES if host in known)
            raise ClusterError(f"this cluster has no host {name}. It has {there}")
        made, holder = namespaces.create(name, self.name, within=self.switch)
        self._holders.append(holder)
        host = Host(name, made, self.switch)
        try:
            self._prepare(host)
        except BaseException:
            made.kill()
            raise
        self.hosts[name] = host
        return host

    def _prepare(self, host: Host) -> None:
        """Give a new host its list of hosts, its cable and its ssh server."""
        made = host.namespaces
        made.run("mount", "--bind", f"{ssh.FOLDER}/hosts", "/etc/hosts")
        network.plug_in(self.switch, made, host.name, host.number)
        if made.in_user_namespace:  # An ordinary user may then listen on ssh's port.
            made.run("tee", "/proc/sys/net/ipv4/ip_unprivileged_port_start", text="0")
        ssh.serve(made, host.name, host.number, as_user(made))
        if rate := host.rate:
            host.limit(rate)

    def down(self) -> None:
        """End all processes of all hosts. Nothing of the cluster is left."""
        self.switch.kill()
        for holder in self._holders:
            holder.communicate(timeout=END_SECONDS)
        self._holders = []


def _place(item: tuple[str, Namespaces]) -> int:
    return NAMES.index(item[0])


@contextlib.contextmanager
def up(size: int = 2, rate: str | None = None) -> Iterator[Cluster]:
    """Make a cluster of `size` hosts. It ends with the context, and also if this process is killed.

    `rate` limits each host's link in each direction, as `1gbit`. None is no limit. Raises ClusterError if this machine
    cannot do it.
    """
    check_machine(size, rate)
    name = f"cluster-{os.getpid()}-{next(COUNT)}"
    switch, holder = namespaces.create(network.SWITCH, name)
    cluster = Cluster(name, switch, {})
    cluster._holders.append(holder)
    try:
        _furnish(switch, NAMES[:size], rate)
        for host in NAMES[:size]:
            cluster.start(host)
        yield cluster
    finally:
        cluster.down()


def _furnish(switch: Namespaces, names: tuple[str, ...], rate: str | None) -> None:
    """Make what all hosts share: a `/run` in memory, the list of addresses, the keys, the switch."""
    switch.run("mount", "-t", "tmpfs", "-o", "mode=755", "cluster", "/run")
    switch.run("mkdir", "-p", "/run/sshd")  # The ssh server of Debian needs it.
    listed = [f"{network.address(number)} {name}\n" for number, name in enumerate(names, start=1)]
    ssh.write(switch, f"{ssh.FOLDER}/hosts", "127.0.0.1 localhost\n" + "".join(listed))
    for name in names:
        ssh.write(switch, f"{ssh.FOLDER}/{name}/rate", rate or "")
    ssh.make_keys(switch, list(names))
    network.make_switch(switch)


def find(name: str | None = None) -> Cluster:
    """Return the cluster that is up. Raises ClusterError if there is none, or several and no `name`."""
    there = {name: hosts for name, hosts in namespaces.running().items() if network.SWITCH in hosts}
    if not there:
        made = "Make one: python -m cluster up --hosts 2. If you are on one of its hosts, use a terminal outside"
        raise ClusterError(f"no cluster is up here. {made}")
    if name is None and len(there) > 1:
        raise ClusterError(f"several clusters are up: choose one by --cluster {' or '.join(sorted(there))}")
    if name is not None and name not in there:
        raise ClusterError(f"no cluster {name} is up. There is {', '.join(sorted(there))}")
    hosts = there[name or next(iter(there))]
    return Cluster(name or next(iter(there)), hosts.pop(network.SWITCH), hosts)


def check_machine(size: int, rate: str | None) -> None:
    """Raises ClusterError, with what to do, if this machine cannot make such a cluster."""
    if not 1 <= size <= len(NAMES):
        raise ClusterError(f"--hosts {size}: write a number from 1 to {len(NAMES)}")
    if rate:
        network.bits_per_second(rate)
    namespaces.check_tools(TOOLS)
    ssh.check_user()
