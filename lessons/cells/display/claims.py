"""Shows a saved result in a notebook, and what it says. It also repeats its experiment at a small size."""

import contextlib
import dataclasses
import io
import sys
from pathlib import Path

from IPython.display import HTML, display
from markupsafe import escape
from tqdm import tqdm

from benchmarks import claims, speed
from benchmarks.claims import sentences
from benchmarks.experiment import runner
from benchmarks.experiment.claim import Claim, Runs, Verdict
from benchmarks.experiment.plots import counted, styled
from benchmarks.experiment.runner import Series
from benchmarks.speed import page
from lessons import saved_runs
from lessons.cells.display.figures import show
from lessons.cells.display.overlay import draw_over

WORDS = {
    "holds": "The claim holds.",
    "fails": "The claim is false.",
    "depends": "It depends.",
    "no difference seen": "No difference was seen.",
}
BOTH_FALSE = "In your small run the claim is false. So it is in the full one below."
SMALL = {  # A small run can show that a claim holds. It is too small to refute one.
    "holds": "Your small run shows it.",
    "fails": "Your small run does not show it. That does not refute the claim.",
    "depends": "In your small run it depends. Unfold its numbers to see on what.",
    "no difference seen": "Your small run shows no difference.",
}
LIVE = Path("live")  # This folder is in the notebook's folder, which is the working folder of its kernel.
RAN: set[str] = set()  # what this notebook has run with `live`; the folder may hold runs of an earlier version


def saved(id: str, own: bool = True, verdict: bool = True, figure: bool = True) -> Series:
    """Show and return the committed result of claim or comparison `id`: its figure, and what it says.

    If this notebook has run it with `live`, the claim is not stated again, and the run's own results are drawn into the
    figure, unless `own` is False. If `verdict` is False, the claim and what came of it are folded away, for a lesson
    that asks another question. If `figure` is False, the lesson has shown the result in figures of its own.
    """
    found = saved_runs.series(id)
    if figure:
        _figure(found, runner.saved(found.claim, LIVE / id) if own and id in RAN else None)
    display(HTML(_verdict(found, stated=id not in RAN) if verdict else _verdict_folded(found)))
    return found


def _command(claim: Claim) -> str:
    return page.command(claim.id) if claim.id in speed.IDS else claim.command


def live(
    id: str, device: str = "auto", seed: int = 0, seeds: int = 1, variants: tuple[str, ...] | None = None
) -> Runs:  # fmt: skip
    """Run the experiment of claim or comparison `id` at its quick size, say what came out, and return the runs.

    `saved` draws them into the figure of the full experiment. `seeds` is the number of seeds, and `seed` is the first
    one. Without `variants`, all variants of the claim run. Everything is measured again at each call, because the
    learner wants to see it happen.
    """
    full = saved_runs.series(id)
    claim = dataclasses.replace(full.claim, variants=variants or full.claim.variants)
    folder = LIVE / id
    for old in folder.glob("*.json"):
        old.unlink()
    with tqdm(total=len(claim.variants) * seeds, desc=f"{id}, live", unit="run", file=sys.stdout, leave=False) as bar:
        settings = runner.settings(claim, quick=True, device=device)
        with contextlib.redirect_stdout(io.StringIO()):  # What the experiment prints would tear the bar apart.
            runner.measure(
                claim, folder, settings, range(seed, seed + seeds), claim.variants, lambda text: bar.update()
            )
    RAN.add(id)
    found = runner.saved(claim, folder)
    if not found.missing:
        display(HTML(_live_verdict(found, full)))
    return found.runs


def _figure(found: Series, own: Series | None) -> None:
    if found.missing:
        display(HTML(f"<p><em>No result yet for {escape(', '.join(found.missing))}.</em></p>"))
    if not _can_be_drawn(found):
        return
    with styled():
        picture = found.claim.picture(found.runs)
        drawn = own and _can_be_drawn(own) and draw_over(picture.figure, own.claim.picture(own.runs).figure)
        show(picture.figure, picture.alt, f"{picture.caption} {drawn}" if drawn else picture.caption)


def _can_be_drawn(found: Series) -> bool:
    return not found.missing or (found.claim.partial and any(found.runs.values()))


def _verdict(found: Series, stated: bool) -> str:
    """Return the claim, its verdict in a sentence, and a part to open, with all numbers and how to repeat them.

    Without `stated`, the claim itself is left out.
    """
    claim, verdict = found.claim, found.verdict
    first = _stated(claim) if stated else ""
    if verdict is None:
        return f"{first}{_origin(found)}"
    short = f"<p>{_word(found)} {escape(_sentence(found))}</p>"
    return f"{first}{short}{_folded('All numbers, and how to repeat them', _long(claim, verdict), _origin(found))}"


def _verdict_folded(found: Series) -> str:
    """Return the same as one part to open."""
    claim, verdict = found.claim, found.verdict
    short = f"<p>{_word(found)}</p>{_long(claim, verdict)}" if verdict else ""
    return _folded("A claim, all numbers, and how to repeat them", _stated(claim), short, _origin(found))


def _word(found: Series) -> str:
    return f"<strong>{WORDS[found.verdict.word]}</strong>{_provisional(found)}"


def _stated(claim: Claim) -> str:
    return f"<p><strong>Claim:</strong> {escape(claim.statement)}</p>"


def _sentence(found: Series) -> str:
    return sentences.shortest(found) if found.claim.id in claims.IDS else found.verdict.sentence


def _long(claim: Claim, verdict: Verdict) -> str:
    named = f"Claim {claim.id}, from source {claim.source}. " if claim.source else ""
    return f"<p>{named}{escape(_capital(verdict.sentence))}</p>"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _folded(summary: str, *parts: str) -> str:
    return f"<details><summary>{summary}</summary>{''.join(parts)}</details>"


def _provisional(found: Series) -> str:
    return f" (provisional: {escape(found.provisional)})" if found.provisional else ""


def _origin(found: Series) -> str:
    command = escape(_command(found.claim))
    if not found.machine:
        return f"<p>To measure it: <code>{command}</code></p>"
    seeds = "Some variants" if found.missing else f"{counted(found.seeds, 'seed')} per variant"
    return f"<p><small>{seeds}, on {escape(found.machine)}. To repeat it: <code>{command} --rerun</code></small></p>"


def _live_verdict(small: Series, full: Series) -> str:
    """Return the claim and the live run's verdict as HTML. If the saved verdict is another one, the text says why."""
    small_word, full_word = small.verdict.word, full.verdict and full.verdict.word
    said = f"<strong>{BOTH_FALSE if small_word == full_word == 'fails' else SMALL[small_word]}</strong>"
    if full_word and full_word != small_word:
        said = f"{said} {escape(small.claim.caution)}"  # With `+`, markupsafe would escape the tags in `said`, too.
    return f"{_stated(small.claim)}<p>{said}</p>{_folded('The numbers of your run', _long(small.claim, small.verdict))}"
