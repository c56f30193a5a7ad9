"""nbgrader's configuration of this course. `make release` wrote it here once; your changes stay."""

from pathlib import Path

from grader.build import STUB
from grader.instructor import collect, plugins

plugins.grade_safely()  # nbgrader's own autograding, formgrader's button too, then goes by `make autograde`'s way

c = get_config()  # noqa: F821  nbgrader provides it
c.CourseDirectory.root = str(Path(__file__).parent)
c.CourseDirectory.course_id = "distributed-deep-learning"
c.Exchange.root = str(Path(__file__).parent / "exchange")  # on a cluster: a folder that all learners reach
c.ExchangeFactory.collect = collect.SafeCollect
c.ExchangeCollect.update = True  # what a student hands in later takes the place of what was collected
c.ClearSolutions.code_stub = {"python": STUB}
c.ExportApp.plugin_class = plugins.LmsExport
c.AssignLatePenalties.plugin_class = plugins.PerDay
c.PerDay.share = 0.0  # of a notebook's score, for each day begun after the due date: 0.1 takes ten per cent a day
