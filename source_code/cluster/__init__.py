"""Makes a cluster of several hosts on one machine. Each host is a set of Linux namespaces with its own network card.

python -m cluster up --hosts 2 --rate 1gbit
"""

from cluster.cluster import Cluster, Host, find, up
from cluster.errors import ClusterError

__all__ = ["Cluster", "ClusterError", "Host", "find", "up"]
