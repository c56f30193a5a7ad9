"""The commands of `python -m cluster`.

A cluster in a box: up to eight hosts on one machine, each with its own network card, host name, processes and ssh.

    python -m cluster up --hosts 2 --rate 1gbit

This makes the hosts and opens a shell on the first one. The hosts end when you leave the shell. In a second terminal,
the other commands kill a host, pull its cable, or limit its link.
"""

import argparse
import subprocess
import sys

from cluster import cluster, slurm
from cluster.cluster import Cluster
from cluster.errors import ClusterError

WELCOME = """\
cluster: {hosts} are up, with {rate}. This is a shell on {first}. Leave it by `exit`, and the hosts end.
cluster: try    python -m cluster horovodrun -np 4 -H {slots} python source_code/cifar_base.py --epochs 1 --images 4096
cluster: or     ssh {last} hostname
cluster: in another terminal:    python -m cluster kill {last}    (--help lists the other commands)"""


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status: 2 for bad input or a machine that can have no hosts, otherwise that of the command."""
    args = _parse(arguments)
    try:
        return args.call(args)
    except ClusterError as error:
        for line in str(error).splitlines():
            print(f"cluster: {line}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("cluster: interrupted", file=sys.stderr)
        return 130


def _up(args: argparse.Namespace) -> int:
    with cluster.up(args.hosts, args.rate) as made:
        first = next(iter(made.hosts.values()))
        if args.slurm:
            slurm.start(made)
        if args.command:
            return subprocess.call(first.command(*args.command))
        slots = ",".join(f"{name}:{-(-4 // args.hosts)}" for name in made.hosts)
        rate = f"links of {args.rate}" if args.rate else "links without a limit"
        names = list(made.hosts)
        print(WELCOME.format(hosts=", ".join(names), rate=rate, first=first.name, last=names[-1], slots=slots))
        subprocess.call(first.command("bash", "--norc", "-i"))
    return 0


def _list(args: argparse.Namespace) -> int:
    for name, host in cluster.find(args.cluster).hosts.items():
        print(f"{name}  {cluster.network.address(host.number)}  {host.rate or 'no limit'}")
    return 0


def _run(args: argparse.Namespace) -> int:
    return subprocess.call(_hosts(args)[0].command(*args.command or ["bash", "--norc", "-i"]))


def _change(args: argparse.Namespace) -> int:
    """Kill hosts, or pull or put back their cables. `args.change` is the name of the method."""
    for host in _hosts(args):
        getattr(host, args.change)()
    return 0


def _limit(args: argparse.Namespace) -> int:
    for host in _hosts(args):
        host.limit(None if args.rate == "none" else args.rate)
    return 0


def _start(args: argparse.Namespace) -> int:
    found = cluster.find(args.cluster)
    for name in args.hosts:
        found.start(name)
    return 0


def _down(args: argparse.Namespace) -> int:
    cluster.find(args.cluster).down()
    return 0


def _hosts(args: argparse.Namespace) -> list[cluster.Host]:
    """Return the hosts that a command names, or all. Raises ClusterError if one of them is not up."""
    found: Cluster = cluster.find(args.cluster)
    if wrong := [name for name in args.hosts if name not in found.hosts]:
        raise ClusterError(f"no host {', '.join(wrong)} is up. There is {', '.join(found.hosts)}")
    return [found.hosts[name] for name in args.hosts or found.hosts]


def _horovodrun(args: argparse.Namespace) -> int:
    from cluster import horovod_launch  # It needs the course's packages, and the other commands do not.

    return horovod_launch.run(args.np, horovod_launch.read_hosts(args.hosts), args.command, args.interface)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m cluster", description=__doc__.split("\n\n", 1)[1], allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, call, about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(call=call)
        if call not in (_up, _horovodrun):
            added.add_argument("--cluster", metavar="NAME", help="which one, if several clusters are up")
        return added

    rest = {"nargs": argparse.REMAINDER, "metavar": "COMMAND ..."}
    up = command("up", _up, "make hosts, and open a shell on the first one (or run COMMAND there)")
    up.add_argument("--hosts", type=int, default=2, metavar="N", help="number of hosts, 1 to 8 (default: %(default)s)")
    up.add_argument("--rate", help="limit of each host's link, each way, as 1gbit or 200mbit (default: no limit)")
    up.add_argument("--slurm", action="store_true", help="start Slurm on the hosts, for sbatch, squeue and srun")
    up.add_argument("command", **rest)
    command("list", _list, "list the hosts that are up, with their addresses and limits")
    run = command("run", _run, "run COMMAND on a host (default: a shell)")
    run.add_argument("hosts", nargs=1, metavar="HOST")
    run.add_argument("command", **rest)
    for change, about in (
        ("kill", "end all processes of these hosts at once, as a power failure does"),
        ("cut", "pull the cables of these hosts"),
        ("mend", "put the cables of these hosts back"),
    ):
        added = command(change, _change, about)
        added.set_defaults(change=change)
        added.add_argument("hosts", nargs="+", metavar="HOST")
    start = command("start", _start, "start hosts again that were killed")
    start.add_argument("hosts", nargs="+", metavar="HOST", choices=cluster.NAMES)
    limit = command("limit", _limit, "limit the links of hosts (default: of all)")
    limit.add_argument("rate", help="as 200mbit, or none")
    limit.add_argument("hosts", nargs="*", metavar="HOST")
    command("down", _down, "end all hosts")
    about = "run a program on several hosts: check the hosts, start horovodrun, and say which host failed"
    horovodrun = command("horovodrun", _horovodrun, about)
    horovodrun.add_argument("-np", type=int, required=True, metavar="N", help="number of workers")
    horovodrun.add_argument("-H", dest="hosts", required=True, help="hosts and their workers, as alpha:2,beta:2")
    horovodrun.add_argument("--interface", default="eth0", help="network card of all hosts (default: %(default)s)")
    horovodrun.add_argument("command", **rest)
    args = parser.parse_args(arguments)
    if getattr(args, "command", None) and args.command[0] == "--":
        args.command = args.command[1:]
    return args
