"""The same durable small writes on PostgreSQL: our pool beside one connection with a commit each."""

from __future__ import annotations

from bench.scenarios.writes import scenario

SCENARIO = scenario(
    "writes-postgresql",
    "postgresql",
    "durable small writes on PostgreSQL (synchronous_commit=on), one row of 100 bytes each",
    (),
    "ours: a pool of 16 connections; PostgreSQL lets commits that meet share an fsync, so fewer than one per write",
)
