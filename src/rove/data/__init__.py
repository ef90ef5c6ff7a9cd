"""The data's walk: operators on record batches, pipelines of them."""
