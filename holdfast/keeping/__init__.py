"""Keeping what there is: check it, copy it out, put it back, bring it up to date. The operator's commands, without words.

This room knows every other room's invariants by name (`invariants`), tables and files as they lie there, and one
file format (`archive`). It must not know terminals, and no row's meaning: what a room wants of a check or after a
restore, it says itself.
"""
