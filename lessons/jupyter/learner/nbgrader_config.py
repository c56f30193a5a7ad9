"""Where a learner's JupyterLab fetches assignments and hands them in, and in whose name.

COURSE_EXCHANGE names another folder, COURSE_STUDENT another name than the account's: in a container all accounts are
called alike.
"""

import os
from pathlib import Path

HERE = Path(__file__).resolve()

c = get_config()  # noqa: F821  nbgrader provides it
c.CourseDirectory.course_id = "distributed-deep-learning"
c.Exchange.root = os.environ.get("COURSE_EXCHANGE") or str(HERE.parents[4] / "grader" / "work" / "exchange")
if student := os.environ.get("COURSE_STUDENT"):
    c.CourseDirectory.student_id = student
c.Execute.timeout = 1800  # Validate runs the whole notebook; a live run takes longer than nbgrader's 30 s a cell
