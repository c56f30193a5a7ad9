"""This file tells a learner's JupyterLab where to fetch assignments and hand them in, and the learner's name.

COURSE_EXCHANGE gives another folder. COURSE_STUDENT gives another name than that of the account. It is needed in a
container, where all learners have accounts with the same name.
"""

import os
from pathlib import Path

HERE = Path(__file__).resolve()

c = get_config()  # noqa: F821  nbgrader provides this function.
c.CourseDirectory.course_id = "distributed-deep-learning"
c.Exchange.root = os.environ.get("COURSE_EXCHANGE") or str(HERE.parents[3] / "grader" / "work" / "exchange")
if student := os.environ.get("COURSE_STUDENT"):
    c.CourseDirectory.student_id = student
# Validate runs the whole notebook. Its live runs need more time than nbgrader's default of 30 seconds per cell.
c.Execute.timeout = 1800
