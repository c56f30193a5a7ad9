"""Certificates as Open Badges 3.0 (1EdTech, "Open Badges Specification", 3.0, 2024): an AchievementCredential, signed.

The proof is a JSON Web Token (section 8.2.4, "JSON Web Token Proof Format") with EdDSA and Ed25519 (RFC 8037). The
issuer's id identifies the key. A picture carries the token in a text chunk (section 5.3, "Baked Badge").
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from PIL import Image, UnidentifiedImageError
from PIL.PngImagePlugin import PngInfo

from grader.certificates.issuer import Issuer
from grader.common.untrusted import UnreadableError, read

CONTEXT = ["https://www.w3.org/ns/credentials/v2", "https://purl.imsglobal.org/spec/ob/v3p0/context-3.0.3.json"]
CHUNK = "openbadgecredential"  # the name of the picture's text chunk
COURSE = "Distributed deep learning with Horovod"
ALGORITHM = "EdDSA"
DAYS_PER_YEAR = 365.25  # on average, with leap years
MAX_BYTES = 8 * 2**20  # of a certificate's file

State = Literal["valid", "tampered", "expired", "unknown issuer", "no certificate"]


@dataclass(frozen=True)
class Award:
    """What a certificate says.

    `shown`: what the run showed, one sentence per entry. `until`: when it expires, or None if it does not.
    """

    name: str
    student: str
    grade: str
    shown: tuple[str, ...]
    since: datetime
    until: datetime | None = None
    course: str = COURSE


@dataclass(frozen=True)
class Verification:
    """The result of a verification. `award` and `issuer` are None unless the signature is right."""

    state: State
    reason: str
    award: Award | None = None
    issuer: Issuer | None = None


def sign(award: Award, issuer: Issuer, key: Ed25519PrivateKey) -> str:
    """The credential as a compact JSON Web Token."""
    content = _credential(award, issuer)
    claims = {"iss": issuer.id, "jti": content["id"], "sub": award.student, "nbf": award.since, "iat": award.since}
    claims |= {"exp": award.until} if award.until else {}
    return jwt.encode({**content, **claims}, key, algorithm=ALGORITHM, headers={"kid": issuer.id})


def _credential(award: Award, issuer: Issuer) -> dict:
    criteria = "Turned a training program for one worker into one for four, graded by what its workers did."
    return {
        "@context": CONTEXT,
        "id": uuid.uuid4().urn,
        "type": ["VerifiableCredential", "OpenBadgeCredential"],
        "name": award.course,
        "issuer": {"id": issuer.id, "type": ["Profile"], "name": issuer.name},
        "validFrom": _stamp(award.since),
        **({"validUntil": _stamp(award.until)} if award.until else {}),
        "credentialSubject": {
            "type": ["AchievementSubject"],
            "identifier": [
                {"type": "IdentityObject", "hashed": False, "identityType": kind, "identityHash": value}
                for kind, value in (("name", award.name), ("sourcedId", award.student))
            ],
            "achievement": {
                "id": uuid.uuid5(uuid.NAMESPACE_URL, award.course).urn,
                "type": ["Achievement"],
                "achievementType": "Certificate",
                "name": award.course,
                "description": " ".join(award.shown),
                "criteria": {"narrative": criteria},
            },
            "result": [{"type": ["Result"], "value": award.grade}],
        },
    }


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def bake(picture: Path, token: str, target: Path) -> None:
    """Write the picture with the credential inside."""
    info = PngInfo()
    info.add_itxt(CHUNK, token)
    with Image.open(picture) as image:
        image.save(target, format="PNG", pnginfo=info, dpi=image.info.get("dpi"))


def read_token(path: Path) -> str:
    """The credential in a picture, or in a file of its own. "" if there is none."""
    try:
        content = read(path, MAX_BYTES)
    except UnreadableError:
        return ""
    if not content.startswith(b"\x89PNG"):
        return content.decode("ascii", errors="ignore").strip()
    try:
        with Image.open(path) as image:
            image.load()  # the text chunk may follow the pixels
            return str(image.text.get(CHUNK, ""))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return ""


def verify(token: str, issuers: list[Issuer], now: datetime | None = None) -> Verification:
    """Verify without a network that one of `issuers` signed a credential, and that it has not expired at `now`."""
    try:
        header, unverified = jwt.get_unverified_header(token), jwt.decode(token, options={"verify_signature": False})
    except jwt.InvalidTokenError:
        return Verification("no certificate", "it holds no signed credential")
    issuer = next((issuer for issuer in issuers if issuer.id == header.get("kid")), None)
    if issuer is None:
        name = unverified.get("issuer", {}).get("name") if isinstance(unverified.get("issuer"), dict) else None
        return Verification("unknown issuer", f"its key is none of the {len(issuers)} known; it calls itself {name!r}")
    try:
        # The expiry is checked below, at `now`.
        dates = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
        claims = jwt.decode(token, issuer.key, [ALGORITHM], issuer=issuer.id, options=dates)
        award = _award(claims)
    except (jwt.InvalidTokenError, KeyError, IndexError, TypeError, ValueError):
        return Verification("tampered", f"the signature of {issuer.name} does not fit what it says")
    moment = now or datetime.now(UTC)
    if award.until and moment >= award.until:
        return Verification("expired", f"it ended on {award.until:%Y-%m-%d}", award, issuer)
    return Verification("valid", f"signed by {issuer.name}", award, issuer)


def _award(claims: dict) -> Award:
    """What a credential says whose signature is right."""
    subject = claims["credentialSubject"]
    names = {identity["identityType"]: identity["identityHash"] for identity in subject["identifier"]}
    until = claims.get("validUntil")
    return Award(
        names["name"], names["sourcedId"], subject["result"][0]["value"], (subject["achievement"]["description"],),
        datetime.fromisoformat(claims["validFrom"]), datetime.fromisoformat(until) if until else None, claims["name"],
    )  # fmt: skip


def expiry(since: datetime, years: int | None) -> datetime | None:
    """When a certificate expires that is valid for so many years. None if it does not expire."""
    return since + timedelta(days=round(DAYS_PER_YEAR * years)) if years else None
