"""The gateway's log: partitions of segments, appended exactly once, acknowledged when they are safe.

Law: what was acknowledged is on the disk; what readers see was acknowledged; what was taken once is never taken again.

A partition is a folder:

    0000000007.arrows   rows: an Arrow IPC stream, which `pyarrow.ipc.open_stream` reads once it is sealed
    0000000007.index    a preamble, the ledger of all that came before, then a record a batch, each with its CRC
    commit              how far readers may read; written after every sync, itself never synced
    consumers           who reads, and how far they have come
    lock                held by the one writer
"""
