"""Makes the key with which the machines of a Dask cluster know each other, and the settings that tell Dask to use it.

Without it, whoever reaches the scheduler's port can run programs as the user who started the scheduler.
"""

import json
import tempfile
from pathlib import Path

from distributed import Security

from grader.common.atomic_write import write_whole
from grader.common.errors import GraderError
from grader.common.private_file import once


def create(folder: Path) -> None:
    """Write a key, its certificate and Dask's settings into a new folder that only this user can read.

    All machines have the same key. The certificate is valid for a year. Raises GraderError if the folder exists.
    """
    folder = folder.absolute()
    if folder.exists():
        raise GraderError(f"{folder} is there already; name a new folder, or remove it to make a new key")
    made = Security.temporary()
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))  # Only this user can read it.
    once(part / "key.pem", made.tls_client_key.encode)
    write_whole(part / "certificate.pem", made.tls_client_cert)
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    roles = {role: {"cert": certificate, "key": key} for role in ("scheduler", "worker", "client")}
    tls = {"ca-file": certificate, **roles}
    comm = {"default-scheme": "tls", "require-encryption": True, "tls": tls}
    write_whole(part / "dask.yaml", json.dumps({"distributed": {"comm": comm}}, indent=1) + "\n")
    part.rename(folder)
