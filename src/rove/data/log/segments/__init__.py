"""The gateway's log: partitions of segments, appended exactly once, acknowledged when they are safe.

Law: acknowledged batches are on the disk; readers see only acknowledged batches; a batch is taken only once.

A partition is a folder:

    0000000007.arrows   rows: an Arrow IPC stream, which `pyarrow.ipc.open_stream` reads once it is sealed; messages
                        without rows say what is in the index
    0000000007.index    a preamble, the ledger of all earlier segments, then one record for each batch, with its CRC
    commit              how far readers may read; written after every sync, itself never synced
    consumers           the readers, how far they have read, and the first segment that was not deleted
    lock                held by the only writer
"""
