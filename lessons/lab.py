"""JupyterLab at Start Here, set up for a learner; with --course FOLDER at formgrader, for the instructor.

    python -m lessons.lab

nbgrader's extensions are those that serve the one or the other: Validate and the assignment list, or formgrader.
"""

import argparse
import errno
import os
import secrets
import shlex
import shutil
import socket
import sys
import webbrowser
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir
from jupyter_server.serverapp import list_running_servers

from cifar.cli import OneLineParser, positive
from cifar.support.horovodrun import programs_path

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parent / "notebooks"
HOME = "127.0.0.1"
PORTS = 65535  # the last port of TCP
# A socket's path has at most 107 characters. A kernel's sockets need the rest of them for their own names, so the path
# of their folder has at most this many characters.
LONGEST = 57


def main(arguments: list[str] | None = None) -> int:
    """Replace this process by JupyterLab. The exit status is 2 if it cannot start. Otherwise it is JupyterLab's."""
    args = _parse(arguments)
    root = (args.course or NOTEBOOKS).resolve()
    if args.course and not (root / "nbgrader_config.py").is_file():
        return _stop(f"{args.course} is no course folder yet: make release COURSE={root}")
    if problem := _port_problem(args) or _home_problem():
        return _stop(problem)
    token = secrets.token_urlsafe(24)
    page = "formgrader" if args.course else "lab/tree/00_start_here.ipynb"
    shown = not args.no_browser and args.address == HOME and _has_browser()
    print(_hints(f"http://localhost:{args.port}/{page}?token={token}", args, shown), flush=True)
    os.environ |= _environment(token, "instructor" if args.course else "learner")
    os.chdir(root)
    os.execv(sys.executable, _command(args, root, page, shown))


def _command(args: argparse.Namespace, root: Path, page: str, shown: bool) -> list[str]:
    # By default JupyterLab may open a login shell, and then /etc/profile removes this environment from the path.
    shell = os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh"
    return [
        sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", f"--LabApp.default_url=/{page}",
        f"--ServerApp.ip={args.address}", f"--ServerApp.port={args.port}", "--ServerApp.port_retries=0",
        f"--ServerApp.open_browser={shown}", "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR", f"--ServerApp.terminado_settings=shell_command={shlex.quote(shell)}",
        *(["--allow-root"] if os.geteuid() == 0 else []),
        *(["--KernelManager.transport=tcp"] if len(jupyter_runtime_dir()) > LONGEST else []),
    ]  # fmt: skip


def _environment(token: str, role: str) -> dict[str, str]:
    """Return the environment variables of JupyterLab.

    They hold the token, because a list of processes shows a command's arguments, but not its variables. They also
    select the course's configuration, and this environment's kernel and programs.
    """
    return {
        "JUPYTER_TOKEN": token,
        "JUPYTER_CONFIG_PATH": str(HERE / "jupyter" / role),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PATH": programs_path(),
    }


def _hints(url: str, args: argparse.Namespace, shown: bool) -> str:
    """Return the lines that are printed first. They say where JupyterLab is, and how the learner can reach it."""
    lines = [f"lab: {url}", "lab: Ctrl-C here ends it; your notebooks are saved as you work"]
    if "SSH_CONNECTION" in os.environ:
        here = f"{os.environ.get('USER', 'you')}@{socket.gethostname()}"
        lines.append(f"lab: this machine is remote. On yours: ssh -N -L {args.port}:localhost:{args.port} {here}")
        lines.append("lab: then open the address above there")
    elif args.address != HOME:
        lines.append("lab: from another machine, put this one's name in place of localhost")
    elif not shown:
        lines.append("lab: no browser is opened from here; open the address above in one")
    return "\n".join(lines)


def _has_browser() -> bool:
    """Return whether a browser with windows can be opened. A browser for terminals cannot show JupyterLab."""
    if "SSH_CONNECTION" in os.environ or not ({"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)):
        return False
    try:
        return webbrowser.get() is not None
    except webbrowser.Error:
        return False


def _port_problem(args: argparse.Namespace) -> str:
    """Return why JupyterLab cannot use this address and port, and what to do. The text is empty if it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((args.address, args.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return _taken_by(args.port, "formgrader" if args.course else "lab")
            return f"cannot listen at {args.address}, port {args.port}: {error.strerror}"
    return ""


def _home_problem() -> str:
    """Return why JupyterLab cannot write the files that it needs while it runs. The text is empty if it can."""
    folder = Path(jupyter_runtime_dir())
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"cannot write to {folder}: {error.strerror}. Name another folder by JUPYTER_RUNTIME_DIR"
    return ""


def _taken_by(port: int, target: str) -> str:
    """Return which program uses the port, as far as Jupyter knows, and what to do."""
    again = f"make {target} PORT={port + 1 if port < PORTS else 8889}"
    for server in list_running_servers():
        if server["port"] == port:
            there = f"http://localhost:{port}/lab?token={server['token']}"
            return f"a JupyterLab is running already: open {there}, or end it, or: {again}"
    return f"port {port} is taken by another program; try: {again}"


def _stop(message: str) -> int:
    print(f"lab: {message}", file=sys.stderr)
    return 2


def _port(text: str) -> int:
    if (port := positive(text)) > PORTS:
        raise argparse.ArgumentTypeError(f"{port} is no port; the last one is {PORTS}")
    return port


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = OneLineParser(prog="lessons.lab", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--port", type=_port, default=8888, help="to listen at (default: %(default)s)")
    add("--address", default=HOME, help="to listen at; 0.0.0.0 for all of this machine's (default: %(default)s)")
    add("--no-browser", action="store_true", help="do not open one, only say the address")
    add("--course", type=Path, metavar="FOLDER", help="an instructor's course folder: formgrader in place of lessons")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
