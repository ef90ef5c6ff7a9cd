"""The log as a data source of Spark.

data_source   Spark's classes: what it asks, and the format's name
scan          the process that plans: how far the log goes, what a micro-batch holds
admission     the rule: which rows, so that Spark's watermark overtakes nobody   (held, offset, entries)
shares        what one task reads   (rows, shape, index)
options       what users may ask for; quarantine: what is done about damage
"""

from rove.cloud.source.data_source import RoveDataSource, register

__all__ = ["RoveDataSource", "register"]
