from tests.accounts.conftest import open_accounts

__all__ = ["open_accounts"]
