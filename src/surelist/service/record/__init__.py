"""Who did what, provably: an append-only, hash-chained record, and who may write to it."""
