"""Where the client keeps everything: one SQLite file, and a folder of contents beside it."""

from holdfast.client.replica.replica import Replica
from holdfast.client.replica.transaction import Transaction, Value, View

__all__ = ["Replica", "Transaction", "Value", "View"]
