"""Lets the hosts of a cluster log into each other by ssh, with a key that lives as long as the cluster.

All files lie in the cluster's own `/run`, which is in memory. The user's `~/.ssh` is neither read nor written.
"""

import os
import pwd
from pathlib import Path

from cluster import namespaces, network
from cluster.errors import ClusterError
from cluster.namespaces import Namespaces

FOLDER = "/run/cluster"
PROGRAMS = f"{FOLDER}/bin"
SERVER = "/usr/sbin/sshd"

CLIENT_CONFIG = f"""\
IdentityFile {FOLDER}/key
IdentitiesOnly yes
UserKnownHostsFile {FOLDER}/known_hosts
StrictHostKeyChecking yes
BatchMode yes
ConnectTimeout 10
ServerAliveInterval 5
ServerAliveCountMax 2
LogLevel ERROR
"""

# ssh takes a user's settings before those of the machine. With -F it reads these alone.
CLIENT = f"""\
#!/bin/sh
exec /usr/bin/ssh -F {FOLDER}/ssh_config "$@"
"""

SERVER_CONFIG = f"""\
Port 22
ListenAddress {{address}}
HostKey {FOLDER}/host_key
AuthorizedKeysFile {FOLDER}/{{name}}/authorized_keys
AuthenticationMethods publickey
UsePAM no
StrictModes no
PidFile none
MaxStartups 100
MaxSessions 100
SetEnv "PATH={{path}}"
"""


def make_keys(cluster: Namespaces, names: list[str]) -> None:
    """Make the keys, and what an ssh client on any host needs."""
    for key in ("key", "host_key"):
        cluster.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "cluster", "-f", f"{FOLDER}/{key}")
    host_key = " ".join(cluster.run("cat", f"{FOLDER}/host_key.pub").split()[:2])
    known = [f"{name},{network.address(number)} {host_key}\n" for number, name in enumerate(names, start=1)]
    write(cluster, f"{FOLDER}/known_hosts", "".join(known))
    write(cluster, f"{FOLDER}/ssh_config", CLIENT_CONFIG)
    write(cluster, f"{PROGRAMS}/ssh", CLIENT)
    cluster.run("chmod", "755", f"{PROGRAMS}/ssh")


def serve(host: Namespaces, name: str, number: int, as_user: list[str]) -> None:
    """Start the ssh server of a host. `as_user` is the start of a command line that runs a program as the user."""
    host.run("mkdir", "-p", f"{FOLDER}/{name}")
    path = f"{PROGRAMS}:{namespaces.tools_path()}"
    if not as_user:
        # Many machines lock root's password, and then ssh refuses root's key as well. This copy is for this host only.
        host.run("sh", "-c", f"umask 077; sed 's/^root:!/root:*/' /etc/shadow > {FOLDER}/{name}/shadow")
        host.run("mount", "--bind", f"{FOLDER}/{name}/shadow", "/etc/shadow")
    host.run("cp", f"{FOLDER}/key.pub", f"{FOLDER}/{name}/authorized_keys")
    config = f"{FOLDER}/{name}/sshd_config"
    write(host, config, SERVER_CONFIG.format(address=network.address(number), name=name, path=path))
    host.run(*as_user, SERVER, "-f", config)


def write(where: Namespaces, path: str, text: str) -> None:
    """Write a file inside a set of namespaces."""
    where.run("mkdir", "-p", Path(path).parent)
    where.run("tee", path, text=text)


def check_user() -> None:
    """Raises ClusterError if this user cannot log in by ssh."""
    try:
        shell = pwd.getpwuid(os.geteuid()).pw_shell
    except KeyError:
        raise ClusterError(
            f"user number {os.geteuid()} has no name, and ssh needs one: add it to /etc/passwd"
        ) from None
    if shell.endswith(("nologin", "false")):
        raise ClusterError(f"your login shell is {shell}, and ssh needs a real one: chsh --shell /bin/bash")
