"""What a learner does in a notebook besides writing functions: guess, convert, sabotage, search, judge, hand in."""
