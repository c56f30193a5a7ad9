"""The pictures of the report. Each module draws one picture of a run and says what can be observed in it.

A submission writes much of what is drawn. Values may be absent, not finite, of different lengths or endless, so each
module looks at a limited number of them.
"""
