"""Measures holdfast and its peers in one run, with the same load: `python -m bench` lists the scenarios.

Imports holdfast where a scenario measures a part of it in a process of its own; holdfast never imports this.
How to run and how to read it: docs/benchmarks.md.
"""
