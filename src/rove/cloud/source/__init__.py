"""The log as a data source of Spark.

data_source   the classes that Spark calls, and the name of the format
scan          plans micro-batches: how far the log goes, what a micro-batch holds
admission     the rule which rows a micro-batch holds, so that Spark's watermark passes no row   (held, offset, entries)
shares        what one task reads   (rows, shape, index)
options       the options that users may set; quarantine: what happens to damaged entries
"""

from rove.cloud.source.data_source import RoveDataSource, register

__all__ = ["RoveDataSource", "register"]
