"""The page docs/where_it_pays.md says what the saved results say."""

import matplotlib

from benchmarks import speed
from benchmarks.experiment import results, runner
from benchmarks.speed import where_it_pays


def test_the_page_and_its_pictures_are_what_the_command_writes():
    saved = {id: runner.saved(speed.get(id), results.RESULTS / "speed" / id) for id in where_it_pays.NEEDED}
    assert not any(one.missing for one in saved.values())
    with matplotlib.rc_context({"legend.frameon": True, "font.size": 20}):  # Another module may have set a style.
        drawn = where_it_pays.pictures(saved)
        for name, picture in drawn.items():
            assert (where_it_pays.DOCS / f"{name}.svg").read_text() == where_it_pays.svg(picture)
    assert where_it_pays.PAGE.read_text() == where_it_pays.text(saved, drawn)
