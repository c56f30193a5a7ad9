"""Certificates are signed, and verified without a network."""

import json
import shutil
import stat
import subprocess
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
from PIL import Image

from grader.certificates import credential, issuer, picture
from grader.certificates.credential import Award
from grader.classroom.grading import record
from grader.classroom.publishing import certify
from tests.grader.classroom.conftest import STUDENTS, Graded
from tests.grader.classroom.test_class import copy
from tests.support import synthetic_class

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
AWARD = Award(
    "Ada Made-Up", "learner-01", "123 of 130 points", ("Four workers trained.",), NOW, NOW + timedelta(days=365)
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    issuer.create_key(folder, "A Made-Up School")
    return folder


@pytest.fixture(scope="module")
def token(keys: Path) -> str:
    return credential.sign(AWARD, issuer.signing_issuer(keys), issuer.signing_key(keys))


def verified(token: str, keys: Path, now: datetime = NOW) -> credential.Verification:
    return credential.verify(token, issuer.load_issuers([keys / issuer.ISSUERS]), now)


def test_a_signed_certificate_is_valid(token: str, keys: Path):
    result = verified(token, keys)
    assert (result.state, result.issuer.name) == ("valid", "A Made-Up School")
    assert result.award == AWARD


def test_a_certificate_is_an_open_badge(token: str):
    """Open Badges 3.0 requires this of an AchievementCredential and of its proof as a JSON Web Token."""
    header, claims = jwt.get_unverified_header(token), jwt.decode(token, options={"verify_signature": False})
    assert (header["alg"], header["typ"]) == ("EdDSA", "JWT")
    assert claims["@context"][:1] == ["https://www.w3.org/ns/credentials/v2"]
    assert {"VerifiableCredential", "OpenBadgeCredential"} <= set(claims["type"])
    achievement = claims["credentialSubject"]["achievement"]
    assert achievement["id"]
    assert achievement["name"]
    assert achievement["criteria"]["narrative"]
    assert claims["iss"] == claims["issuer"]["id"] == header["kid"]
    assert claims["jti"] == claims["id"]
    assert claims["nbf"] == int(NOW.timestamp())
    assert claims["validFrom"] == "2026-05-01T12:00:00Z"


def changed(token: str, change) -> str:
    """Return a token with changed content and the old signature."""
    head, body, signature = token.split(".")
    content = json.loads(urlsafe_b64decode(body + "=="))
    change(content)
    return f"{head}.{urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip('=')}.{signature}"


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["credentialSubject"]["result"][0].update(value="130 of 130 points"),
        lambda content: content["credentialSubject"]["identifier"][0].update(identityHash="Somebody Else"),
        lambda content: content.update(validUntil="2099-01-01T00:00:00Z"),
        lambda content: content.update(exp=4_000_000_000),
        lambda content: content.clear(),
    ],
)
def test_a_changed_certificate_is_tampered(token: str, keys: Path, change):
    assert verified(changed(token, change), keys).state == "tampered"


def test_another_signature_algorithm_is_tampered(token: str, keys: Path):
    """Two classic attacks on a signature are the algorithm `none`, and HS256 with the public key as its secret."""
    claims = jwt.decode(token, options={"verify_signature": False})
    kid = {"kid": jwt.get_unverified_header(token)["kid"]}
    public = issuer.signing_issuer(keys).key.public_bytes_raw()
    for forged in (jwt.encode(claims, None, "none", kid), jwt.encode(claims, public, "HS256", kid)):
        assert verified(forged, keys).state == "tampered"


def test_a_certificate_expires_at_its_date(token: str, keys: Path):
    assert verified(token, keys, AWARD.until).state == "expired"
    assert verified(token, keys, AWARD.until - timedelta(seconds=1)).state == "valid"


