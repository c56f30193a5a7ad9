"""Models of what an exchange costs: in a ring, over the links of some hosts, and on clusters of other people."""
