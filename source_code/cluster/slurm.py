"""Starts Slurm on the hosts of a cluster, so that a batch script can be tried before it goes to a real cluster.

Slurm is the scheduler of most large clusters. Its controller runs on the first host, and a daemon on each host. They
trust each other by munge, whose one daemon serves all hosts here, because they share the folder with its socket.
"""

import getpass
import os
import time
from pathlib import Path

from cluster import namespaces, ssh
from cluster.cluster import Cluster, Host
from cluster.errors import ClusterError

CONFIG = f"{ssh.FOLDER}/slurm.conf"
TOOLS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-wlm", "munged": "munge"}
READY_SECONDS = 30

# Real clusters also account for jobs, and hold each job to its memory and cores. A cluster in a box does neither.
TEMPLATE = f"""\
ClusterName=box
SlurmctldHost={{first}}
SlurmUser={{user}}
SlurmdUser={{user}}
AuthInfo=socket={ssh.FOLDER}/munge.socket
StateSaveLocation={ssh.FOLDER}/slurmctld
SlurmctldPidFile={ssh.FOLDER}/slurmctld.pid
SlurmctldLogFile={ssh.FOLDER}/slurmctld.log
SlurmdSpoolDir={ssh.FOLDER}/%n/slurmd
SlurmdPidFile={ssh.FOLDER}/%n/slurmd.pid
SlurmdLogFile={ssh.FOLDER}/%n/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=30
NodeName={{names}} CPUs={{cores}} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def start(cluster: Cluster) -> None:
    """Start Slurm, and wait until all hosts can take jobs. Raises ClusterError if it is missing or does not start."""
    namespaces.check_tools(TOOLS)
    first, *_ = hosts = list(cluster.hosts.values())
    text = TEMPLATE.format(
        first=first.name, user=getpass.getuser(), names=",".join(cluster.hosts), cores=os.cpu_count()
    )
    ssh.write(cluster.switch, CONFIG, text)
    _munge(first)
    cluster.switch.run(
        "mkdir", "-p", f"{ssh.FOLDER}/slurmctld", *(f"{ssh.FOLDER}/{name}/slurmd" for name in cluster.hosts)
    )
    _run(first, "slurmctld")
    for host in hosts:
        _run(host, "slurmd", "-N", host.name)
    _wait(first, len(hosts))


def _munge(host: Host) -> None:
    """Start munge, with a key that lives as long as the cluster."""
    key = f"{ssh.FOLDER}/munge.key"
    _run(host, "sh", "-c", f"umask 077; head -c 1024 /dev/urandom > {key}")
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    _run(host, "munged", "--force", *(f"--{option}={ssh.FOLDER}/munge.{end}" for option, end in files.items()))


def _run(host: Host, *command: str | Path) -> None:
    done = host.run(*command, capture_output=True, text=True, timeout=READY_SECONDS)
    if done.returncode != 0:
        raise ClusterError(f"{command[0]} did not start on {host.name}: {done.stderr.strip()}")


def _wait(host: Host, count: int) -> None:
    """Wait until so many hosts are idle, which means that they can take jobs."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        asked = ("sinfo", "--noheader", "--Node", "--format", "%T")
        told = host.run(*asked, capture_output=True, text=True, timeout=READY_SECONDS).stdout
        if told.split() == ["idle"] * count:
            return
        time.sleep(0.3)
    raise ClusterError(f"Slurm has not started within {READY_SECONDS} s. See {ssh.FOLDER}/slurmctld.log on {host.name}")
