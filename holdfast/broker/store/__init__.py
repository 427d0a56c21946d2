"""The broker's rows: statements, the one action that writes a batch, and what is read back.

It knows tables and plain rows; sessions as objects, connections and time it does not.
"""
