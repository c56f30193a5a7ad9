"""The checks of the rubric: what each of its lines asks, and how that is judged from the evidence of a run."""
