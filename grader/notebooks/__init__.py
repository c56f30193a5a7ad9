"""These modules make the learners' notebooks and the learner's copy of the course."""