def test_a_certificate_of_an_unknown_issuer_is_not_valid(token: str, tmp_path: Path):
    issuer.create_key(tmp_path, "Another School")
    result = verified(token, tmp_path)
    assert result.state == "unknown issuer"
    assert result.award is None


def test_another_key_under_a_known_name_is_tampered(keys: Path, tmp_path: Path):
    issuer.create_key(tmp_path, "A Made-Up School")
    forged = credential.sign(AWARD, issuer.signing_issuer(keys), issuer.signing_key(tmp_path))
    assert verified(forged, keys).state == "tampered"


def test_an_unknown_issuers_name_is_shown_without_markup(tmp_path: Path):
    issuer.create_key(tmp_path / "theirs", "[/x] [link=https://evil.example]here[/link]")
    (tmp_path / "theirs.jwt").write_text(
        credential.sign(AWARD, issuer.signing_issuer(tmp_path / "theirs"), issuer.signing_key(tmp_path / "theirs"))
    )
    done = run("verify", tmp_path / "theirs.jwt", home=tmp_path / "mine")
    assert done.returncode == 4
    assert "[/x] [link=" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["", "a.b.c", "e30.", "\0", "x" * 100_000])
def test_other_text_is_no_certificate(text: str, keys: Path):
    assert verified(text, keys).state == "no certificate"


def test_the_picture_carries_the_credential(token: str, keys: Path, tmp_path: Path):
    picture.draw(AWARD, "A Made-Up School", tmp_path / "plain.png")
    credential.bake(tmp_path / "plain.png", token, tmp_path / "baked.png")
    assert credential.read_token(tmp_path / "baked.png") == token
    assert credential.read_token(tmp_path / "plain.png") == ""
    with Image.open(tmp_path / "baked.png") as image:
        assert image.size[0] / image.size[1] == pytest.approx(297 / 210, abs=0.01)  # This is the format A4.


def test_any_name_can_be_drawn(tmp_path: Path):
    """Mathematics and control characters are not interpreted, and no font warning fails."""
    picture.draw(replace(AWARD, name="$\\alpha$ {x}\x1b[31m & Co" * 10), None, tmp_path / "preview.png")
    assert (tmp_path / "preview.png").stat().st_size > 10_000


def test_only_the_owner_can_read_the_private_key(keys: Path):
    assert stat.S_IMODE((keys / issuer.PRIVATE).stat().st_mode) == 0o600
    with pytest.raises(issuer.IssuerError, match="--rotate"):
        issuer.create_key(keys, "Again")


def test_a_key_that_others_can_read_is_refused(keys: Path, tmp_path: Path):
    shutil.copytree(keys, tmp_path / "keys")
    (tmp_path / "keys" / issuer.PRIVATE).chmod(0o644)
    with pytest.raises(issuer.IssuerError, match="others can read"):
        issuer.signing_key(tmp_path / "keys")


def test_no_key_is_created_in_the_repository():
    with pytest.raises(issuer.IssuerError, match="repository"):
        issuer.create_key(synthetic_class.SOLUTIONS / "keys", "A Made-Up School")


def test_old_certificates_are_valid_after_a_rotation(token: str, keys: Path, tmp_path: Path):
    rotated = tmp_path / "keys"
    shutil.copytree(keys, rotated)
    before = issuer.signing_key(rotated)
    issuer.create_key(rotated, "A Made-Up School", rotate=True)
    assert issuer.signing_key(rotated).public_key() != before.public_key()
    assert verified(token, rotated).state == "valid"
    new = credential.sign(AWARD, issuer.signing_issuer(rotated), issuer.signing_key(rotated))
    assert (verified(new, rotated).state, verified(new, keys).state) == ("valid", "unknown issuer")


