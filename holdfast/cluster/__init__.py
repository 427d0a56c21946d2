"""More than one process on one database: wake-ups across them, who is where, short locks, short cuts.

All of it makes things quicker and may be lost at any moment: whoever asks gets "I do not know" as an answer, and goes
to the database. It knows Redis, channels and bytes; it must not know what any room says with them.
"""

from holdfast.cluster.cluster import Cluster
from holdfast.cluster.redis import RedisCluster

__all__ = ["Cluster", "RedisCluster"]
