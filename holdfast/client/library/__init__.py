"""The library in the client: rows, changes, merges, pushes and pulls, the queue of files."""