def test_exactly_those_who_passed_get_a_certificate(graded: Graded, keys: Path):
    made = certify.certify(graded.course, synthetic_class.PROFILE, None, keys)
    names = [synthetic_class.name(number) for number in range(STUDENTS)]
    passed = [name for name in names if record.load(graded.course.record(name, synthetic_class.PROGRAM)).passed]
    assert names[0] in passed
    assert names[-1] not in passed
    assert sorted(path.stem for path in made) == passed
    result = verified(credential.read_token(made[0]), keys, datetime.now(UTC))
    assert (result.state, result.award.student) == ("valid", passed[0])
    before = made[0].read_bytes()
    certify.certify(graded.course, synthetic_class.PROFILE, None, keys)
    assert made[0].read_bytes() == before
    assert certify.certify(graded.course, "full", None, keys) == []


def test_a_new_expiry_date_replaces_the_certificate(graded: Graded, keys: Path, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    made = certify.certify(course, synthetic_class.PROFILE, None, keys)[0]
    endless = made.read_bytes()
    certify.certify(course, synthetic_class.PROFILE, 2, keys)
    dated = made.read_bytes()
    assert dated != endless
    assert verified(credential.read_token(made), keys, datetime.now(UTC)).award.until
    certify.certify(course, synthetic_class.PROFILE, 2, keys)
    assert made.read_bytes() == dated


def test_zero_points_by_hand_withdraw_the_certificate(graded: Graded, keys: Path, tmp_path: Path):
    course, name = copy(graded, tmp_path / "work"), synthetic_class.PROGRAM
    before = certify.certify(course, synthetic_class.PROFILE, None, keys)
    with course.gradebook as gradebook:
        gradebook.find_grade("four_workers", name, name, before[0].stem).manual_score = 0
        gradebook.db.commit()
    assert certify.certify(course, synthetic_class.PROFILE, None, keys) == before[1:]
    assert not before[0].exists()
    assert not before[0].with_suffix(".jwt").exists()


def test_a_public_key_of_another_type_is_refused(tmp_path: Path):
    (tmp_path / "key.json").write_text('{"name": "A School", "key": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}}')
    with pytest.raises(issuer.IssuerError, match="no issuer's public key"):
        issuer.load_issuers([tmp_path / "key.json"])


def run(*arguments: object, home: Path) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "grader", *map(str, arguments)]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    return subprocess.run(line, capture_output=True, text=True, env=env, timeout=300, check=False)


def test_the_verify_command_reports_each_state(tmp_path: Path, token: str, keys: Path):
    valid = credential.sign(replace(AWARD, until=None), issuer.signing_issuer(keys), issuer.signing_key(keys))
    then = datetime(2020, 1, 1, tzinfo=UTC)  # The certificate has then expired, whatever this machine's clock says.
    over = replace(AWARD, since=then, until=then + timedelta(days=1))
    past = credential.sign(over, issuer.signing_issuer(keys), issuer.signing_key(keys))
    (tmp_path / "good.jwt").write_text(valid + "\n")
    (tmp_path / "past.jwt").write_text(past + "\n")
    (tmp_path / "bad.jwt").write_text(changed(token, lambda content: content.update(name="Another")))
    known = ("--issuer", keys / issuer.ISSUERS)
    done = {name: run("verify", tmp_path / name, *known, home=tmp_path) for name in ("good.jwt", "past.jwt", "bad.jwt")}
    assert done["bad.jwt"].returncode == 1
    assert done["bad.jwt"].stdout.startswith("tampered:")
    assert done["good.jwt"].returncode == 0
    assert "Ada Made-Up" in done["good.jwt"].stdout
    assert done["past.jwt"].returncode == 3
    assert done["past.jwt"].stdout.startswith("expired")
    stranger = run("verify", tmp_path / "good.jwt", home=tmp_path)
    assert (stranger.returncode, stranger.stdout[:14]) == (4, "unknown issuer")
    assert run("verify", tmp_path / "none.png", home=tmp_path).returncode == 2
    assert run("create-key", "--name", "A School", home=tmp_path).returncode == 0
    assert "--rotate" in run("create-key", "--name", "A School", home=tmp_path).stderr
