"""Shows a claim's saved result in a notebook. It also repeats the claim's experiment at a small size."""

import dataclasses
import sys
from pathlib import Path

from IPython.display import HTML, display
from markupsafe import escape
from tqdm import tqdm

from benchmarks import claims
from benchmarks.experiment import runner
from benchmarks.experiment.claim import Runs
from benchmarks.experiment.runner import Series
from lessons.figures import show

LIVE = Path("live")  # This folder is in the notebook's folder, which is the working folder of its kernel.


def saved(id: str) -> Series:
    """Show and return the committed result of claim `id`: figure, verdict, machine, and the command that repeats it."""
    found = runner.saved(claims.get(id))
    _figure(found)
    display(HTML(_verdict(found) + _origin(found)))
    return found


def live(
    id: str, device: str = "auto", seed: int = 0, seeds: int = 1, variants: tuple[str, ...] | None = None
) -> Runs:  # fmt: skip
    """Run the experiment of claim `id` at its quick size, show it like the saved one, and return its measured runs.

    `seeds` is the number of seeds, and `seed` is the first one. Without `variants`, all variants of the claim run.
    Everything is measured again at each call, because the learner wants to see it happen.
    """
    claim = claims.get(id)
    claim = dataclasses.replace(claim, variants=variants or claim.variants)
    folder = LIVE / id
    for old in folder.glob("*.json"):
        old.unlink()
    with tqdm(total=len(claim.variants) * seeds, desc=f"{id}, live", unit="run", file=sys.stdout) as bar:
        settings = runner.settings(claim, quick=True, device=device)
        runner.measure(claim, folder, settings, range(seed, seed + seeds), claim.variants, lambda text: bar.update())
    found = runner.saved(claim, folder)
    if not found.missing:
        _figure(found)
        display(HTML(_live_verdict(found, runner.saved(claims.get(id)))))
    return found.runs


def _figure(found: Series) -> None:
    if found.missing:
        display(HTML(f"<p><em>No result yet for {escape(', '.join(found.missing))}.</em></p>"))
    if found.missing and not (found.claim.partial and any(found.runs.values())):
        return
    picture = found.claim.picture(found.runs)
    show(picture.figure, picture.alt, picture.caption)


def _verdict(found: Series) -> str:
    claim, verdict = found.claim, found.verdict
    said = f"<strong>Claim {claim.id}</strong> ({claim.source}): {escape(claim.statement)}<br>"
    if verdict is None:
        return f"<p>{said}</p>"
    return f"<p>{said}<strong>Verdict: {verdict.word}</strong>{_provisional(found)}: {escape(verdict.sentence)}</p>"


def _provisional(found: Series) -> str:
    return f" (provisional: {escape(found.provisional)})" if found.provisional else ""


def _origin(found: Series) -> str:
    command = escape(found.claim.command)
    if not found.machine:
        return f"<p>To measure it: <code>{command}</code></p>"
    seeds = "Some variants" if found.missing else f"{found.seeds} seed(s) per variant"
    return f"<p><small>{seeds}, on {escape(found.machine)}. To repeat it: <code>{command} --rerun</code></small></p>"


def _live_verdict(small: Series, full: Series) -> str:
    """Return the live run's verdict as HTML. If the saved verdict is another one, the text says why."""
    said = f"Your live run: <strong>{small.verdict.word}</strong>. {escape(small.verdict.sentence)}"
    if full.verdict and full.verdict.word != small.verdict.word:
        said += f"<br>The full experiment says <strong>{full.verdict.word}</strong>{_provisional(full)}. "
        said = f"{said}{escape(small.claim.caution)}"  # With `+`, markupsafe would escape the tags in `said`, too.
    return f"<p>{said}</p>"
