"""Who comes in, and what he may do: by our accounts (`holdfast serve`), by files (`holdfast broker`)."""

from holdfast.broker.entry.by_account import AccountHooks
from holdfast.broker.entry.by_file import FileHooks

__all__ = ["AccountHooks", "FileHooks"]
