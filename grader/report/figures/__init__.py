"""These modules draw the pictures of the report.

Each module draws one picture of a run and says what can be observed in it.

A submission writes many of the values that are drawn. Values may be absent or not finite, and lists of them may be of
different lengths or endless. Each module therefore looks at a limited number of values.
"""
