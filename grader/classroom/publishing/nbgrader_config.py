"""nbgrader's configuration of this course. `make release` wrote it here once, and does not replace it."""

from pathlib import Path

from grader.classroom import nbgrader_plugins
from grader.classroom.collecting import collect
from grader.notebooks.build import STUB

nbgrader_plugins.grade_safely()  # nbgrader's autograding and formgrader's button then do the same as `make autograde`

c = get_config()  # noqa: F821  nbgrader provides it
c.CourseDirectory.root = str(Path(__file__).parent)
c.CourseDirectory.course_id = "distributed-deep-learning"
c.Exchange.root = str(Path(__file__).parent / "exchange")  # on a cluster, name a folder that all students can reach
c.ExchangeFactory.collect = collect.SafeCollect
c.ExchangeCollect.update = True  # a later submission replaces the one that was collected
c.ClearSolutions.code_stub = {"python": STUB}
c.ExportApp.plugin_class = nbgrader_plugins.LmsExport
c.AssignLatePenalties.plugin_class = nbgrader_plugins.PerDay  # policy.toml says how much is taken off
