"""The ledger in the client: rows, changes, outbox, pulls, notifications."""
