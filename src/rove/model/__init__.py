"""The types that all parts of Rove share: errors, schemas, batches, messages. It imports no other layer."""
