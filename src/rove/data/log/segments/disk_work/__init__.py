"""The part of the log that reads and writes files, through a `Disk`. Only shells call it, never a machine."""
