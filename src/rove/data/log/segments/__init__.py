"""The gateway's log: partitions of segments, appended exactly once, acknowledged when they are safe.

Law: acknowledged batches are on the disk; readers see only acknowledged batches; a batch is taken only once.

A partition is a folder:

    0000000007.arrows   rows: an Arrow IPC stream, which `pyarrow.ipc.open_stream` reads once it is sealed
    0000000007.index    a preamble, the ledger of all earlier segments, then one record for each batch, with its CRC
    commit              how far readers may read; written after every sync, itself never synced
    consumers           the readers, and how far they have read
    lock                held by the only writer
"""
