"""The leaf: holds some shards of an index and answers for them, one leg at a time."""
