"""Where a learner's JupyterLab fetches assignments and hands them in; COURSE_EXCHANGE names another folder."""

import os
from pathlib import Path

HERE = Path(__file__).resolve()

c = get_config()  # noqa: F821  nbgrader provides it
c.CourseDirectory.course_id = "distributed-deep-learning"
c.Exchange.root = os.environ.get("COURSE_EXCHANGE") or str(HERE.parents[4] / "grader" / "work" / "exchange")
c.Execute.timeout = 1800  # Validate runs the whole notebook; a live run takes longer than nbgrader's 30 s a cell
