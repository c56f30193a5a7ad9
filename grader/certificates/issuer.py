"""The keys that sign certificates, and those that a verifier knows. `python -m grader create-key` makes the first.

The private key is written once, outside the repository, for its owner alone. Public keys are JSON Web Keys (RFC 7517,
Ed25519 as in RFC 8037), one file an issuer, named by their thumbprint (RFC 7638); to give that file away is to publish.
"""

import hashlib
import json
import stat
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from jwt.algorithms import OKPAlgorithm
from jwt.exceptions import InvalidKeyError

from grader.common.errors import GraderError
from grader.common.private_file import once

REPOSITORY = Path(__file__).resolve().parents[2]
PRIVATE, ISSUERS = "private.pem", "issuers"


class IssuerError(GraderError):
    """There is no key to sign with, or none that may be used; the message is one line."""


@dataclass(frozen=True)
class Issuer:
    """Who issues certificates, by their public key; `id` is a URI made from it (RFC 9278)."""

    name: str
    key: Ed25519PublicKey

    @property
    def thumbprint(self) -> str:
        return hashlib.sha256(
            json.dumps(_required(self.key), sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()

    @property
    def id(self) -> str:
        """The issuer's URI."""
        encoded = urlsafe_b64encode(bytes.fromhex(self.thumbprint)).decode().rstrip("=")
        return f"urn:ietf:params:oauth:jwk-thumbprint:sha-256:{encoded}"

    def text(self) -> str:
        """The file that makes this issuer known to a verifier."""
        return json.dumps({"name": self.name, "key": _required(self.key)}, indent=1) + "\n"


def home() -> Path:
    """Where keys are kept: a folder of the user's."""
    return Path(platformdirs.user_data_path("horovod-course"), "certificates")


def make(folder: Path, name: str, rotate: bool = False) -> Path:
    """Make a key to sign with; the path of its public part. Raises IssuerError if there is one, unless `rotate`."""
    private = folder / PRIVATE
    if folder.resolve().is_relative_to(REPOSITORY):
        raise IssuerError(f"{folder} lies in the repository: a private key must not")
    if private.exists() and not rotate:
        raise IssuerError(f"there is a key already, {private}; a second one, for use from now on: --rotate")
    private.unlink(missing_ok=True)
    once(private, _new)
    issuer = Issuer(name, signing_key(folder).public_key())
    public = folder / ISSUERS / f"{issuer.thumbprint[:16]}.json"
    public.parent.mkdir(exist_ok=True)
    public.write_text(issuer.text(), encoding="utf-8")
    return public


def _new() -> bytes:
    key = Ed25519PrivateKey.generate()
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def signing_key(folder: Path) -> Ed25519PrivateKey:
    """The private key. Raises IssuerError if there is none, or others could read it."""
    private = folder / PRIVATE
    if not private.exists():
        raise IssuerError('there is no key to sign with: python -m grader create-key --name "Your institution"')
    if stat.S_IMODE(private.stat().st_mode) & 0o077:
        raise IssuerError(f"others can read {private}: chmod 600 it, or rotate the key if they may have")
    key = serialization.load_pem_private_key(private.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise IssuerError(f"{private} holds no Ed25519 key")
    return key


def known(paths: list[Path]) -> list[Issuer]:
    """The issuers of files or folders of files. Raises IssuerError for one that is none, or is not there."""
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    return [_load(file) for file in files]


def _load(path: Path) -> Issuer:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Issuer(str(content["name"]), OKPAlgorithm.from_jwk(content["key"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidKeyError) as error:
        raise IssuerError(f"{path} is no issuer's public key: {error}") from None


def of(folder: Path) -> Issuer:
    """Who signs with the private key in `folder`. Raises IssuerError."""
    public = signing_key(folder).public_key()
    mine = [one for one in known([folder / ISSUERS]) if one.key == public]
    if not mine:
        raise IssuerError(f"the public part of {folder / PRIVATE} is missing in {folder / ISSUERS}; rotate the key")
    return mine[0]


def _required(key: Ed25519PublicKey) -> dict:
    """The members of a public JWK that its thumbprint is made of."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return {"crv": "Ed25519", "kty": "OKP", "x": urlsafe_b64encode(raw).decode().rstrip("=")}
