"""The root: splits a query over shards, races replicas against each other, merges the answers."""
