"""The private key that signs certificates, and the public keys that a verifier knows.

The private key is written once, outside the repository, and only its owner can read it. Public keys are JSON Web Keys
(RFC 7517, Ed25519 as in RFC 8037). There is one file per issuer, named by the key's thumbprint (RFC 7638).
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
PRIVATE, ISSUERS = "private.pem", "issuers"  # a file, and a folder of public keys


class IssuerError(GraderError):
    """A key is missing, or must not be used. The message is one line."""


@dataclass(frozen=True)
class Issuer:
    """An issuer of certificates, and its public key. `id` is a URI made from the key (RFC 9278)."""

    name: str
    key: Ed25519PublicKey

    @property
    def thumbprint(self) -> str:
        members = json.dumps(_required_members(self.key), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(members.encode()).hexdigest()

    @property
    def id(self) -> str:
        """The issuer's URI."""
        encoded = urlsafe_b64encode(bytes.fromhex(self.thumbprint)).decode().rstrip("=")
        return f"urn:ietf:params:oauth:jwk-thumbprint:sha-256:{encoded}"

    def text(self) -> str:
        """The file that makes this issuer known to a verifier."""
        return json.dumps({"name": self.name, "key": _required_members(self.key)}, indent=1) + "\n"


def keys_folder() -> Path:
    """The folder of the user's where keys are kept."""
    return Path(platformdirs.user_data_path("horovod-course"), "certificates")


def create_key(folder: Path, name: str, rotate: bool = False) -> Path:
    """Create a key to sign with, and return the path of its public part.

    Raises IssuerError if there is a key already, unless `rotate`, or if `folder` lies in the repository.
    """
    private = folder / PRIVATE
    if folder.resolve().is_relative_to(REPOSITORY):
        raise IssuerError(f"{folder} lies in the repository: a private key must not")
    if private.exists() and not rotate:
        raise IssuerError(f"there is a key already, {private}; a second one, for use from now on: --rotate")
    private.unlink(missing_ok=True)
    once(private, _new_private_key)
    issuer = Issuer(name, signing_key(folder).public_key())
    public = folder / ISSUERS / f"{issuer.thumbprint[:16]}.json"
    public.parent.mkdir(exist_ok=True)
    public.write_text(issuer.text(), encoding="utf-8")
    return public


def _new_private_key() -> bytes:
    key = Ed25519PrivateKey.generate()
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def signing_key(folder: Path) -> Ed25519PrivateKey:
    """The private key. Raises IssuerError if there is none, or if other users can read it."""
    private = folder / PRIVATE
    if not private.exists():
        raise IssuerError('there is no key to sign with: python -m grader create-key --name "Your institution"')
    if stat.S_IMODE(private.stat().st_mode) & 0o077:
        raise IssuerError(f"others can read {private}: chmod 600 it, or rotate the key if they may have")
    key = serialization.load_pem_private_key(private.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise IssuerError(f"{private} holds no Ed25519 key")
    return key


def load_issuers(paths: list[Path]) -> list[Issuer]:
    """The issuers in files, or in folders of files. Raises IssuerError for a file that holds no public key."""
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    return [_load(file) for file in files]


def _load(path: Path) -> Issuer:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Issuer(str(content["name"]), OKPAlgorithm.from_jwk(content["key"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidKeyError) as error:
        raise IssuerError(f"{path} is no issuer's public key: {error}") from None


def signing_issuer(folder: Path) -> Issuer:
    """The issuer that signs with the private key in `folder`. Raises IssuerError if there is none."""
    public = signing_key(folder).public_key()
    matches = [issuer for issuer in load_issuers([folder / ISSUERS]) if issuer.key == public]
    if not matches:
        raise IssuerError(f"the public part of {folder / PRIVATE} is missing in {folder / ISSUERS}; rotate the key")
    return matches[0]


def _required_members(key: Ed25519PublicKey) -> dict:
    """The members of a public JWK from which its thumbprint is computed."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return {"crv": "Ed25519", "kty": "OKP", "x": urlsafe_b64encode(raw).decode().rstrip("=")}
