"""The shared words of Rove: errors, schemas, batches. This layer knows nothing of the layers above it."""
