"""Makes the key with which the machines of a Dask cluster know each other, and the settings that tell Dask to use it.

Without it, whoever reaches the scheduler's port can run programs as the user who started the scheduler.
"""

import json
from pathlib import Path

from distributed import Security

from grader.common.atomic_write import write_whole
from grader.common.errors import GraderError


def create(folder: Path) -> None:
    """Write a key, its certificate and Dask's settings into a new folder that only this user can read.

    All machines have the same key. The certificate is valid for a year. Raises GraderError if the folder exists.
    """
    folder = folder.absolute()
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise GraderError(f"{folder} is there already; name a new folder, or remove it to make a new key") from None
    made = Security.temporary()
    write_whole(folder / "key.pem", made.tls_client_key)
    write_whole(folder / "certificate.pem", made.tls_client_cert)
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    roles = {role: {"cert": certificate, "key": key} for role in ("scheduler", "worker", "client")}
    tls = {"ca-file": certificate, **roles}
    comm = {"default-scheme": "tls", "require-encryption": True, "tls": tls}
    write_whole(folder / "dask.yaml", json.dumps({"distributed": {"comm": comm}}, indent=1) + "\n")
