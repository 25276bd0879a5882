"""Built data: where documents come from, how they are dealt to shards, and what is written."""
