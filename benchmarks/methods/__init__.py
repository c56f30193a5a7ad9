"""Methods that several experiments measure: ways to exchange gradients, to normalise and to augment images."""
